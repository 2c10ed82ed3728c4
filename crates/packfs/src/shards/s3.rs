//! Prefixes in buckets as stores.

use packfs_core::{FileImage, Image, MemoryImage, Progress, Result, Silent};
use packfs_remote::{RemoteOptions, S3Folder};
use packfs_shards::{Staged, Store};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Prefix in a bucket as a store.
pub(super) struct S3Store {
    folder: S3Folder,
}

impl S3Store {
    /// Opens `s3://BUCKET/PREFIX`; no request is sent.
    ///
    /// Errors: `Usage`.
    pub(super) fn open(place: &Path, options: RemoteOptions) -> Result<Self> {
        // Shards are read once.
        let options = RemoteOptions { cache_len: 0, ..options };
        Ok(S3Store { folder: S3Folder::open(place.to_str().unwrap_or_default(), options)? })
    }
}

impl Store for S3Store {
    fn name(&self) -> String {
        self.folder.url(None)
    }

    fn open(&self, name: &str) -> Result<Option<Arc<dyn Image>>> {
        Ok(self.folder.image(name)?.map(|image| Arc::new(image) as Arc<dyn Image>))
    }

    fn get(&self, name: &str, len_max: u64) -> Result<Option<Vec<u8>>> {
        self.folder.get(name, len_max)
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        self.folder.create(name, &MemoryImage::new(name, bytes.to_vec()), &Silent)
    }

    fn stage(&self) -> Result<Staged> {
        Staged::within(&std::env::temp_dir())
    }

    fn put(&self, name: &str, staged: Staged, progress: &dyn Progress) -> Result<bool> {
        self.folder.create(name, &FileImage::open(&staged.path())?, progress)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.folder.remove(name)
    }

    fn place(&self, name: &str) -> PathBuf {
        self.folder.url(Some(name)).into()
    }
}
