//! The place of an image: a file or device of this machine, or a URL.

use crate::OpenOptions;
use packfs_core::{FileImage, Image, Result, url_scheme};
use std::path::Path;
use std::sync::Arc;

/// Bytes of an image, and warnings about their place.
pub(crate) type BytesWithWarnings = (Arc<dyn Image>, Vec<String>);

impl OpenOptions {
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
