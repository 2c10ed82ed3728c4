//! The place of an output: a path of this machine, or an object that is uploaded once it is
//! complete.

use super::PackOptions;
use packfs_core::{Error, Recipient, Result, shown_place, url_scheme};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// See the module.
pub(super) struct OutputPlace {
    /// File to write; only its folder matters if there is a recipient.
    pub path: PathBuf,
    pub recipient: Option<Arc<dyn Recipient>>,
}

impl OutputPlace {
    /// Looks at an output, and begins the upload of one that is a URL.
    ///
    /// Errors: `Usage` for a URL that takes no image; `Failed` for an object that exists, and for a
    /// store that refuses; `Io`; `Unsupported` without the feature `remote`.
    pub(super) fn open(output: &Path, options: &PackOptions) -> Result<Self> {
        let Some(scheme) = url_scheme(output) else {
            return Ok(OutputPlace { path: output.into(), recipient: None });
        };
        if !scheme.eq_ignore_ascii_case("s3") {
            let error = Error::usage(format!("cannot write an image to {}", shown_place(output)));
            return Err(error.hint("s3://BUCKET/KEY takes images; packfs oci push writes to registries"));
        }
        if options.offset > 0 {
            let shown = shown_place(output);
            return Err(Error::usage(format!(
                "cannot write at an offset of {shown}: objects are written whole"
            )));
        }
        let path = packfs_pack::temporary_folder().join("packfs");
        Ok(OutputPlace { path, recipient: Some(upload(output, options)?) })
    }
}

#[cfg(feature = "remote")]
fn upload(url: &Path, options: &PackOptions) -> Result<Arc<dyn Recipient>> {
    let remote = options.source.remote.clone();
    Ok(Arc::new(packfs_remote::Upload::begin(url.to_str().unwrap_or_default(), remote)?))
}

#[cfg(not(feature = "remote"))]
fn upload(url: &Path, _: &PackOptions) -> Result<Arc<dyn Recipient>> {
    Err(Error::unsupported(shown_place(url), "packfs was built without the feature remote"))
}
