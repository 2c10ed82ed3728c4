//! Buffers for blocks, used again: fresh memory costs more to touch than a block costs to decode.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Idle buffers kept for the next block.
const IDLE_MAX: usize = 32;
/// Bytes that idle buffers may hold together.
const IDLE_LEN_MAX: usize = 8 << 20;
/// A buffer is used again if no more than this is wasted, or no more than half of it.
const WASTE_LEN: usize = 4096;

/// Buffers that wait to be used again.
#[derive(Default)]
pub(crate) struct Buffers(Mutex<Idle>);

#[derive(Default)]
struct Idle {
    buffers: Vec<Vec<u8>>,
    /// What they hold together, in bytes.
    len: usize,
}

impl Buffers {
    /// A buffer with room for `len` bytes but little more, with whatever is left in it. A small block that is kept must
    /// not keep the memory of a large one.
    pub(crate) fn take(self: &Arc<Self>, len: usize) -> Buffer {
        let len_max = len.saturating_mul(2).saturating_add(WASTE_LEN);
        let mut idle = self.lock();
        let fitting = idle.buffers.iter().rposition(|bytes| (len..=len_max).contains(&bytes.capacity()));
        let found = fitting.map(|index| idle.buffers.swap_remove(index));
        idle.len -= found.as_ref().map_or(0, Vec::capacity);
        drop(idle);
        Buffer { bytes: found.unwrap_or_else(|| Vec::with_capacity(len)), home: Arc::clone(self) }
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes that go back where they came from when nobody needs them.
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    home: Arc<Buffers>,
}

impl Buffer {
    /// Bytes that were not taken from anywhere.
    pub(crate) fn homeless(bytes: Vec<u8>) -> Self {
        Buffer { bytes, home: Arc::default() }
    }
}

impl Deref for Buffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let len = self.bytes.capacity();
        let mut idle = self.home.lock();
        // The oldest go first: what is asked for now is of the size that comes back now.
        while !idle.buffers.is_empty() && (idle.buffers.len() >= IDLE_MAX || idle.len + len > IDLE_LEN_MAX) {
            let oldest = idle.buffers.remove(0);
            idle.len -= oldest.capacity();
        }
        if len <= IDLE_LEN_MAX {
            idle.len += len;
            idle.buffers.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_for_a_block_of_its_size_only() {
        let buffers = Arc::new(Buffers::default());
        let large = buffers.take(1 << 20);
        let place = large.bytes.as_ptr();
        drop(large);
        let small = buffers.take(100);
        assert!(small.bytes.capacity() < 8192, "{}", small.bytes.capacity());
        let again = buffers.take((1 << 20) - 5);
        assert_eq!(again.bytes.as_ptr(), place);
    }

    #[test]
    fn idle_buffers_are_bounded_in_number_and_bytes() {
        let buffers = Arc::new(Buffers::default());
        drop((0..100).map(|_| buffers.take(1000)).collect::<Vec<_>>());
        assert_eq!(buffers.lock().buffers.len(), IDLE_MAX);
        drop((0..100).map(|_| buffers.take(1 << 20)).collect::<Vec<_>>());
        assert!(buffers.lock().len <= IDLE_LEN_MAX);
        drop(buffers.take(IDLE_LEN_MAX + 1));
        let idle = buffers.lock();
        assert_eq!(idle.len, idle.buffers.iter().map(Vec::capacity).sum::<usize>());
        assert!(idle.len <= IDLE_LEN_MAX);
    }
}
