//! A bounded cache of verified metadata: blocks, tree nodes, inodes.

use crate::units::*;
use packfs_core::Result;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of sets, so that threads rarely wait for each other.
const SET_COUNT: u64 = 64;

/// Entries by key, within a limit in bytes. Errors are not cached.
pub struct BlockCache<T> {
    sets: Vec<Mutex<Set<T>>>,
    /// Entries longer than the share of a set, within the limit of the cache.
    large: Mutex<Set<T>>,
    set_bytes_max: usize,
    bytes_max: usize,
}

/// Entries that share a lock; the most recently used one is the last.
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
    /// Returns a cache of at most `bytes_max` bytes, and as many again for entries longer than a
    /// 64th of them. The most recently used long entry is kept whatever its length.
    pub fn new(bytes_max: usize) -> Self {
        let set = || Mutex::new(Set { entries: Vec::new(), bytes: 0 });
        let sets: Vec<_> = (0..SET_COUNT).map(|_| set()).collect();
        let set_bytes_max = bytes_max.quotient(sets.len());
        BlockCache { sets, large: set(), set_bytes_max, bytes_max }
    }

    /// Returns the entry of `key`; `load` returns a missing one with its size in bytes. Two threads
    /// that miss the same entry may both load it.
    ///
    /// Errors: those of `load`.
    pub fn get_or(&self, key: u64, load: impl FnOnce() -> Result<(T, usize)>) -> Result<Arc<T>> {
        self.get_or_if(key, |_| true, load)
    }

    /// Returns the entry of `key`, if it is cached.
    pub fn get(&self, key: u64) -> Option<Arc<T>> {
        self.set(key).and_then(|mut set| set.get(key)).or_else(|| self.large().get(key))
    }

    /// Returns the entry of `key` as [`BlockCache::get_or`] does, and replaces one that is not
    /// `wanted`.
    ///
    /// Errors: those of `load`.
    pub fn get_or_if(
        &self,
        key: u64,
        wanted: impl Fn(&T) -> bool,
        load: impl FnOnce() -> Result<(T, usize)>,
    ) -> Result<Arc<T>> {
        if let Some(found) = self.get(key).filter(|found| wanted(found)) {
            return Ok(found);
        }
        let (value, bytes) = load()?;
        let value = Arc::new(value);
        let kept = Kept { key, value: Arc::clone(&value), bytes };
        if bytes > self.set_bytes_max {
            self.set(key).into_iter().for_each(|mut set| set.forget(key));
            self.large().put(kept, self.bytes_max);
        } else if let Some(mut set) = self.set(key) {
            set.put(kept, self.set_bytes_max);
        }
        Ok(value)
    }

    fn large(&self) -> MutexGuard<'_, Set<T>> {
        self.large.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn forget(&mut self, key: u64) {
        if let Some(index) = self.entries.iter().position(|other| other.key == key) {
            self.remove(index);
        }
    }

    fn put(&mut self, kept: Kept<T>, bytes_max: usize) {
        self.forget(kept.key);
        self.bytes = self.bytes.plus(kept.bytes);
        self.entries.push(kept);
        while self.bytes > bytes_max && self.entries.len() > 1 {
            self.remove(0);
        }
    }

    fn remove(&mut self, index: usize) {
        let removed = self.entries.remove(index);
        self.bytes = self.bytes.minus(removed.bytes);
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
        assert_eq!((cache.get(1).as_deref(), cache.get(2)), (Some(&7), None));
    }

    #[test]
    fn entries_longer_than_the_share_of_a_set_share_the_limit_of_the_cache() {
        let cache = BlockCache::new(64 * 100);
        let kept: Vec<_> = (0..300).map(|key| cache.get_or(key, || Ok((key, 1000))).unwrap()).collect();
        let live = kept.iter().filter(|value| Arc::strong_count(value) > 1).count();
        assert_eq!(live, 6);
        let last = cache.get_or(299, || panic!("it was kept")).unwrap();
        assert_eq!(*last, 299);
    }

    #[test]
    fn an_entry_that_is_not_wanted_is_replaced() {
        let cache = BlockCache::new(64 * 100);
        for (value, bytes) in [(1, 10), (2, 1000), (3, 10)] {
            let found = cache.get_or_if(5, |found| *found == value, || Ok((value, bytes))).unwrap();
            assert_eq!(*found, value);
        }
        assert_eq!(*cache.get_or(5, || panic!("it was kept")).unwrap(), 3);
    }
}
