//! Objects in S3 that are made of an image in a temporary folder.

use crate::OpenOptions;
use packfs_core::{Image, Progress, Result, ResultExt};
use packfs_remote::{Copied, S3Folder};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Object that is to be created.
pub(crate) struct Upload {
    folder: S3Folder,
    name: String,
    staged: TempDir,
}

impl Upload {
    /// Checks that the object can be created, and makes a place for its image.
    ///
    /// Errors: `Usage` for a wrong URL; `AlreadyExists`; `Failed` if the store refuses; `Io`.
    pub(super) fn new(url: &Path, options: &OpenOptions) -> Result<Self> {
        let url = url.to_str().unwrap_or_default();
        let (folder, name) = S3Folder::of_object(url, options.remote.clone())?;
        folder.check_creation(&name)?;
        let at = packfs_pack::temporary_folder();
        let staged = tempfile::Builder::new().prefix(".packfs-").tempdir_in(&at);
        Ok(Upload { folder, name, staged: staged.or_io(|| format!("cannot write to {at:?}"))? })
    }

    pub(super) fn path(&self) -> PathBuf {
        self.staged.path().join("image")
    }

    /// Creates the object of an image, of which the store copies ranges that it has. Returns the
    /// number of bytes copied.
    ///
    /// Errors: `AlreadyExists` if the store has such an object by now, `Failed` if it refuses,
    /// `Io`, `Limit`, `Cancelled`.
    pub(crate) fn send(
        &self,
        image: &dyn Image,
        copied: &[Copied<'_>],
        progress: &dyn Progress,
    ) -> Result<u64> {
        let done = self.folder.create_with(&self.name, image, copied, progress)?;
        done.ok_or_else(|| self.folder.exists(&self.name))
    }
}
