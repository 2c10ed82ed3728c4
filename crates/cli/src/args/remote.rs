//! Options of images at URLs.

use super::OciArgs;
use crate::out::text;
use packfs::OpenOptions;
use packfs::remote::{Environment, RemoteOptions, Store};

/// Options of every verb that opens an image.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct RemoteArgs {
    /// Limit the disk cache for images at URLs to SIZE
    ///
    /// The cache is in $XDG_CACHE_HOME/packfs, or else ~/.cache/packfs. 0 turns it off. The default
    /// is 2 GiB. packfs cache lists and removes its files.
    #[arg(long, value_name = "SIZE", env = "PACKFS_CACHE_SIZE", hide_env_values = true,
        value_parser = text::parse_size)]
    disk_cache: Option<u64>,

    /// Read images at URLs only from the disk cache
    ///
    /// No request is sent. A part that is not in the cache is an error.
    #[arg(long)]
    offline: bool,

    #[command(flatten)]
    oci: OciArgs,
}

impl RemoteArgs {
    /// Opens images with these options.
    pub fn apply(&self, options: OpenOptions) -> OpenOptions {
        let defaults = self.oci.apply(RemoteOptions::default());
        let cache_len = self.disk_cache.unwrap_or(defaults.cache_len);
        options.remote(RemoteOptions { cache_len, is_offline: self.offline, ..defaults })
    }
}

/// Returns the cache of this user.
pub fn store() -> packfs::Result<Store> {
    let dir = Environment::of_process().cache_dir();
    let error = || packfs::Error::failed("cannot find the cache: neither XDG_CACHE_HOME nor HOME is set");
    dir.map(Store::at).ok_or_else(error)
}
