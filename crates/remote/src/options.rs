//! Settings of remote images.

use crate::environment::Environment;
use crate::platform::OciOptions;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Limit on the cache on disk, in bytes.
const CACHE_LEN: u64 = 2 << 30;
/// Blocks held in memory, in bytes.
const MEMORY_LEN: u64 = 32 << 20;

/// Settings of a remote image.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// Folder of the cache on disk; `None`: no cache.
    pub cache_dir: Option<PathBuf>,
    /// Limit on the cache on disk in bytes; 0: no cache.
    pub cache_len: u64,
    /// Bytes of the object held in memory.
    pub memory_len: u64,
    /// Sends no request: only the cache is read.
    pub is_offline: bool,
    /// Repetition of failed requests.
    pub retries: Retries,
    /// Time limits.
    pub limits: TimeLimits,
    /// Settings of images in registries, layouts, and archives.
    pub oci: OciOptions,
    /// Source of credentials.
    pub environment: Environment,
}

impl RemoteOptions {
    /// Returns the folder of the cache, if there is one that no other user can change.
    pub(crate) fn cache(&self) -> Option<&Path> {
        self.cache_dir.as_deref().filter(|dir| self.cache_len > 0 && unsafe_cache(dir).is_none())
    }

    /// Returns a warning for the user about a cache that is not used.
    pub fn cache_warning(&self) -> Option<String> {
        let dir = self.cache_dir.as_deref().filter(|_| self.cache_len > 0)?;
        let why = unsafe_cache(dir)?;
        Some(format!("the cache {dir:?} is not used: {why}; it has to be a folder of this user alone"))
    }

    /// Returns the defaults, with the cache in the user's cache directory.
    pub fn new(environment: Environment) -> Self {
        let limits = match environment.number("PACKFS_REMOTE_TIMEOUT") {
            Some(seconds) => TimeLimits::within(Duration::from_secs(seconds.max(1))),
            None => TimeLimits::default(),
        };
        RemoteOptions {
            cache_dir: environment.cache_dir(),
            cache_len: CACHE_LEN,
            memory_len: MEMORY_LEN,
            is_offline: false,
            retries: Retries::default(),
            limits,
            oci: OciOptions::default(),
            environment,
        }
    }
}

/// Defaults, with the environment of this process.
impl Default for RemoteOptions {
    fn default() -> Self {
        RemoteOptions::new(Environment::of_process())
    }
}

/// Says why a folder is no place for a cache: what another user puts there would be read.
fn unsafe_cache(dir: &Path) -> Option<&'static str> {
    let found = std::fs::symlink_metadata(dir).ok()?;
    if found.is_symlink() {
        Some("it is a symbolic link")
    } else if !found.is_dir() {
        Some("it is no folder")
    } else if found.uid() != rustix::process::geteuid().as_raw() {
        Some("another user owns it")
    } else if found.mode() & 0o022 != 0 {
        Some("others may write to it")
    } else {
        None
    }
}

/// Repetition of requests that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Attempts in a row that bring no byte.
    pub attempts: u32,
    /// Mean wait before the second attempt; it doubles before each further one.
    pub first_wait: Duration,
    /// Limit on a wait, also on one that a server asks for.
    pub longest_wait: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Retries { attempts: 8, first_wait: Duration::from_millis(100), longest_wait: Duration::from_secs(15) }
    }
}

/// Time limits of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimits {
    /// For name resolution and for the connection with its TLS, each.
    pub connect: Duration,
    /// For each wait for bytes of an answer.
    pub read: Duration,
    /// For a range with all its attempts.
    pub total: Duration,
}

impl TimeLimits {
    /// Returns the default limits, none of which exceeds `total`.
    pub fn within(total: Duration) -> Self {
        let limits = TimeLimits::default();
        TimeLimits { connect: limits.connect.min(total), read: limits.read.min(total), total }
    }
}

impl Default for TimeLimits {
    fn default() -> Self {
        TimeLimits {
            connect: Duration::from_secs(10),
            read: Duration::from_secs(30),
            total: Duration::from_secs(120),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_cache_that_others_can_change_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("cache");
        let options = |dir: &Path| RemoteOptions {
            cache_dir: Some(dir.into()),
            ..RemoteOptions::new(Environment::of([]))
        };
        assert_eq!((options(&dir).cache(), options(&dir).cache_warning()), (Some(&*dir), None));
        std::fs::create_dir(&dir).unwrap();
        for (mode, is_used) in [(0o700, true), (0o755, true), (0o770, false), (0o1777, false)] {
            std::fs::set_permissions(&dir, PermissionsExt::from_mode(mode)).unwrap();
            assert_eq!(options(&dir).cache().is_some(), is_used, "{mode:o}");
            assert_eq!(options(&dir).cache_warning().is_none(), is_used, "{mode:o}");
        }
        std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o700)).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&dir, &link).unwrap();
        assert!(options(&link).cache_warning().unwrap().contains("symbolic link"));
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&dir, Some(1), None).unwrap();
            assert!(options(&dir).cache_warning().unwrap().contains("another user"));
        }
        assert!(RemoteOptions { cache_len: 0, ..options(&dir) }.cache_warning().is_none());
    }
}
