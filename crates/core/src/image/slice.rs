//! An image within another one.

use crate::{Error, Fetched, Image, Result};
use std::ops::Range;
use std::sync::Arc;

/// Range of another image.
pub struct SliceImage {
    whole: Arc<dyn Image>,
    offset: u64,
    len: u64,
}

impl SliceImage {
    /// Creates an image of `len` bytes from `offset` on, or of all that follow.
    ///
    /// Errors: `Usage` if `whole` is too short.
    pub fn new(whole: Arc<dyn Image>, offset: u64, len: Option<u64>) -> Result<Self> {
        let rest = whole.len().checked_sub(offset);
        let slice_len =
            rest.map(|rest| len.unwrap_or(rest)).filter(|&len| rest.is_some_and(|rest| len <= rest));
        let Some(len) = slice_len else {
            let wanted = len.map_or("the rest".into(), |len| format!("{len} bytes"));
            let message = format!(
                "{}: {wanted} from offset {offset} is outside of its {} bytes",
                whole.name(),
                whole.len()
            );
            return Err(Error::usage(message));
        };
        Ok(SliceImage { whole, offset, len })
    }
}

impl Image for SliceImage {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let room = self.len.saturating_sub(offset).min(buf.len() as u64);
        if room == 0 {
            return Ok(0);
        }
        self.whole.read_at(self.offset.saturating_add(offset), &mut buf[..room as usize])
    }

    fn next_data(&self, offset: u64) -> Result<Option<Range<u64>>> {
        if offset >= self.len {
            return Ok(None);
        }
        let found = self.whole.next_data(self.offset.saturating_add(offset))?;
        let within = |at: u64| at.saturating_sub(self.offset).min(self.len);
        Ok(found.map(|run| within(run.start)..within(run.end)).filter(|run| !run.is_empty()))
    }

    fn will_read(&self, ranges: &[Range<u64>]) {
        let place = |at: u64| self.offset.saturating_add(at.min(self.len));
        let ranges: Vec<_> = ranges.iter().map(|range| place(range.start)..place(range.end)).collect();
        self.whole.will_read(&ranges);
    }

    fn fetched(&self) -> Option<Fetched> {
        self.whole.fetched()
    }

    fn check_unchanged(&self) -> Result<()> {
        self.whole.check_unchanged()
    }

    fn name(&self) -> String {
        format!("{} at offset {}", self.whole.name(), self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryImage;

    fn whole() -> Arc<dyn Image> {
        Arc::new(MemoryImage::new("test", (0..10).collect()))
    }

    #[test]
    fn reads_only_its_stretch() {
        let slice = SliceImage::new(whole(), 3, Some(4)).unwrap();
        let mut buf = [0xff; 8];
        assert_eq!(slice.read_at(0, &mut buf).unwrap(), 4);
        assert_eq!(buf, [3, 4, 5, 6, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(slice.read_at(2, &mut buf).unwrap(), 2);
        assert_eq!(slice.read_at(4, &mut buf).unwrap(), 0);
        assert_eq!(slice.read_at(u64::MAX, &mut buf).unwrap(), 0);
        assert!(slice.read_exact_at(2, &mut [0; 3]).is_err());
    }

    #[test]
    fn refuses_a_stretch_outside_of_the_whole() {
        assert!(SliceImage::new(whole(), 11, None).is_err());
        assert!(SliceImage::new(whole(), 8, Some(3)).is_err());
        assert!(SliceImage::new(whole(), u64::MAX, Some(u64::MAX)).is_err());
        assert_eq!(SliceImage::new(whole(), 10, None).unwrap().len(), 0);
    }
}
