//! A bounded cache of metadata that was read and verified: blocks, tree nodes, inodes.

use packfs_core::Result;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sets of entries, so that threads rarely wait for each other.
const SET_COUNT: u64 = 64;

/// Entries by key, within a limit in bytes. Errors are not kept.
pub struct BlockCache<T> {
    sets: Vec<Mutex<Set<T>>>,
    set_bytes_max: usize,
}

/// Entries that share a lock; the one used last stands last.
struct Set<T> {
    entries: Vec<Kept<T>>,
    bytes: usize,
}

struct Kept<T> {
    key: u64,
    value: Arc<T>,
    bytes: usize,
}

impl<T> BlockCache<T> {
    /// Makes a cache of at most so many bytes. Whatever its limit, each of its sets keeps the entry
    /// used last.
    pub fn new(bytes_max: usize) -> Self {
        let set = || Mutex::new(Set { entries: Vec::new(), bytes: 0 });
        let sets: Vec<_> = (0..SET_COUNT).map(|_| set()).collect();
        BlockCache { set_bytes_max: bytes_max.checked_div(sets.len()).unwrap_or(0), sets }
    }

    /// Returns the entry of `key`; one that is missing is made by `load`, which returns it with its
    /// size in bytes. Two threads that miss the same entry may both load it.
    ///
    /// Errors: those of `load`.
    pub fn get_or(&self, key: u64, load: impl FnOnce() -> Result<(T, usize)>) -> Result<Arc<T>> {
        if let Some(found) = self.set(key).and_then(|mut set| set.get(key)) {
            return Ok(found);
        }
        let (value, bytes) = load()?;
        let value = Arc::new(value);
        if let Some(mut set) = self.set(key) {
            set.put(Kept { key, value: Arc::clone(&value), bytes }, self.set_bytes_max);
        }
        Ok(value)
    }

    /// Keys are often multiples of a power of two: all of their bits choose the set.
    fn set(&self, key: u64) -> Option<MutexGuard<'_, Set<T>>> {
        let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let set = self.sets.get(usize::try_from(mixed % SET_COUNT).ok()?)?;
        Some(set.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T> Set<T> {
    fn get(&mut self, key: u64) -> Option<Arc<T>> {
        let index = self.entries.iter().rposition(|kept| kept.key == key)?;
        let kept = self.entries.remove(index);
        let value = Arc::clone(&kept.value);
        self.entries.push(kept);
        Some(value)
    }

    fn put(&mut self, kept: Kept<T>, bytes_max: usize) {
        if let Some(index) = self.entries.iter().position(|other| other.key == kept.key) {
            self.remove(index);
        }
        self.bytes = self.bytes.saturating_add(kept.bytes);
        self.entries.push(kept);
        while self.bytes > bytes_max && self.entries.len() > 1 {
            self.remove(0);
        }
    }

    fn remove(&mut self, index: usize) {
        let removed = self.entries.remove(index);
        self.bytes = self.bytes.saturating_sub(removed.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::Error;

    #[test]
    fn keeps_what_was_used_last_within_its_limit() {
        let cache = BlockCache::new(64 * 300);
        // Keys of one set.
        let keys: Vec<u64> =
            (0u64..).filter(|key| key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & 63 == 5).take(4).collect();
        let mut loads = Vec::new();
        for index in [0, 1, 2, 0, 3, 0, 1] {
            let load = || {
                loads.push(index);
                Ok((index, 100))
            };
            assert_eq!(*cache.get_or(keys[index], load).unwrap(), index);
        }
        assert_eq!(loads, [0, 1, 2, 3, 1]);
    }

    #[test]
    fn loads_again_after_an_error() {
        let cache = BlockCache::new(1000);
        assert!(cache.get_or(1, || Err(Error::failed("cannot read"))).is_err());
        assert_eq!(*cache.get_or(1, || Ok((7, 10_000))).unwrap(), 7);
        assert_eq!(*cache.get_or(1, || panic!("it was kept")).unwrap(), 7);
    }
}
