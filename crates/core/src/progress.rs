//! Progress and cancellation of work.

use std::sync::Arc;

/// The current stage of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Scanning names and metadata of the source.
    Scan,
    /// Finding data that an earlier image contains.
    Base,
    /// Finding similar small files.
    Order,
    /// Finding files with the same contents.
    Dedupe,
    /// Reading, compressing and writing file data.
    Data,
    /// Writing inodes, directories and tables.
    Metadata,
    /// Writing files out of an image.
    Extract,
    /// Decoding all data, to detect damage.
    Verify,
    /// Hashing all data.
    Hash,
    /// Sending an image to a store.
    Upload,
}

impl Stage {
    /// Returns the name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Scan => "scan",
            Stage::Base => "base",
            Stage::Order => "order",
            Stage::Dedupe => "duplicates",
            Stage::Data => "data",
            Stage::Metadata => "metadata",
            Stage::Extract => "extract",
            Stage::Verify => "verify",
            Stage::Hash => "hash",
            Stage::Upload => "upload",
        }
    }
}

#[cfg(feature = "serde")]
crate::serialize_word!(Stage, name);

/// Receives progress of long work. Every method may be called from any thread, often;
/// implementations must be fast.
pub trait Progress: Send + Sync {
    /// Begins a stage; unknown totals are 0.
    fn begin(&self, stage: Stage, files_total: u64, bytes_total: u64) {
        let _ = (stage, files_total, bytes_total);
    }

    /// Adds to finished files, bytes read, and bytes written.
    fn advance(&self, files: u64, bytes_in: u64, bytes_out: u64) {
        let _ = (files, bytes_in, bytes_out);
    }

    /// Begins a part of long work, such as one of several measurements: `3 of 12: ...`. Rarely
    /// called.
    fn part(&self, what: &str) {
        let _ = what;
    }

    /// Reports a problem that does not stop the work.
    fn warn(&self, message: &str) {
        let _ = message;
    }

    /// Returns true if the user requested cancellation; work then cleans up and fails with
    /// [`crate::Error::cancelled`].
    fn cancelled(&self) -> bool {
        false
    }
}

/// Shared progress: the work gets one handle, its owner keeps the other.
impl<P: Progress + ?Sized> Progress for Arc<P> {
    fn begin(&self, stage: Stage, files_total: u64, bytes_total: u64) {
        (**self).begin(stage, files_total, bytes_total);
    }

    fn advance(&self, files: u64, bytes_in: u64, bytes_out: u64) {
        (**self).advance(files, bytes_in, bytes_out);
    }

    fn part(&self, what: &str) {
        (**self).part(what);
    }

    fn warn(&self, message: &str) {
        (**self).warn(message);
    }

    fn cancelled(&self) -> bool {
        (**self).cancelled()
    }
}

/// Progress that is ignored.
pub struct Silent;

impl Progress for Silent {}

/// Progress without warnings, for work that is repeated, or whose findings are reported otherwise.
pub struct WithoutWarnings<'a>(pub &'a dyn Progress);

impl Progress for WithoutWarnings<'_> {
    fn begin(&self, stage: Stage, files_total: u64, bytes_total: u64) {
        self.0.begin(stage, files_total, bytes_total);
    }

    fn advance(&self, files: u64, bytes_in: u64, bytes_out: u64) {
        self.0.advance(files, bytes_in, bytes_out);
    }

    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}
