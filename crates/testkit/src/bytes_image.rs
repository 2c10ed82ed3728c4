//! An image in memory.

use packfs_core::{Image, Result};

/// Bytes as an image.
pub struct BytesImage(pub Vec<u8>);

impl Image for BytesImage {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let rest = self.0.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or_default();
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn name(&self) -> String {
        "image in memory".into()
    }
}
