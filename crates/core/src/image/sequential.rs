use crate::Image;
use std::io::{self, Read};
use std::sync::Arc;

/// Reader of an image from start to end. Its errors contain the error of the image.
pub struct ImageReader {
    image: Arc<dyn Image>,
    at: u64,
}

impl ImageReader {
    /// Creates a reader at the first byte.
    pub fn new(image: Arc<dyn Image>) -> Self {
        ImageReader { image, at: 0 }
    }
}

impl Read for ImageReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = self.image.read_at(self.at, buf).map_err(io::Error::other)?;
        self.at = self.at.saturating_add(len as u64);
        Ok(len)
    }
}
