//! Sources of the bytes of files while packing, comparing or archiving.

use crate::Result;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Identifies one file's contents to the [`Contents`] that assigned it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentId(pub u64);

/// Contents of files, opened one at a time from any thread.
pub trait Contents: Send + Sync {
    /// Opens one file's contents.
    ///
    /// Errors name the file, unless [`Contents::names_files`] is false. A length or time other than
    /// the tree's is an error.
    fn open(&self, id: ContentId) -> Result<Box<dyn ContentReader + '_>>;

    /// Returns true if errors name the file. The reader of an image knows no paths, so its caller
    /// names the file.
    fn names_files(&self) -> bool {
        true
    }

    /// Returns a short description of the storage of the file's bytes, if known: files of one
    /// length with equal descriptions have equal bytes, as for snapshots, reflinks, and images
    /// without duplicates.
    fn place(&self, id: ContentId) -> Option<Box<[u64]>> {
        let _ = id;
        None
    }

    /// Returns the offset of the file's bytes in the file that the source was read from, if they
    /// are stored there unchanged in one run.
    fn stored_at(&self, id: ContentId) -> Option<u64> {
        let _ = id;
        None
    }

    /// Checks, after reading, that the image or archive with all files is unchanged, as far as
    /// detectable. Single files check themselves.
    ///
    /// Errors: `Failed`, naming the file that changed.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }
}

/// Opened file.
pub trait ContentReader: Send {
    /// Fills `buf` from `offset`; holes read as zeros. A source that ends too early is an error.
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Returns the first run of data at or after `offset`; everything between is a hole. `None` if
    /// only a hole follows.
    ///
    /// A source that does not report holes returns one run up to the end.
    fn next_data(&mut self, offset: u64) -> Result<Option<Range<u64>>>;

    /// Returns the file of this machine that contains exactly these contents, if any: a copy of it
    /// may share its blocks.
    fn file(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Checks, after reading, that the source is unchanged, as far as detectable.
    ///
    /// Errors: `Failed`, naming the file that changed.
    fn check_unchanged(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Contents in memory, by index: for tests and small generated trees.
#[derive(Default)]
pub struct Held(Vec<Arc<[u8]>>);

impl Held {
    /// Adds `bytes` and returns their id.
    pub fn push(&mut self, bytes: impl Into<Arc<[u8]>>) -> ContentId {
        self.0.push(bytes.into());
        ContentId(self.0.len() as u64 - 1)
    }
}

impl Contents for Held {
    fn open(&self, id: ContentId) -> Result<Box<dyn ContentReader + '_>> {
        let bytes = usize::try_from(id.0).ok().and_then(|index| self.0.get(index));
        let bytes = bytes.ok_or_else(|| crate::Error::failed(format!("no contents with id {}", id.0)))?;
        Ok(Box::new(HeldReader(bytes)))
    }
}

struct HeldReader<'a>(&'a [u8]);

impl ContentReader for HeldReader<'_> {
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        let bytes = self.0[start..].get(..buf.len());
        buf.copy_from_slice(bytes.ok_or_else(|| crate::Error::failed("contents end early"))?);
        Ok(())
    }

    fn next_data(&mut self, offset: u64) -> Result<Option<Range<u64>>> {
        let len = self.0.len() as u64;
        Ok((offset < len).then_some(offset..len))
    }
}
