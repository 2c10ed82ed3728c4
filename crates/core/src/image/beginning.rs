//! An image whose first bytes differ from its file.

use crate::{Fetched, Image, Result};
use std::ops::Range;
use std::sync::Arc;

/// An image whose first bytes are replaced: vendors of devices change only the magic of a format.
pub struct BeginningImage {
    image: Arc<dyn Image>,
    beginning: Vec<u8>,
}

impl BeginningImage {
    /// Replaces the first bytes of `image` by `beginning`, which is cut off at its end.
    pub fn new(image: Arc<dyn Image>, beginning: impl Into<Vec<u8>>) -> Self {
        BeginningImage { image, beginning: beginning.into() }
    }
}

impl Image for BeginningImage {
    fn len(&self) -> u64 {
        self.image.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let len = self.image.read_at(offset, buf)?;
        let replaced = usize::try_from(offset).ok().and_then(|offset| self.beginning.get(offset..));
        for (byte, &other) in buf[..len].iter_mut().zip(replaced.unwrap_or_default()) {
            *byte = other;
        }
        Ok(len)
    }

    fn will_read(&self, ranges: &[Range<u64>]) {
        self.image.will_read(ranges);
    }

    fn fetched(&self) -> Option<Fetched> {
        self.image.fetched()
    }

    fn check_unchanged(&self) -> Result<()> {
        self.image.check_unchanged()
    }

    fn name(&self) -> String {
        self.image.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryImage;

    #[test]
    fn only_the_beginning_is_replaced() {
        let image = BeginningImage::new(Arc::new(MemoryImage::new("test", (0..10).collect())), *b"abcd");
        let mut buf = [0xff; 12];
        assert_eq!(image.read_at(0, &mut buf).unwrap(), 10);
        assert_eq!(buf, [b'a', b'b', b'c', b'd', 4, 5, 6, 7, 8, 9, 0xff, 0xff]);
        let mut buf = [0xff; 4];
        assert_eq!(image.read_at(2, &mut buf).unwrap(), 4);
        assert_eq!(buf, [b'c', b'd', 4, 5]);
        assert_eq!(image.read_at(5, &mut buf[..1]).unwrap(), 1);
        assert_eq!(buf[0], 5);
        assert_eq!(image.read_at(u64::MAX, &mut buf).unwrap(), 0);
        assert_eq!((image.len(), image.name()), (10, "test".into()));
    }

    #[test]
    fn a_short_image_does_not_grow() {
        let image = BeginningImage::new(Arc::new(MemoryImage::new("test", vec![1])), *b"abcd");
        let mut buf = [0xff; 4];
        assert_eq!(image.read_at(0, &mut buf).unwrap(), 1);
        assert_eq!(buf, [b'a', 0xff, 0xff, 0xff]);
    }
}
