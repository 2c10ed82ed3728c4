//! Errors at the end of listings, kept so that listings in parts end with them.

use packfs_core::{Error, ErrorKind, Result};
use packfs_format::{BlockCache, InodeId};

/// Memory limit in bytes.
const ENDS_MAX: usize = 1 << 20;
/// Memory of one row, in bytes.
const END_LEN: usize = 64;

/// A listing in parts misses damage between two parts, and the part that finds it hides it if
/// entries follow.
pub(crate) struct ListingEnds(BlockCache<Option<Error>>);

impl ListingEnds {
    pub(crate) fn new() -> Self {
        ListingEnds(BlockCache::new(ENDS_MAX))
    }

    /// Runs `list` unless its outcome is cached.
    pub(crate) fn of(&self, dir: InodeId, list: impl FnOnce() -> Result<()>) -> Result<()> {
        let found = self.0.get_or(dir.0, || match list() {
            Err(error) if !matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported) => Err(error),
            outcome => Ok((outcome.err(), END_LEN)),
        })?;
        found.as_ref().as_ref().map_or(Ok(()), |error| Err(error.clone()))
    }
}
