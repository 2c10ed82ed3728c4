//! Reusable buffers for blocks: touching fresh memory costs more than decoding a block.
//!
//! Sizes are an eighth apart. EROFS blocks decode to any length; few sizes let returned buffers fit
//! again, and avoid fragmentation of the allocator's memory.

use packfs_format::units::*;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most idle buffers.
const IDLE_MAX: usize = 64;
const IDLE_LEN_MAX: usize = 8 << 20;
/// Sizes are multiples of this, so that tiny ones do not differ by a few bytes.
const SIZE_STEP_MIN: usize = 64;

#[derive(Default)]
pub(crate) struct Buffers(Mutex<Idle>);

#[derive(Default)]
struct Idle {
    buffers: Vec<Vec<u8>>,
    len: usize,
}

impl Buffers {
    /// Contents are unspecified. Little longer than `len`, because a small block that is kept must
    /// not keep the memory of a large one.
    pub(crate) fn take(self: &Arc<Self>, len: usize) -> Buffer {
        let size = size(len);
        let mut idle = self.lock();
        let fitting = idle.buffers.iter().rposition(|bytes| (len..=size).contains(&bytes.capacity()));
        let found = fitting.map(|index| idle.buffers.remove(index));
        idle.len -= found.as_ref().map_or(0, Vec::capacity);
        drop(idle);
        Buffer { bytes: found.unwrap_or_else(|| Vec::with_capacity(size)), home: Arc::clone(self) }
    }

    pub(crate) fn fitted(self: &Arc<Self>, bytes: Buffer) -> Buffer {
        if bytes.capacity() <= size(bytes.len()).times(2) {
            return bytes;
        }
        let mut fitting = self.take(bytes.len());
        fitting.clear();
        fitting.extend_from_slice(&bytes);
        fitting
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Exceeds `len` by at most an eighth, or one step.
fn size(len: usize) -> usize {
    let step = (len.checked_next_power_of_two().unwrap_or(len) / 16).max(SIZE_STEP_MIN);
    len.checked_next_multiple_of(step).unwrap_or(len)
}

pub(crate) struct Buffer {
    bytes: Vec<u8>,
    home: Arc<Buffers>,
}

impl Buffer {
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
        // The oldest go first: requests have the sizes that are returned now.
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
        assert!(small.bytes.capacity() < 200, "{}", small.bytes.capacity());
        let again = buffers.take((1 << 20) - 5);
        assert_eq!(again.bytes.as_ptr(), place);
    }

    #[test]
    fn sizes_are_few_and_waste_an_eighth_at_most() {
        let sizes: std::collections::BTreeSet<_> = (1..=1 << 20).step_by(7).map(size).collect();
        assert!(sizes.len() <= 120, "{}", sizes.len());
        for len in [1, 64, 65, 1000, 4096, 4097, 70_000, 131_073, 1 << 20, (1 << 20) + 1] {
            let waste_max = (len / 8).max(SIZE_STEP_MIN);
            assert!((len..=len + waste_max).contains(&size(len)), "{len}: {}", size(len));
        }
        assert_eq!((size(0), size(usize::MAX)), (0, usize::MAX));
    }

    #[test]
    fn few_bytes_leave_a_large_buffer() {
        let buffers = Arc::new(Buffers::default());
        let mut large = buffers.take(1 << 20);
        large.extend_from_slice(b"few");
        let fitting = buffers.fitted(large);
        assert!(fitting.capacity() <= SIZE_STEP_MIN);
        assert_eq!(fitting[..], *b"few");
        let place = fitting.as_ptr();
        assert_eq!(buffers.fitted(fitting).as_ptr(), place);
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
