//! Parts of a [`crate::Volume`], each a trait that a format implements where the work is done; and
//! abilities of some volumes, which return them: a format without an ability omits it.

use crate::{DirCursor, DirEntry, Finding, InodeId, Object, SpaceOwner, StoredExtent};
use packfs_core::{Error, Result};
use std::ops::{ControlFlow, Range};

/// A file of a volume that is itself an image: the disk in a compressed one, a partition of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InnerImage {
    /// The file.
    pub id: InodeId,
    /// Name of the file.
    pub name: String,
}

/// Directories of a volume.
///
/// Errors of all methods: as those of [`crate::Volume`].
pub trait Directories {
    /// Finds `name` in a directory; `None` if it does not exist.
    fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>>;

    /// Calls `visit` for each entry from `from` on, in stored order, without `.` and `..`; each
    /// entry comes with the cursor of the next. Ends early when `visit` breaks. Damaged entries may
    /// be skipped, with an error at the end.
    fn read_dir(
        &self,
        dir: InodeId,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()>;

    /// True if every listing of a valid image is sorted by the bytes of names, because readers rely
    /// on it to find them.
    fn is_sorted(&self) -> bool {
        false
    }
}

/// Check of a volume.
pub trait Check {
    /// Checks every structure (not file data), calling `found` for each fault; an `Err` ends the
    /// check early.
    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()>;
}

/// Map of the bytes of an image.
pub trait Space {
    /// Returns the owner of each byte of the image file, in order; lengths add up to its length.
    fn space(&self) -> Result<Vec<SpaceOwner>>;
}

/// State of an image as a whole, for formats that record or detect it.
pub trait Health {
    /// Returns a fault of the image as a whole that does not prevent reading it, such as a wrong
    /// checksum: an error unless the caller chose to ignore it. Cheap; callers that read all of the
    /// image call [`Health::whole_fault`], too.
    fn fault(&self) -> Option<Error> {
        None
    }

    /// Returns a fault that takes more reads to find than [`Health::fault`]: in tables that
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

    /// Returns warnings about reads since the image was opened, such as damaged copies that intact
    /// ones replaced.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Images in a container: a compressed disk, a table of partitions. Callers that open such a volume
/// usually want the image inside.
pub trait Inside {
    /// Returns the files that are themselves images.
    fn inner_images(&self) -> Result<Vec<InnerImage>>;

    /// Returns the faults that were worked around on opening, such as a partition after the end of
    /// the disk. Callers that read an image within this one report them, too.
    fn known_faults(&self) -> Vec<Finding>;
}

/// Digests of files that an image records.
pub trait FileDigests {
    /// Returns the recorded digest of a file, as stored; `None` without one.
    fn recorded_digest(&self, id: InodeId) -> Result<Option<Vec<u8>>>;
}

/// Contents of files outside of the image.
pub trait ObjectFiles {
    /// Returns the object outside of the image with the contents of a file; `None` for contents in
    /// the image.
    fn object(&self, id: InodeId) -> Result<Option<Object>>;

    /// Returns the total length in bytes of all objects whose extents were requested so far, each
    /// counted once.
    fn objects_len(&self) -> u64;
}

/// Stored extents with separate figures.
pub trait Storage {
    /// Calls `visit` for the stored extents of a file of `len` bytes, in file order, without holes.
    fn stored_extents(
        &self,
        id: InodeId,
        len: u64,
        visit: &mut dyn FnMut(StoredExtent) -> ControlFlow<()>,
    ) -> Result<()>;

    /// True if the bytes at `stored` of the data image have a checksum that reads verify.
    fn verifies(&self, stored: Range<u64>) -> Result<bool> {
        let _ = stored;
        Ok(false)
    }
}

/// Control of prefetching and of caches.
pub trait Caching {
    /// Makes a remote image fetch these inodes, and the entries of the directories among them, in
    /// parallel. Errors are left to the reads.
    fn will_read_inodes(&self, _ids: &[InodeId]) {}

    /// Drops all caches of the image, and limits them to about this many bytes from now on: for
    /// callers with many volumes at once.
    fn keep_at_most(&self, len_max: usize);
}
