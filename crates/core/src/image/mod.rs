//! Bytes at an offset: a file or block device, memory, any reader, a slice of another image, an
//! image with some blocks replaced.
//!
//! Every image answers from any thread at once and keeps no position. None here caches: the kernel
//! caches files, the read engine caches decoded blocks.

mod beginning;
mod fetched;
mod file;
mod joined;
mod memory;
mod overlay;
mod reader;
mod sequential;
mod slice;

pub use beginning::BeginningImage;
pub use fetched::Fetched;
pub use file::FileImage;
pub use joined::JoinedImage;
pub use memory::MemoryImage;
pub use overlay::OverlayImage;
pub use reader::ReaderImage;
pub use sequential::ImageReader;
pub use slice::SliceImage;

use crate::{Error, Result};
use std::ops::Range;

/// An image to read from, by position, from many threads at once.
pub trait Image: Send + Sync {
    /// Length in bytes.
    fn len(&self) -> u64;

    /// Returns true if the image has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads up to `buf.len()` bytes at `offset`; fewer only at the end of the image.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize>;

    /// The first run of data at or after `offset`, everything between being a hole; `None` if only
    /// a hole is left.
    ///
    /// An image that does not know its holes answers with one run up to the end.
    fn next_data(&self, offset: u64) -> Result<Option<Range<u64>>> {
        Ok((offset < self.len()).then_some(offset..self.len()))
    }

    /// Takes a hint: these ranges will be read soon. An image that is far away fetches them at
    /// once, in parallel; errors are left to the reads. A local image ignores it.
    fn will_read(&self, ranges: &[Range<u64>]) {
        let _ = ranges;
    }

    /// Returns the transfers that its bytes have cost; `None` for a local image.
    fn fetched(&self) -> Option<Fetched> {
        None
    }

    /// Says, after reading, whether the image is what it was when it was opened, as far as it can
    /// tell. What was read before may be of both.
    ///
    /// Errors: `Failed`, naming the file, if it was changed meanwhile.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the image's name in messages, usually its path in quotes.
    fn name(&self) -> String;

    /// Fills `buf` from `offset`.
    ///
    /// Errors: `Corrupt` when the image ends before that, with a hint that it looks truncated.
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let end = offset.saturating_add(buf.len() as u64);
        if end <= self.len() && self.read_at(offset, buf)? == buf.len() {
            return Ok(());
        }
        let fault = format!("wanted {} bytes at {offset:#x}, image ends at {:#x}", buf.len(), self.len());
        Err(Error::corrupt(self.name(), fault).hint("the file looks truncated"))
    }
}
