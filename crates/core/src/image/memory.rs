//! An image in memory.

use crate::{Image, Result, usize_of};
use std::fmt;
use std::sync::Arc;

/// Bytes in memory. A clone shares them.
#[derive(Clone)]
pub struct MemoryImage {
    name: String,
    bytes: Arc<dyn AsRef<[u8]> + Send + Sync>,
}

impl MemoryImage {
    /// Wraps bytes; `name` appears in messages.
    pub fn new(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        MemoryImage::held(name, bytes)
    }

    /// Wraps bytes without copying them, such as an `Arc<[u8]>` or a mapped file; `name` appears in
    /// messages.
    pub fn held(name: impl Into<String>, bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        MemoryImage { name: name.into(), bytes: Arc::new(bytes) }
    }

    fn bytes(&self) -> &[u8] {
        (*self.bytes).as_ref()
    }
}

impl fmt::Debug for MemoryImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} bytes)", self.name, self.bytes().len())
    }
}

const UNNAMED: &str = "image in memory";

/// Moves the bytes, without a copy.
macro_rules! from_owned {
    ($($type:ty),*) => {$(
        impl From<$type> for MemoryImage {
            fn from(bytes: $type) -> Self {
                MemoryImage::held(UNNAMED, bytes)
            }
        }
    )*};
}

from_owned!(Vec<u8>, Box<[u8]>, Arc<[u8]>);

/// Copies, because the lifetime of borrowed bytes is unknown.
impl From<&[u8]> for MemoryImage {
    fn from(bytes: &[u8]) -> Self {
        MemoryImage::from(bytes.to_vec())
    }
}

/// Copies, like a slice.
impl From<&Vec<u8>> for MemoryImage {
    fn from(bytes: &Vec<u8>) -> Self {
        MemoryImage::from(bytes.as_slice())
    }
}

/// Copies, like a slice.
impl<const N: usize> From<&[u8; N]> for MemoryImage {
    fn from(bytes: &[u8; N]) -> Self {
        MemoryImage::from(bytes.as_slice())
    }
}

impl Image for MemoryImage {
    fn len(&self) -> u64 {
        self.bytes().len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let rest = self.bytes().get(usize_of(offset)..).unwrap_or_default();
        let len = buf.len().min(rest.len());
        buf[..len].copy_from_slice(&rest[..len]);
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
