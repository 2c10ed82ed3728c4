//! Stores by their place: a directory, or a folder of objects.

use packfs_core::{Place, Result, Store, url_scheme};
use packfs_shards::DirStore;
use std::path::Path;

/// Opens a store: a directory, which is created if it does not exist and `creates`, or
/// `s3://BUCKET/PREFIX`.
///
/// Errors: `Io`; `Usage` for another URL; `Unsupported` for a URL without the feature `remote`.
pub fn open_store(place: &Path, creates: bool) -> Result<Box<dyn Store>> {
    match url_scheme(place) {
        None => Ok(Box::new(DirStore::open(place, creates)?)),
        Some(_) => folder_at(Place::of(place)),
    }
}

#[cfg(not(feature = "remote"))]
fn folder_at(place: Place<'_>) -> Result<Box<dyn Store>> {
    Err(crate::place::without_remote(place))
}

#[cfg(feature = "remote")]
fn folder_at(place: Place<'_>) -> Result<Box<dyn Store>> {
    // Shards are read once.
    packfs_remote::folder_at(place, packfs_remote::RemoteOptions { cache_len: 0, ..Default::default() })
}
