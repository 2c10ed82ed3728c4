//! Progress and cancellation of work.

use std::sync::Arc;

/// The current stage of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Looking at the source: names and metadata.
    Scan,
    /// Finding out what an earlier image holds already.
    Base,
    /// Finding out which small files are alike.
    Order,
    /// Finding files with the same contents.
    Dedupe,
    /// Reading, compressing and writing file data.
    Data,
    /// Writing inodes, directories and tables.
    Metadata,
    /// Writing files out of an image.
    Extract,
    /// Decoding everything to see whether it can be.
    Verify,
    /// Reading everything to hash it.
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

/// Watches long work. Every method may be called from any thread, often; implementations must be
/// cheap.
pub trait Progress: Send + Sync {
    /// A stage begins; totals are 0 where unknown.
    fn begin(&self, stage: Stage, files_total: u64, bytes_total: u64) {
        let _ = (stage, files_total, bytes_total);
    }

    /// This much more is done: files finished, bytes read, bytes written.
    fn advance(&self, files: u64, bytes_in: u64, bytes_out: u64) {
        let _ = (files, bytes_in, bytes_out);
    }

    /// A part of long work begins that no stage tells, such as one of several things that are
    /// measured: `3 of 12: ...`. Seldom.
    fn part(&self, what: &str) {
        let _ = what;
    }

    /// Something the user should know that does not stop the work.
    fn warn(&self, message: &str) {
        let _ = message;
    }

    /// Returns true if the user asked to stop; work then cleans up and fails with
    /// [`crate::Error::cancelled`].
    fn cancelled(&self) -> bool {
        false
    }
}

/// A progress that is shared: the work gets one handle, its owner keeps the other.
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

/// Watches nothing.
pub struct Silent;

impl Progress for Silent {}

/// Shows how far the work is, and passes on no warning: for work that is done again, or whose
/// findings are told otherwise.
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
