//! Buffers for blocks, used again: fresh memory costs more to touch than a block costs to decode.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

/// Idle buffers kept for the next block.
const IDLE_MAX: usize = 32;

/// Buffers that wait to be used again.
#[derive(Default)]
pub(crate) struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// A buffer with whatever is left in it.
    pub(crate) fn take(self: &Arc<Self>) -> Buffer {
        let idle = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Buffer { bytes: idle.unwrap_or_default(), home: Arc::clone(self) }
    }
}

/// Bytes that go back where they came from when nobody needs them.
pub(crate) struct Buffer {
    pub bytes: Vec<u8>,
    home: Arc<Buffers>,
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut idle = self.home.0.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(std::mem::take(&mut self.bytes));
        }
    }
}
