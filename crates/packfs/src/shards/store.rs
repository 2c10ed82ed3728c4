//! Stores by their place: a directory, or a prefix in a bucket.

use packfs_core::{Error, Result, shown_place, url_scheme};
use packfs_shards::{DirStore, Store};
use std::path::Path;

/// Opens a store: a directory, which is created if it does not exist and `creates`, or
/// `s3://BUCKET/PREFIX`.
///
/// Errors: `Io`; `Usage` for another URL; `Unsupported` for S3 without the feature `remote`.
pub fn open_store(place: &Path, creates: bool) -> Result<Box<dyn Store>> {
    match url_scheme(place) {
        None => Ok(Box::new(DirStore::open(place, creates)?)),
        Some(scheme) if scheme.eq_ignore_ascii_case("s3") => bucket(place),
        Some(_) => {
            let error = Error::usage(format!("cannot use {} as a store", shown_place(place)));
            Err(error.hint("a store is a directory, or s3://BUCKET/PREFIX"))
        }
    }
}

#[cfg(not(feature = "remote"))]
fn bucket(place: &Path) -> Result<Box<dyn Store>> {
    Err(Error::unsupported(shown_place(place), "packfs was built without the feature remote"))
}

#[cfg(feature = "remote")]
fn bucket(place: &Path) -> Result<Box<dyn Store>> {
    Ok(Box::new(super::s3::S3Store::open(place, packfs_remote::RemoteOptions::default())?))
}
