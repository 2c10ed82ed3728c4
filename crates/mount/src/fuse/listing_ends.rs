//! Errors at the end of listings, kept so that listings in parts end with them.

use packfs_core::{Error, ErrorKind, Result};
use packfs_format::{BlockCache, InodeId};

/// Bytes of answers about whole directories that are kept.
const ENDS_MAX: usize = 1 << 20;
/// Bytes that one of them takes.
const END_LEN: usize = 64;

/// Errors at the end of whole listings. A listing in parts misses damage between two parts, and the
/// part that meets it hides it if entries follow.
pub(crate) struct ListingEnds(BlockCache<Option<Error>>);

impl ListingEnds {
    pub(crate) fn new() -> Self {
        ListingEnds(BlockCache::new(ENDS_MAX))
    }

    /// Returns the outcome of a whole listing; `list` runs unless it is known.
    pub(crate) fn of(&self, dir: InodeId, list: impl FnOnce() -> Result<()>) -> Result<()> {
        let found = self.0.get_or(dir.0, || match list() {
            Err(error) if !matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported) => Err(error),
            outcome => Ok((outcome.err(), END_LEN)),
        })?;
        found.as_ref().as_ref().map_or(Ok(()), |error| Err(error.clone()))
    }
}
