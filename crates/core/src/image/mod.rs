//! Bytes at an offset: a file or block device, memory, any reader, a slice of another image, an
//! image with some blocks replaced.
//!
//! Every image can be read by any thread at any position. None of them caches: the kernel caches
//! files, the read engine caches decoded blocks.

mod beginning;
mod file;
mod joined;
mod memory;
mod overlay;
mod reader;
mod sequential;
mod slice;

pub use beginning::BeginningImage;
pub use file::FileImage;
pub use joined::JoinedImage;
pub use memory::MemoryImage;
pub use overlay::OverlayImage;
pub use reader::ReaderImage;
pub use sequential::ImageReader;
pub use slice::SliceImage;

use crate::{Error, Result};
use std::any::Any;
use std::ops::Range;

/// Transfers of a remote image since it was opened. Values only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// Requests sent, including repeated ones.
    pub requests: u64,
    /// Waits for requests; requests sent together count once.
    pub rounds: u64,
    /// Bytes of bodies received.
    pub bytes: u64,
    /// Requests repeated after a failure.
    pub retries: u64,
    /// Bytes taken from the cache on disk.
    pub cached_bytes: u64,
}

/// Image that many threads read by position.
pub trait Image: Send + Sync {
    /// Returns the length in bytes.
    fn len(&self) -> u64;

    /// Returns true if the image has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads up to `buf.len()` bytes at `offset`; fewer only at the end of the image.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize>;

    /// Returns the first run of data at or after `offset`; everything between is a hole. `None` if
    /// only a hole follows.
    ///
    /// An image that does not report holes returns one run up to the end.
    fn next_data(&self, offset: u64) -> Result<Option<Range<u64>>> {
        Ok((offset < self.len()).then_some(offset..self.len()))
    }

    /// Hints that these ranges will be read soon. A remote image fetches them in parallel; errors
    /// are left to the reads. A local image ignores the hint.
    fn will_read(&self, ranges: &[Range<u64>]) {
        let _ = ranges;
    }

    /// Returns the transfers so far; `None` for a local image.
    fn fetched(&self) -> Option<Fetched> {
        None
    }

    /// Returns the object that the image is, for the store that has it; `None` for an image of no
    /// store.
    fn object(&self) -> Option<&dyn Any> {
        None
    }

    /// Checks, after reading, that the image is unchanged since it was opened, as far as
    /// detectable. Data read before may be of both states.
    ///
    /// Errors: `Failed`, naming the file that changed.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the image's name in messages, usually its path in quotes.
    fn name(&self) -> String;

    /// Fills `buf` from `offset`.
    ///
    /// Errors: `Corrupt` if the image ends first, with a hint that it looks truncated.
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let end = offset.saturating_add(buf.len() as u64);
        if end <= self.len() && self.read_at(offset, buf)? == buf.len() {
            return Ok(());
        }
        let fault = format!("wanted {} bytes at {offset:#x}, image ends at {:#x}", buf.len(), self.len());
        Err(Error::corrupt(self.name(), fault).hint("the file looks truncated"))
    }
}
