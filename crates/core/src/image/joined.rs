//! Several images as one.

use crate::{Error, Image, Result, usize_of};
use std::ops::Range;
use std::sync::Arc;

/// Images are joined at multiples of this, so that an offset within a block is preserved.
const ALIGN: u64 = 2 << 20;

/// Concatenation of images, for volumes with data in several; bytes between them read as zeros.
pub struct JoinedImage {
    parts: Vec<Part>,
    len: u64,
}

struct Part {
    start: u64,
    image: Arc<dyn Image>,
}

impl JoinedImage {
    /// Joins images.
    ///
    /// Errors: `Usage` if their total length exceeds that of any image.
    pub fn new(images: impl IntoIterator<Item = Arc<dyn Image>>) -> Result<Self> {
        let too_long = || Error::usage("the files together are longer than any image");
        let mut joined = JoinedImage { parts: Vec::new(), len: 0 };
        for image in images {
            let start = joined.len.checked_next_multiple_of(ALIGN).ok_or_else(too_long)?;
            let end = start.checked_add(image.len()).filter(|&end| end <= i64::MAX as u64);
            joined.len = end.ok_or_else(too_long)?;
            joined.parts.push(Part { start, image });
        }
        Ok(joined)
    }

    /// Returns the offset of the first byte of an image.
    pub fn start_of(&self, index: usize) -> Option<u64> {
        self.parts.get(index).map(|part| part.start)
    }
}

impl Image for JoinedImage {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let len = usize_of(self.len.saturating_sub(offset)).min(buf.len());
        let Some(buf) = buf.get_mut(..len) else { return Ok(0) };
        let end = offset.saturating_add(len as u64);
        let first = self.parts.partition_point(|part| part.start.saturating_add(part.image.len()) <= offset);
        buf.fill(0);
        for part in self.parts.iter().skip(first).take_while(|part| part.start < end) {
            let before = part.start.saturating_sub(offset);
            let from = offset.saturating_sub(part.start);
            let rest = buf.get_mut(usize_of(before)..).unwrap_or_default();
            let len = usize_of(part.image.len().saturating_sub(from)).min(rest.len());
            let (own, _) = rest.split_at_mut(len);
            if !own.is_empty() {
                part.image.read_exact_at(from, own)?;
            }
        }
        Ok(len)
    }

    fn next_data(&self, offset: u64) -> Result<Option<Range<u64>>> {
        let first = self.parts.partition_point(|part| part.start.saturating_add(part.image.len()) <= offset);
        for part in self.parts.iter().skip(first) {
            if let Some(found) = part.image.next_data(offset.saturating_sub(part.start))? {
                let place = |at: u64| part.start.saturating_add(at);
                return Ok(Some(place(found.start)..place(found.end)));
            }
        }
        Ok(None)
    }

    fn will_read(&self, ranges: &[Range<u64>]) {
        for part in &self.parts {
            let end = part.start.saturating_add(part.image.len());
            let cut = |range: &Range<u64>| range.start.max(part.start)..range.end.min(end);
            let own = ranges.iter().map(cut).filter(|range| !range.is_empty());
            let within = |at: u64| at.saturating_sub(part.start);
            let own: Vec<_> = own.map(|range| within(range.start)..within(range.end)).collect();
            if !own.is_empty() {
                part.image.will_read(&own);
            }
        }
    }

    fn check_unchanged(&self) -> Result<()> {
        self.parts.iter().try_for_each(|part| part.image.check_unchanged())
    }

    fn name(&self) -> String {
        self.parts.first().map(|part| part.image.name()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryImage;

    fn image(bytes: &[u8]) -> Arc<dyn Image> {
        Arc::new(MemoryImage::new("test", bytes.to_vec()))
    }

    #[test]
    fn images_start_at_multiples_and_gaps_are_zeros() {
        let joined = JoinedImage::new([image(&[1; 100]), image(&[2; 3]), image(&[]), image(&[3])]).unwrap();
        assert_eq!([0, 1, 3].map(|index| joined.start_of(index)), [Some(0), Some(ALIGN), Some(2 * ALIGN)]);
        assert_eq!((joined.start_of(4), joined.len()), (None, 2 * ALIGN + 1));
        let mut buf = [9; 8];
        assert_eq!(joined.read_at(96, &mut buf).unwrap(), 8);
        assert_eq!(buf, [1, 1, 1, 1, 0, 0, 0, 0]);
        assert_eq!(joined.read_at(ALIGN - 2, &mut buf).unwrap(), 8);
        assert_eq!(buf, [0, 0, 2, 2, 2, 0, 0, 0]);
        assert_eq!(joined.read_at(2 * ALIGN - 1, &mut buf).unwrap(), 2);
        assert_eq!(buf[..2], [0, 3]);
        assert_eq!(joined.read_at(u64::MAX, &mut buf).unwrap(), 0);
    }

    #[test]
    fn bytes_between_images_are_no_data() {
        let joined = JoinedImage::new([image(&[1; 100]), image(&[2; 3])]).unwrap();
        let found = [0, 99, 100, ALIGN + 1, ALIGN + 3].map(|offset| joined.next_data(offset).unwrap());
        let wanted = [Some(0..100), Some(99..100), Some(ALIGN..ALIGN + 3), Some(ALIGN + 1..ALIGN + 3), None];
        assert_eq!(found, wanted);
    }

    #[test]
    fn hints_reach_the_images_that_they_are_about() {
        struct Hinted(std::sync::Mutex<Vec<Range<u64>>>);
        impl Image for Hinted {
            fn len(&self) -> u64 {
                100
            }
            fn read_at(&self, _: u64, _: &mut [u8]) -> Result<usize> {
                Ok(0)
            }
            fn will_read(&self, ranges: &[Range<u64>]) {
                self.0.lock().unwrap().extend_from_slice(ranges);
            }
            fn name(&self) -> String {
                "hinted".into()
            }
        }
        let parts = [(); 3].map(|()| Arc::new(Hinted(Default::default())));
        let joined = JoinedImage::new(parts.iter().map(|part| Arc::clone(part) as Arc<dyn Image>)).unwrap();
        joined.will_read(&[80..85, 90..ALIGN + 7, ALIGN + 50..ALIGN + 200]);
        let found = parts.each_ref().map(|part| part.0.lock().unwrap().clone());
        assert_eq!(found, [vec![80..85, 90..100], vec![0..7, 50..100], vec![]]);
    }

    #[test]
    fn refuses_more_than_an_offset_counts() {
        struct Long;
        impl Image for Long {
            fn len(&self) -> u64 {
                i64::MAX as u64
            }
            fn read_at(&self, _: u64, _: &mut [u8]) -> Result<usize> {
                Ok(0)
            }
            fn name(&self) -> String {
                "long".into()
            }
        }
        assert!(JoinedImage::new([Arc::new(Long) as Arc<dyn Image>]).is_ok());
        assert!(JoinedImage::new([Arc::new(Long) as Arc<dyn Image>, Arc::new(Long)]).is_err());
    }
}
