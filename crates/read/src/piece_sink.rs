//! The receiver of files that are read in disk order.

use packfs_core::{Error, Result};

/// Receives pieces of files in any order; each worker thread has its own.
pub trait PieceSink {
    /// Announces the number of bytes of a file, without holes. Called once for each nonempty file,
    /// on one worker, before any of its pieces.
    fn expect(&mut self, file_index: usize, data_len: u64) {
        let _ = (file_index, data_len);
    }

    /// Receives one piece of a file. Pieces do not overlap, and come on any worker.
    fn piece(&mut self, file_index: usize, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Receives the error of a part that cannot be read. Returning an error ends the work.
    fn failed(&mut self, file_index: usize, error: Error) -> Result<()> {
        let _ = file_index;
        Err(error)
    }
}
