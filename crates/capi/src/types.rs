//! Constants and structures of the header.

use crate::named::NamedOptions;
use std::ffi::{c_char, c_int, c_void};

/// Flag: symbolic links at the end of a path are not followed.
pub const PACKFS_NOFOLLOW: u32 = 1;

/// Flag of packfs_check: all file data is decoded, too.
pub const PACKFS_CHECK_DATA: u32 = 2;

/// Flag of packfs_open_options: an image whose checksum does not match is opened all the same, such
/// as one to be checked.
pub const PACKFS_IGNORE_CHECKSUM: u32 = 4;

/// Flag of packfs_open_options: ext3, ext4, XFS, and btrfs are read as they are on disk, without
/// the changes in their journals and logs.
pub const PACKFS_NO_JOURNAL: u32 = 8;

/// Size of the names of directory entries, with the NUL that ends them.
pub const PACKFS_NAME_SIZE: usize = 256;

/// Size of the text of a digest, with the NUL that ends it.
pub const PACKFS_DIGEST_SIZE: usize = 128;

/// Options of packfs_open. Fields that are 0 have their defaults, so a caller sets size, and what
/// it wants to change:
/// `packfs_open_options options = {.size = sizeof options, .part = "2"};`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct OpenOptions {
    /// Size of this structure; later versions of the library may know further fields.
    pub size: usize,
    /// Offset of the image, in bytes from the start of its file.
    pub offset: u64,
    /// Length of the image in bytes; 0: up to the end of its file.
    pub length: u64,
    /// Size of the cache for decoded blocks in bytes; 0: 32 MiB.
    pub cache_bytes: u64,
    /// Decoding threads; 0: one for each processor.
    pub threads: u32,
    /// PACKFS_IGNORE_CHECKSUM and PACKFS_NO_JOURNAL, or 0.
    pub flags: u32,
    /// Name or number of one of several images in a container, such as a partition of a disk; NULL:
    /// the only one.
    pub part: *const c_char,
    /// Paths of further files with data of the image, with NULL behind the last; NULL: none.
    pub devices: *const *const c_char,
    /// "mbr" or "gpt", the table of a disk to read; NULL: the one that Linux reads.
    pub partition_table: *const c_char,
    /// Set by packfs_options_set, and freed by packfs_options_free; else NULL.
    pub named: *mut NamedOptions,
}

/// Metadata of an entry.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Metadata {
    /// Number that entries of one inode share, within this image.
    pub id: u64,
    /// Length of a file in bytes; 0 for anything else.
    pub size: u64,
    /// Time of the last modification, in seconds since 1970.
    pub mtime: i64,
    /// Nanoseconds of that time.
    pub mtime_nsec: u32,
    /// Type and permissions, as st_mode of stat(2).
    pub mode: u32,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Link count as stored.
    pub nlink: u32,
    /// Major number of a device; 0 for anything else.
    pub rdev_major: u32,
    /// Minor number of a device; 0 for anything else.
    pub rdev_minor: u32,
}

/// An entry of a directory.
#[repr(C)]
pub struct DirEntry {
    /// Number of its inode, as in packfs_metadata.
    pub id: u64,
    /// Type bits of st_mode, such as S_IFREG, as the directory states them.
    pub mode: u32,
    /// Name, which ends with NUL, and holds neither a slash nor another NUL.
    pub name: [c_char; PACKFS_NAME_SIZE],
}

/// A part of a file to read, for packfs_read_many.
#[repr(C)]
pub struct ReadRequest {
    /// Path of the file; links are followed.
    pub path: *const c_char,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Memory of the caller for the bytes; NULL only if size is 0.
    pub buffer: *mut c_void,
    /// Size of that memory, and number of bytes to read.
    pub size: usize,
    /// Set by the call: number of bytes read, fewer than size only at the end of the file, or a
    /// negative error number.
    pub result: i64,
}

/// Function that packfs_walk calls for each entry. The path and the metadata are valid until it
/// returns; the path of the root is "". A result other than 0 ends the walk.
pub type OnEntry = Option<
    unsafe extern "C" fn(context: *mut c_void, path: *const c_char, metadata: *const Metadata) -> c_int,
>;

/// Function that packfs_check calls for each finding, on the thread that called. The severity is 2
/// for an error, 1 for a warning, 0 for a note; the texts are valid until it returns.
pub type OnFinding = Option<
    unsafe extern "C" fn(context: *mut c_void, severity: c_int, place: *const c_char, fault: *const c_char),
>;
