//! The cache of images at URLs.

use packfs::remote::{Environment, Store};

/// Returns the cache of this user.
pub fn store() -> packfs::Result<Store> {
    let dir = Environment::of_process().cache_dir();
    let error = || packfs::Error::failed("cannot find the cache: neither XDG_CACHE_HOME nor HOME is set");
    dir.map(Store::at).ok_or_else(error)
}
