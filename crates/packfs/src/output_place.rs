//! The place of an output: a path of this machine, or an object of a store that appears once the
//! image is complete.

use crate::OpenOptions;
use packfs_core::{Copied, FileImage, Image, Place, Progress, Result, ResultExt, Store, url_scheme};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// See the module.
pub(crate) struct OutputPlace {
    path: PathBuf,
    object: Option<NewObject>,
}

/// Object that is made of an image in a temporary folder.
struct NewObject {
    store: Box<dyn Store>,
    name: String,
    /// Removed with this.
    _staged: TempDir,
}

impl OutputPlace {
    /// Looks at an output, and checks that an object can be created.
    ///
    /// Errors: `Usage` for a URL that takes no image; `AlreadyExists` for an object that exists;
    /// `Failed` for a store that refuses; `Io`; `Unsupported` without the feature `remote`.
    pub(crate) fn open(output: &Path, options: &OpenOptions) -> Result<Self> {
        if url_scheme(output).is_none() {
            return Ok(OutputPlace { path: output.into(), object: None });
        }
        let (store, name) = object_at(Place::of(output), options)?;
        store.check_creation(&name)?;
        let staged = stage(&*store)?;
        let path = staged.path().join("image");
        Ok(OutputPlace { path, object: Some(NewObject { store, name, _staged: staged }) })
    }

    /// Returns the path to write to.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// True if an object is made of what is written.
    pub(crate) fn is_object(&self) -> bool {
        self.object.is_some()
    }

    /// Creates the object of what was written, if it is to be one.
    ///
    /// Errors: as [`OutputPlace::finish_with`].
    pub(crate) fn finish(&self, progress: &dyn Progress) -> Result<()> {
        if !self.is_object() {
            return Ok(());
        }
        self.finish_with(&FileImage::open(&self.path)?, &[], progress).map(|_| ())
    }

    /// Creates the object of an image, of which the store copies ranges that it has. Returns the
    /// number of bytes copied.
    ///
    /// Errors: `AlreadyExists` if the store has such an object by now, `Failed` if it refuses,
    /// `Io`, `Limit`, `Cancelled`.
    pub(crate) fn finish_with(
        &self,
        image: &dyn Image,
        copied: &[Copied<'_>],
        progress: &dyn Progress,
    ) -> Result<u64> {
        let Some(NewObject { store, name, .. }) = &self.object else { return Ok(0) };
        store.create(name, image, copied, progress)?.ok_or_else(|| store.exists(name))
    }
}

/// Makes a folder for an image that becomes an object, gone with what is returned.
///
/// Errors: `Io`.
pub(crate) fn stage(store: &dyn Store) -> Result<TempDir> {
    let folder = store.staging().map_or_else(packfs_pack::temporary_folder, PathBuf::from);
    let mut staged = tempfile::Builder::new();
    staged.prefix(".packfs-").suffix(".packfs-tmp");
    staged.tempdir_in(&folder).or_io(|| format!("cannot write to {folder:?}"))
}

#[cfg(feature = "remote")]
fn object_at(place: Place<'_>, options: &OpenOptions) -> Result<(Box<dyn Store>, String)> {
    packfs_remote::object_at(place, options.remote.clone())
}

#[cfg(not(feature = "remote"))]
fn object_at(place: Place<'_>, _: &OpenOptions) -> Result<(Box<dyn Store>, String)> {
    Err(crate::place::without_remote(place))
}
