//! Names of large directories by hash, for formats whose listings are not sorted.

use crate::{BlockCache, InodeId};
use packfs_core::Result;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Bytes of all indexes that are kept.
const BYTES_MAX: usize = 64 << 20;
/// Bytes of an entry of an index.
const ENTRY_LEN: usize = 48;

/// Indexes of the directories that were searched last.
pub struct NameIndex {
    dirs: BlockCache<HashMap<NameHash, InodeId>>,
    /// Two keyed hashes of 64 bits: an image cannot choose names that collide.
    hashers: [RandomState; 2],
}

type NameHash = [u64; 2];

impl Default for NameIndex {
    fn default() -> Self {
        NameIndex::new()
    }
}

impl NameIndex {
    /// Makes an empty index.
    pub fn new() -> Self {
        NameIndex { dirs: BlockCache::new(BYTES_MAX), hashers: [RandomState::new(), RandomState::new()] }
    }

    /// Finds a name in a directory. `list` hands out all of its names, if they are not known yet.
    /// Of equal names the first counts.
    ///
    /// Errors: those of `list`.
    pub fn find(
        &self,
        dir: InodeId,
        name: &[u8],
        list: impl FnOnce(&mut dyn FnMut(&[u8], InodeId)) -> Result<()>,
    ) -> Result<Option<InodeId>> {
        let names = self.dirs.get_or(dir.0, || {
            let mut names = HashMap::new();
            list(&mut |name, id| {
                names.entry(self.hash(name)).or_insert(id);
            })?;
            let bytes = names.len().saturating_mul(ENTRY_LEN);
            Ok((names, bytes))
        })?;
        Ok(names.get(&self.hash(name)).copied())
    }

    fn hash(&self, name: &[u8]) -> NameHash {
        self.hashers.each_ref().map(|hasher| hasher.hash_one(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_a_directory_once() {
        let index = NameIndex::new();
        let mut lists = 0;
        for (name, wanted) in [("b", Some(InodeId(2))), ("c", None), ("a", Some(InodeId(1)))] {
            let found = index.find(InodeId(9), name.as_bytes(), |put| {
                lists += 1;
                [("a", 1), ("b", 2), ("b", 3)]
                    .into_iter()
                    .for_each(|(name, id)| put(name.as_bytes(), InodeId(id)));
                Ok(())
            });
            assert_eq!(found.unwrap(), wanted);
        }
        assert_eq!(lists, 1);
        assert_eq!(index.find(InodeId(8), b"a", |_| Ok(())).unwrap(), None);
    }
}
