//! An image in memory.

use packfs_core::{Image, Result};

/// Bytes in memory.
#[derive(Clone, Debug)]
pub struct MemoryImage {
    name: String,
    bytes: Vec<u8>,
}

impl MemoryImage {
    /// Takes the bytes and what messages call them.
    pub fn new(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        MemoryImage { name: name.into(), bytes }
    }
}

impl Image for MemoryImage {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let len = buf.len().min(self.bytes.len() - start);
        buf[..len].copy_from_slice(&self.bytes[start..start + len]);
        Ok(len)
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_up_to_its_end() {
        let image = MemoryImage::new("test", vec![1, 2, 3]);
        let mut buf = [9; 4];
        assert_eq!((image.len(), image.name()), (3, "test".into()));
        assert_eq!(image.read_at(1, &mut buf).unwrap(), 2);
        assert_eq!(buf, [2, 3, 9, 9]);
        assert_eq!(image.read_at(3, &mut buf).unwrap(), 0);
        assert_eq!(image.read_at(u64::MAX, &mut buf).unwrap(), 0);
        assert!(image.read_exact_at(2, &mut [0; 2]).is_err());
    }
}
