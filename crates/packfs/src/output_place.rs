//! The place of an output: a path of this machine, or an object in S3 that appears once the image
//! is complete.

#[cfg(feature = "remote")]
mod upload;

use crate::OpenOptions;
use packfs_core::{Error, Progress, Result, shown_place, url_scheme};
use std::path::{Path, PathBuf};
#[cfg(feature = "remote")]
pub(crate) use upload::Upload;

/// See the module.
pub(crate) struct OutputPlace {
    path: PathBuf,
    #[cfg(feature = "remote")]
    pub(crate) upload: Option<Upload>,
}

impl OutputPlace {
    /// Looks at an output, and checks that an object in S3 can be created.
    ///
    /// Errors: `Usage` for a URL that takes no image; `AlreadyExists` for an object that exists;
    /// `Failed` for a store that refuses; `Io`; `Unsupported` without the feature `remote`.
    pub(crate) fn open(output: &Path, options: &OpenOptions) -> Result<Self> {
        match url_scheme(output) {
            None => Ok(OutputPlace::at(output.into())),
            Some(scheme) if scheme.eq_ignore_ascii_case("s3") => OutputPlace::in_store(output, options),
            Some(_) => {
                let error = Error::usage(format!("cannot write an image to {}", shown_place(output)));
                Err(error.hint("s3://BUCKET/KEY takes images; packfs oci push writes to registries"))
            }
        }
    }

    fn at(path: PathBuf) -> Self {
        OutputPlace {
            path,
            #[cfg(feature = "remote")]
            upload: None,
        }
    }

    #[cfg(feature = "remote")]
    fn in_store(url: &Path, options: &OpenOptions) -> Result<Self> {
        let upload = Upload::new(url, options)?;
        Ok(OutputPlace { path: upload.path(), upload: Some(upload) })
    }

    #[cfg(not(feature = "remote"))]
    fn in_store(url: &Path, _: &OpenOptions) -> Result<Self> {
        Err(Error::unsupported(shown_place(url), "packfs was built without the feature remote"))
    }

    /// Returns the path to write to.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Uploads what was written, if the place is in S3.
    ///
    /// Errors: `AlreadyExists` if the store has such an object by now, `Failed` if it refuses,
    /// `Io`, `Limit`, `Cancelled`.
    #[cfg_attr(not(feature = "remote"), allow(clippy::unused_self, clippy::unnecessary_wraps))]
    pub(crate) fn finish(&self, progress: &dyn Progress) -> Result<()> {
        #[cfg(feature = "remote")]
        if let Some(upload) = &self.upload {
            let image = packfs_core::FileImage::open(&self.path)?;
            upload.send(&image, &[], progress)?;
        }
        #[cfg(not(feature = "remote"))]
        let _ = progress;
        Ok(())
    }
}
