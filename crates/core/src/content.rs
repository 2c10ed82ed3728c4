//! Sources of the bytes of files while packing, comparing or archiving.

use crate::Result;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Names one file's contents to the [`Contents`] that handed it out; no other can use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentId(pub u64);

/// Contents of files, opened one at a time from any thread.
pub trait Contents: Send + Sync {
    /// Opens one file's contents.
    ///
    /// Errors name the file, unless [`Contents::names_files`] is false. A file with another length
    /// or time than the tree's is an error.
    fn open(&self, id: ContentId) -> Result<Box<dyn ContentReader + '_>>;

    /// True if errors name the file that they are about. The reader of an image knows no paths: its
    /// caller names the file.
    fn names_files(&self) -> bool {
        true
    }

    /// Returns a description of the places where the file's bytes are stored, if it is known and
    /// short: files of one length with equal descriptions have equal bytes. Snapshots, reflinks,
    /// and images without duplicates store files so.
    fn place(&self, id: ContentId) -> Option<Box<[u64]>> {
        let _ = id;
        None
    }

    /// Returns the offset of the file's bytes in the file that the source was read from, if they
    /// are stored there as they are, in one run.
    fn stored_at(&self, id: ContentId) -> Option<u64> {
        let _ = id;
        None
    }

    /// Says, after reading, whether the image or archive that all files are read from is unchanged,
    /// as far as it can tell. Single files tell it themselves.
    ///
    /// Errors: `Failed`, naming it, if it was changed meanwhile.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }
}

/// One opened file.
pub trait ContentReader: Send {
    /// Fills `buf` from `offset`; holes read as zeros. A source that ends too early is an error.
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// The first run of data at or after `offset`, everything between being a hole; `None` if only
    /// a hole is left.
    ///
    /// A source that does not know its holes answers with one run up to the end.
    fn next_data(&mut self, offset: u64) -> Result<Option<Range<u64>>>;

    /// Returns the file of this machine that holds these contents and nothing else, if there is
    /// one: a copy of it may share its blocks.
    fn file(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Says, after reading, whether what was read is what the source holds still, as far as it can
    /// tell.
    ///
    /// Errors: `Failed`, naming the file, if it was changed meanwhile.
    fn check_unchanged(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Contents held in memory, by index: for tests and small generated trees.
#[derive(Default)]
pub struct Held(Vec<Arc<[u8]>>);

impl Held {
    /// Keeps `bytes` and returns their id.
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
