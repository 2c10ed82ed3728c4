//! The receiver of files that are read in the order of the disk.

use packfs_core::{Error, Result};

/// Takes pieces of files, in any order; each worker thread has its own.
pub trait PieceSink {
    /// Says how many bytes of a file will come as pieces, holes left out. Called once for each file
    /// that is not empty, on one worker, before any piece of that file comes.
    fn expect(&mut self, file_index: usize, data_len: u64) {
        let _ = (file_index, data_len);
    }

    /// Takes one piece of a file. Pieces do not overlap, and come on any worker.
    fn piece(&mut self, file_index: usize, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Hears that a part of a file cannot be had. An error, such as this one, ends the work.
    fn failed(&mut self, file_index: usize, error: Error) -> Result<()> {
        let _ = file_index;
        Err(error)
    }
}
