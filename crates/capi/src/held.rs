//! Handles within one process: the threads of the engine do not survive a `fork`.

use crate::error::{ECHILD, Failure, Result};

/// Something with threads of the engine. It is used by the process that made it.
///
/// Invariant: dropping it waits for its threads, so in another process it is never dropped.
pub struct Held<T> {
    process: u32,
    held: T,
}

impl<T> Held<T> {
    pub fn new(held: T) -> Self {
        Held { process: std::process::id(), held }
    }

    /// Returns it.
    ///
    /// Errors: `ECHILD` in another process.
    pub fn get(&self) -> Result<&T> {
        if self.process == std::process::id() {
            return Ok(&self.held);
        }
        let message = format!("the handle belongs to process {}, which has forked", self.process);
        Err(Failure::new(ECHILD, message))
    }
}
