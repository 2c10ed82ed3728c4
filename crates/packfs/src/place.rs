//! The place of an image: a file or device of this machine, or a URL.

use crate::OpenOptions;
use packfs_core::{FileImage, Image, Place, Result, url_scheme};
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
        let place = Place::of(path.as_ref());
        #[cfg(feature = "oci")]
        if let Some((image, _)) = self.oci_bytes(place)? {
            return Ok(image);
        }
        self.plain_bytes(place).map(|(image, _)| image)
    }

    /// Opens bytes that are no OCI image, with warnings about their place.
    pub(crate) fn plain_bytes(&self, place: Place<'_>) -> Result<BytesWithWarnings> {
        match url_scheme(place.path()) {
            Some(_) => self.at_url(place),
            None => Ok((Arc::new(FileImage::open(place.path())?), Vec::new())),
        }
    }

    #[cfg(feature = "remote")]
    fn at_url(&self, place: Place<'_>) -> Result<BytesWithWarnings> {
        let (image, warning) = packfs_remote::image_at(place, self.remote.clone())?;
        Ok((image, warning.into_iter().collect()))
    }

    #[cfg(not(feature = "remote"))]
    fn at_url(&self, place: Place<'_>) -> Result<BytesWithWarnings> {
        Err(without_remote(place))
    }
}

/// Returns the error for what needs the feature `remote`.
#[cfg(not(feature = "remote"))]
pub(crate) fn without_remote(place: Place<'_>) -> packfs_core::Error {
    packfs_core::Error::unsupported(place.shown(), "packfs was built without the feature remote")
}
