//! Transfers of an image that is not on this machine.

/// Transfers since the image was opened. Values only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// Requests that were sent, repeated ones too.
    pub requests: u64,
    /// Times that a reader waited for requests; those sent together count once.
    pub rounds: u64,
    /// Bytes of bodies received.
    pub bytes: u64,
    /// Requests that repeat one that failed.
    pub retries: u64,
    /// Bytes taken from the cache on disk.
    pub cached_bytes: u64,
}
