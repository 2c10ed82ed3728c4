//! The FUSE protocol of `/dev/fuse`: structures and numbers of the kernel's `uapi/linux/fuse.h`,
//! version 7.31 and later, in native byte order. Only the parts that a read-only filesystem needs,
//! and a single writable file.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub(crate) const VERSION: u32 = 7;
/// Oldest minor version supported: that of Linux 5.4.
pub(crate) const MINOR_MIN: u32 = 31;
/// Minor version whose structures are used.
pub(crate) const MINOR: u32 = 38;
pub(crate) const ROOT_ID: u64 = 1;

/// Request types (`enum fuse_opcode`).
pub(crate) mod opcode {
    pub(crate) const LOOKUP: u32 = 1;
    pub(crate) const FORGET: u32 = 2;
    pub(crate) const GETATTR: u32 = 3;
    pub(crate) const READLINK: u32 = 5;
    pub(crate) const OPEN: u32 = 14;
    pub(crate) const READ: u32 = 15;
    pub(crate) const WRITE: u32 = 16;
    pub(crate) const STATFS: u32 = 17;
    pub(crate) const RELEASE: u32 = 18;
    pub(crate) const FSYNC: u32 = 20;
    pub(crate) const GETXATTR: u32 = 22;
    pub(crate) const LISTXATTR: u32 = 23;
    pub(crate) const FLUSH: u32 = 25;
    pub(crate) const INIT: u32 = 26;
    pub(crate) const OPENDIR: u32 = 27;
    pub(crate) const READDIR: u32 = 28;
    pub(crate) const RELEASEDIR: u32 = 29;
    pub(crate) const DESTROY: u32 = 38;
    pub(crate) const BATCH_FORGET: u32 = 42;
    pub(crate) const FALLOCATE: u32 = 43;
    pub(crate) const READDIRPLUS: u32 = 44;
    pub(crate) const LSEEK: u32 = 46;
    /// Requests that use an inode's contents.
    pub(crate) const USES: [u32; 4] = [READLINK, READ, READDIR, READDIRPLUS];
    /// Requests that modify the filesystem.
    pub(crate) const CHANGES: [u32; 16] = [4, 6, 8, 9, 10, 11, 12, 13, 16, 21, 24, 35, 43, 45, 47, 51];
}

/// Flags of the handshake.
pub(crate) mod init {
    pub(crate) const ASYNC_READ: u32 = 1 << 0;
    pub(crate) const EXPORT_SUPPORT: u32 = 1 << 4;
    pub(crate) const DO_READDIRPLUS: u32 = 1 << 13;
    pub(crate) const ASYNC_DIO: u32 = 1 << 15;
    pub(crate) const NO_OPEN_SUPPORT: u32 = 1 << 17;
    pub(crate) const PARALLEL_DIROPS: u32 = 1 << 18;
    pub(crate) const POSIX_ACL: u32 = 1 << 20;
    pub(crate) const MAX_PAGES: u32 = 1 << 22;
    pub(crate) const CACHE_SYMLINKS: u32 = 1 << 23;
    pub(crate) const NO_OPENDIR_SUPPORT: u32 = 1 << 24;
    /// Flag that the second word of flags is valid.
    pub(crate) const INIT_EXT: u32 = 1 << 30;
    /// `FUSE_OVER_IO_URING` in the second word of flags, since Linux 6.14.
    pub(crate) const OVER_IO_URING: u32 = 1 << 9;
}

/// Commands of io_uring on the device (`enum fuse_uring_cmd`), and the memory that they refer to
/// (`struct fuse_uring_req_header`).
pub(crate) mod uring {
    use std::ops::Range;

    pub(crate) const REGISTER: u32 = 1;
    /// Answers the request of an entry, which is then free for the next one.
    pub(crate) const COMMIT_AND_FETCH: u32 = 2;
    /// Header of a request, and then of its answer.
    pub(crate) const IN_OUT: Range<usize> = 0..128;
    /// Arguments of a request that have a constant length.
    pub(crate) const OP_IN: Range<usize> = 128..256;
    /// [`super::RingEntryInOut`].
    pub(crate) const ENTRY: Range<usize> = 256..288;
}

/// Notification with bytes of a file that the kernel may cache (`enum fuse_notify_code`).
pub(crate) const NOTIFY_STORE: i32 = 4;

pub(crate) const FOPEN_DIRECT_IO: u32 = 1 << 0;
pub(crate) const FOPEN_KEEP_CACHE: u32 = 1 << 1;
pub(crate) const FOPEN_CACHE_DIR: u32 = 1 << 3;

pub(crate) const FOPEN_PARALLEL_DIRECT_WRITES: u32 = 1 << 6;

/// `FALLOC_FL_KEEP_SIZE`, `FALLOC_FL_PUNCH_HOLE` and `FALLOC_FL_ZERO_RANGE` of
/// `uapi/linux/falloc.h`.
pub(crate) mod falloc {
    pub(crate) const KEEP_SIZE: u32 = 1;
    pub(crate) const PUNCH_HOLE: u32 = 2;
    pub(crate) const ZERO_RANGE: u32 = 16;
}

pub(crate) const SEEK_DATA: u32 = 3;
pub(crate) const SEEK_HOLE: u32 = 4;

macro_rules! structures {
    ($($(#[$meta:meta])* $name:ident = $len:literal { $($field:ident: $kind:ty),* $(,)? })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, FromBytes, Immutable, IntoBytes, KnownLayout)]
        #[repr(C)]
        pub(crate) struct $name { $(pub(crate) $field: $kind),* }
        const _: () = assert!(size_of::<$name>() == $len);
    )*};
}

structures! {
    /// `struct fuse_in_header`.
    InHeader = 40 {
        len: u32, opcode: u32, unique: u64, nodeid: u64, uid: u32, gid: u32, pid: u32, total_extlen: u16, padding: u16,
    }
    /// `struct fuse_out_header`.
    OutHeader = 16 { len: u32, error: i32, unique: u64 }
    /// The part of `struct fuse_init_in` that all versions have.
    InitIn = 16 { major: u32, minor: u32, max_readahead: u32, flags: u32 }
    /// The rest of it, since 7.36.
    InitInExt = 48 { flags2: u32, unused: [u32; 11] }
    /// `struct fuse_uring_ent_in_out`.
    RingEntryInOut = 32 { flags: u64, commit_id: u64, payload_len: u32, padding: u32, reserved: u64 }
    /// `struct fuse_uring_cmd_req`.
    RingCommand = 24 { flags: u64, commit_id: u64, queue: u16, padding: [u8; 6] }
    /// `struct fuse_init_out`.
    InitOut = 64 {
        major: u32, minor: u32, max_readahead: u32, flags: u32, max_background: u16, congestion_threshold: u16,
        max_write: u32, time_gran: u32, max_pages: u16, map_alignment: u16, flags2: u32, unused: [u32; 7],
    }
    /// `struct fuse_attr`.
    Attr = 88 {
        ino: u64, size: u64, blocks: u64, atime: u64, mtime: u64, ctime: u64, atimensec: u32, mtimensec: u32,
        ctimensec: u32, mode: u32, nlink: u32, uid: u32, gid: u32, rdev: u32, blksize: u32, flags: u32,
    }
    /// `struct fuse_attr_out`.
    AttrOut = 104 { attr_valid: u64, attr_valid_nsec: u32, dummy: u32, attr: Attr }
    /// `struct fuse_entry_out`.
    EntryOut = 128 {
        nodeid: u64, generation: u64, entry_valid: u64, attr_valid: u64, entry_valid_nsec: u32, attr_valid_nsec: u32,
        attr: Attr,
    }
    /// `struct fuse_open_out`.
    OpenOut = 16 { fh: u64, open_flags: u32, backing_id: i32 }
    /// `struct fuse_read_in`.
    ReadIn = 40 {
        fh: u64, offset: u64, size: u32, read_flags: u32, lock_owner: u64, flags: u32, padding: u32,
    }
    /// `struct fuse_write_in`, followed by the bytes.
    WriteIn = 40 {
        fh: u64, offset: u64, size: u32, write_flags: u32, lock_owner: u64, flags: u32, padding: u32,
    }
    /// `struct fuse_write_out`.
    WriteOut = 8 { size: u32, padding: u32 }
    /// `struct fuse_fallocate_in`.
    FallocateIn = 32 { fh: u64, offset: u64, length: u64, mode: u32, padding: u32 }
    /// `struct fuse_getxattr_in`, also for listing names.
    GetXattrIn = 8 { size: u32, padding: u32 }
    /// `struct fuse_getxattr_out`.
    GetXattrOut = 8 { size: u32, padding: u32 }
    /// `struct fuse_notify_store_out`, followed by the bytes.
    NotifyStoreOut = 24 { nodeid: u64, offset: u64, size: u32, padding: u32 }
    /// `struct fuse_lseek_in`.
    LseekIn = 24 { fh: u64, offset: u64, whence: u32, padding: u32 }
    /// `struct fuse_kstatfs`, which is all of `struct fuse_statfs_out`.
    StatfsOut = 80 {
        blocks: u64, bfree: u64, bavail: u64, files: u64, ffree: u64, bsize: u32, namelen: u32, frsize: u32,
        padding: u32, spare: [u32; 6],
    }
    /// `struct fuse_dirent` without its name.
    Dirent = 24 { ino: u64, off: u64, namelen: u32, kind: u32 }
}
