//! The place of an image: a file or device of this machine, or a URL.

use crate::OpenOptions;
use packfs_core::{FileImage, Image, Result, url_scheme};
use std::path::Path;
use std::sync::Arc;

/// Bytes of an image, and warnings about their place.
pub(crate) type BytesWithWarnings = (Arc<dyn Image>, Vec<String>);

/// Bytes of all images together that are held in memory, if many are open at once.
#[cfg(all(feature = "merge", feature = "remote"))]
const MEMORY_LEN: u64 = 256 << 20;

impl OpenOptions {
    /// Returns options for so many images that are open at once and read from start to end.
    #[cfg(feature = "merge")]
    pub(crate) fn of_many(count: usize) -> Self {
        let options = OpenOptions::new();
        #[cfg(feature = "remote")]
        let options = {
            let remote = packfs_remote::RemoteOptions::default();
            let memory_len = (MEMORY_LEN / count.max(1) as u64).clamp(256 << 10, remote.memory_len);
            options.remote(packfs_remote::RemoteOptions { cache_len: 0, memory_len, ..remote })
        };
        #[cfg(not(feature = "remote"))]
        let _ = count;
        options
    }

    /// Opens a file, a block device, or a URL as bytes, without a look for an image in them.
    ///
    /// Errors: as [`FileImage::open`]; of a URL `Usage` if it is wrong, `Io` if its server does not
    /// answer, `Failed` if that refuses, `Unsupported` without the feature `remote`.
    pub fn bytes_at(&self, path: impl AsRef<Path>) -> Result<Arc<dyn Image>> {
        self.bytes_with_warnings(path.as_ref()).map(|(image, _)| image)
    }

    /// Opens bytes as [`OpenOptions::bytes_at`], with warnings about their place.
    pub(crate) fn bytes_with_warnings(&self, path: &Path) -> Result<BytesWithWarnings> {
        #[cfg(feature = "oci")]
        if let Some(found) = self.oci_bytes(path)? {
            return Ok(found);
        }
        match url_scheme(path) {
            Some(_) => self.at_url(path),
            None => Ok((Arc::new(FileImage::open(path)?), Vec::new())),
        }
    }

    #[cfg(feature = "remote")]
    fn at_url(&self, url: &Path) -> Result<BytesWithWarnings> {
        self.remote_image(url).map(|(image, warnings)| (image as Arc<dyn Image>, warnings))
    }

    /// Opens an object that is no part of an OCI image, with warnings about its place.
    #[cfg(feature = "remote")]
    pub(crate) fn remote_image(&self, url: &Path) -> Result<(Arc<packfs_remote::RemoteImage>, Vec<String>)> {
        let image = packfs_remote::RemoteImage::open(url.to_str().unwrap_or_default(), self.remote.clone())?;
        let warnings = image.warning().into_iter().collect();
        Ok((Arc::new(image), warnings))
    }

    #[cfg(not(feature = "remote"))]
    fn at_url(&self, url: &Path) -> Result<BytesWithWarnings> {
        let subject = packfs_core::shown_place(url);
        Err(packfs_core::Error::unsupported(subject, "packfs was built without the feature remote"))
    }
}
