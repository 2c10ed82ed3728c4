//! An opened image: plain facts about its nodes, names and extents. It never decodes file data.

use crate::{AnyStored, Coding, Facts, Finding, FormatInfo, KernelReads, Object, SpaceOwner};
use packfs_codec::{Algorithm, BlockRef};
use packfs_core::overlay::Candidate;
use packfs_core::{DeviceNumber, Error, FileType, Image, Meta, Result, Xattrs, len_of, range_at, u32_of};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Names an inode to the [`Volume`] that handed it out; two entries with the same id are hard links
/// to one inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InodeId(pub u64);

/// Position within a directory listing; 0 is the start, other values belong to the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirCursor(pub u64);

/// The type-specific part of an [`Inode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InodeKind {
    /// A directory.
    Directory,
    /// A regular file of so many bytes.
    File {
        /// Length in bytes, holes included.
        len: u64,
    },
    /// A symbolic link; its target comes from [`Volume::read_link`].
    Symlink,
    /// A block device.
    BlockDevice(DeviceNumber),
    /// A character device.
    CharDevice(DeviceNumber),
    /// A named pipe.
    Fifo,
    /// A Unix socket.
    Socket,
}

impl From<InodeKind> for Candidate {
    fn from(kind: InodeKind) -> Self {
        match kind {
            InodeKind::CharDevice(number) => Candidate::of_device(number),
            InodeKind::File { len } => Candidate::of_file(len),
            _ => Candidate::Other,
        }
    }
}

impl InodeKind {
    /// The type without its details.
    pub fn file_type(self) -> FileType {
        match self {
            InodeKind::Directory => FileType::Directory,
            InodeKind::File { .. } => FileType::File,
            InodeKind::Symlink => FileType::Symlink,
            InodeKind::BlockDevice(_) => FileType::BlockDevice,
            InodeKind::CharDevice(_) => FileType::CharDevice,
            InodeKind::Fifo => FileType::Fifo,
            InodeKind::Socket => FileType::Socket,
        }
    }

    /// The units of 512 bytes that a file fills, holes included; 0 for anything else.
    pub fn sectors_filled(self) -> u64 {
        match self {
            InodeKind::File { len } => len.div_ceil(512),
            _ => 0,
        }
    }
}

/// An inode as the image describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Type and its details.
    pub kind: InodeKind,
    /// Permissions, owner, time.
    pub meta: Meta,
    /// Link count as stored.
    pub links: u32,
    /// Inode number as stored; not an identity, hostile images repeat them.
    pub number: u64,
    /// A statement of the image about it that cannot be true, though it can be read.
    pub doubt: Option<&'static str>,
    /// True if [`Volume::xattrs`] would return anything.
    pub has_xattrs: bool,
    /// Blocks of 512 bytes as `stat` reports them, counted as Linux's driver of the format does;
    /// [`InodeKind::sectors_filled`] where Linux has no driver or derives them from the length.
    pub sectors: u64,
}

/// One entry of a directory. The name has passed [`packfs_core::Name::new`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name, checked.
    pub name: Vec<u8>,
    /// The inode it names.
    pub id: InodeId,
    /// The type the entry claims; the inode has the last word.
    pub file_type: FileType,
}

/// A run of a file's bytes and where they come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Start of the run in the file, in bytes.
    pub offset: u64,
    /// Its length in bytes; never 0.
    pub len: u64,
    /// Source of its bytes.
    pub from: ExtentFrom,
}

impl Extent {
    /// Returns the bytes of the file that it covers.
    pub fn range(&self) -> Range<u64> {
        range_at(self.offset, self.len)
    }

    /// Returns the part of it that lies in `range` of the file, if any does.
    pub(crate) fn within(self, range: &Range<u64>) -> Option<Extent> {
        let part = self.offset.max(range.start)..self.range().end.min(range.end);
        let cut = part.start.saturating_sub(self.offset);
        let from = match self.from {
            ExtentFrom::Hole => ExtentFrom::Hole,
            ExtentFrom::Stored(at) => ExtentFrom::Stored(at.saturating_add(cut)),
            ExtentFrom::Block { block, start } => {
                ExtentFrom::Block { block, start: start.saturating_add(u32_of(cut)) }
            }
        };
        (!part.is_empty()).then(|| Extent { offset: part.start, len: len_of(&part), from })
    }
}

/// Source of the bytes of an [`Extent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtentFrom {
    /// Nowhere: zeros.
    Hole,
    /// From the image as they are, starting at this offset.
    Stored(u64),
    /// A slice of a decoded block, from `start` on for as long as the extent is.
    Block {
        /// The block.
        block: BlockRef,
        /// First byte within the decoded block.
        start: u32,
    },
}

/// A stored extent of a file, as reports of compression count it. Holes have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredExtent {
    /// Name of the codec, `none` for data that is not compressed.
    pub codec: &'static str,
    /// Place that tells stored bytes apart: extents with the same one are stored once. `None` for
    /// bytes of this file alone, beside its metadata.
    pub place: Option<u64>,
    /// Bytes that the whole extent takes.
    pub stored_len: u64,
    /// Bytes that the whole extent holds.
    pub decoded_len: u64,
    /// Bytes of it that belong to the file.
    pub used_len: u64,
}

impl StoredExtent {
    /// Returns the stored extent that a part of a file comes from; `None` for a hole.
    pub fn of(extent: &Extent) -> Option<StoredExtent> {
        let used_len = extent.len;
        match extent.from {
            ExtentFrom::Hole => None,
            ExtentFrom::Stored(at) => Some(StoredExtent {
                codec: "none",
                place: Some(at),
                stored_len: used_len,
                decoded_len: used_len,
                used_len,
            }),
            ExtentFrom::Block { block, .. } => Some(StoredExtent {
                codec: block.algorithm.map_or("none", Algorithm::name),
                place: Some(block.offset),
                stored_len: block.stored_len.into(),
                decoded_len: block.decoded_len.into(),
                used_len,
            }),
        }
    }
}

/// A file of a volume that is an image itself: the disk in a compressed one, a partition of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InnerImage {
    /// The file.
    pub id: InodeId,
    /// Its name: that of the file.
    pub name: String,
}

/// An opened image of any format. Every method may be called from any thread; every figure returned
/// has been checked.
///
/// Errors of all methods: `Corrupt` where the image breaks its format's rules, `Io` where it cannot
/// be read.
pub trait Volume: Send + Sync {
    /// Returns the identity of the format.
    fn format(&self) -> &'static FormatInfo;

    /// The root directory.
    fn root(&self) -> InodeId;

    /// Returns an inode.
    fn inode(&self, id: InodeId) -> Result<Inode>;

    /// Finds `name` in a directory; `None` if it is not there.
    fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>>;

    /// Calls `visit` for each entry from `from` on, in stored order, without `.` and `..`; each
    /// entry comes with the cursor that goes on after it. Ends early when `visit` breaks. Entries
    /// that are damaged may be passed over, to be told of by an error at the end.
    fn read_dir(
        &self,
        dir: InodeId,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()>;

    /// True if names rise, byte by byte, in every listing of an image that keeps the rules of its
    /// format, because readers rely on it to find them.
    fn is_sorted(&self) -> bool {
        false
    }

    /// A fault of the image as a whole though all of it can be read, such as a checksum that is not
    /// that of its bytes: an error unless the caller chose to ignore it. Cheap; whatever reads all
    /// of the image asks for [`Volume::whole_fault`], too.
    fn fault(&self) -> Option<Error> {
        None
    }

    /// Returns a fault that takes more reading to find than [`Volume::fault`]: in tables that
    /// describe the whole image, and with `checksum` in everything that a checksum covers.
    fn whole_fault(&self, checksum: bool) -> Result<Option<Error>> {
        let _ = checksum;
        Ok(None)
    }

    /// Returns warnings for the user about the image as it was opened, such as changes in a journal
    /// that were not applied.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the faults that opening the image met and worked around, such as a partition beyond
    /// the end of the disk. Callers that read an image within this one tell of them, too.
    fn known_faults(&self) -> Vec<Finding> {
        Vec::new()
    }

    /// Returns warnings about what was read since the image was opened, such as damaged copies that
    /// intact ones replaced.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// The target of a symbolic link, raw bytes.
    fn read_link(&self, id: InodeId) -> Result<Vec<u8>>;

    /// The extended attributes of an inode, by full name; none where the format has none.
    fn xattrs(&self, id: InodeId) -> Result<Xattrs> {
        let _ = id;
        Ok(Xattrs::new())
    }

    /// Returns true if the image marks an attribute as the digest of each file.
    fn records_digests(&self) -> bool {
        false
    }

    /// Returns the digest of a file that the image records, as it is stored; `None` without one.
    fn recorded_digest(&self, id: InodeId) -> Result<Option<Vec<u8>>> {
        let _ = id;
        Ok(None)
    }

    /// Calls `visit` for the extents that cover `range` of a file, in file order, first and last
    /// cut to the range. Ends early when `visit` breaks.
    fn extents(
        &self,
        id: InodeId,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()>;

    /// Returns the object outside of the image that holds the contents of a file; `None` for
    /// contents in the image.
    fn object(&self, id: InodeId) -> Result<Option<Object>> {
        let _ = id;
        Ok(None)
    }

    /// Returns the length of all objects that extents were asked of so far, each once, in bytes.
    fn objects_len(&self) -> u64 {
        0
    }

    /// Calls `visit` for the stored extents of a file of `len` bytes, in file order, without holes.
    /// Formats whose extents have figures of their own return those.
    fn stored_extents(
        &self,
        id: InodeId,
        len: u64,
        visit: &mut dyn FnMut(StoredExtent) -> ControlFlow<()>,
    ) -> Result<()> {
        self.extents(id, 0..len, &mut |extent| match StoredExtent::of(&extent) {
            Some(stored) => visit(stored),
            None => ControlFlow::Continue(()),
        })
    }

    /// Returns the image that offsets of extents and blocks refer to, if that is not the opened
    /// image alone: images spread over several devices, or stored bytes within decoded ones. `None`
    /// means the image that the volume was opened from.
    fn data_image(&self) -> Option<Arc<dyn Image>> {
        None
    }

    /// True if the bytes at `stored` of the data image have a checksum that is verified when they
    /// are read.
    fn verifies(&self, stored: Range<u64>) -> Result<bool> {
        let _ = stored;
        Ok(false)
    }

    /// The files that are images themselves, where the volume is no more than what holds them: a
    /// compressed disk, a table of partitions. Callers that open such a volume usually want the
    /// image inside.
    fn inner_images(&self) -> Result<Vec<InnerImage>> {
        Ok(Vec::new())
    }

    /// Returns the length of the image with the padding of its format; `None` if the image does not
    /// record it.
    fn image_len(&self) -> Option<u64>;

    /// Returns the data as it is stored, if another image of the format can hold it as it is.
    fn stored(&self) -> Option<AnyStored<'_>> {
        None
    }

    /// Returns the encoding of its blocks, if they may be copied into another image of the format.
    fn coding(&self) -> Option<Coding> {
        None
    }

    /// The file that tails of others lie in, one after the other, and its length, where the format
    /// has one. Its extents are asked for like those of any file.
    fn packed_stream(&self) -> Option<(InodeId, u64)> {
        None
    }

    /// Returns the way of Linux's driver to a file, where it is known.
    fn kernel_reads(&self) -> Result<Option<Box<dyn KernelReads + '_>>> {
        Ok(None)
    }

    /// Has an image far away fetch these inodes, and the entries of those that are directories, all
    /// at once. Errors are left to the reads.
    fn will_read_inodes(&self, _ids: &[InodeId]) {}

    /// Drops all that is kept of the image in memory only to answer faster, and keeps about so many
    /// bytes of it from now on: for callers with many volumes at once.
    fn keep_at_most(&self, len_max: usize) {
        let _ = len_max;
    }

    /// Returns the number of inodes that the image claims; a hint that no allocation may trust.
    fn inode_count_hint(&self) -> u64;

    /// The time the image was made, seconds since 1970, where the format records it.
    fn made_at(&self) -> Option<i64> {
        None
    }

    /// Returns the facts that `info` prints.
    fn facts(&self) -> Result<Facts>;

    /// Returns the owner of each byte of the image file, in order; lengths add up to its length.
    fn space(&self) -> Result<Vec<SpaceOwner>>;

    /// Checks every structure (not file data), calling `found` for each fault; an `Err` ends the
    /// check early.
    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()>;
}
