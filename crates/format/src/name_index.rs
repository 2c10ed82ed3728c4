//! Names of large directories by hash, for formats whose listings are not sorted.

use crate::{BlockCache, InodeId, units::*};
use packfs_core::Result;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

const BYTES_MAX: usize = 64 << 20;
const ENTRY_LEN: usize = 48;

/// Maximum names of an indexed directory; larger ones are listed for each search.
const NAMES_MAX: usize = BYTES_MAX / ENTRY_LEN;

/// Indexes of recently searched directories.
pub struct NameIndex {
    /// `None` for a directory with too many names.
    dirs: BlockCache<Option<HashMap<NameHash, InodeId>>>,
    names_max: usize,
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
    /// Returns an empty index.
    pub fn new() -> Self {
        NameIndex::with_names_max(NAMES_MAX)
    }

    fn with_names_max(names_max: usize) -> Self {
        let hashers = [RandomState::new(), RandomState::new()];
        NameIndex { dirs: BlockCache::new(BYTES_MAX), names_max, hashers }
    }

    /// Finds a name in a directory. `list` reports all of its names, if they are not indexed. Of
    /// equal names the first is used.
    ///
    /// Errors: those of `list`.
    pub fn find(
        &self,
        dir: InodeId,
        name: &[u8],
        list: impl FnOnce(&mut dyn FnMut(&[u8], InodeId)) -> Result<()>,
    ) -> Result<Option<InodeId>> {
        let (mut list, mut listed) = (Some(list), None);
        let index = self.dirs.get_or(dir.0, || {
            let Some(list) = list.take() else { return Ok((None, 0)) };
            let mut names = Some(HashMap::new());
            list(&mut |own, id| {
                if own == name {
                    listed.get_or_insert(id);
                }
                if names.as_ref().is_some_and(|names| names.len() >= self.names_max) {
                    names = None;
                }
                if let Some(names) = &mut names {
                    names.entry(self.hash(own)).or_insert(id);
                }
            })?;
            let bytes = names.as_ref().map_or(0, |names| names.len().times(ENTRY_LEN));
            Ok((names, bytes))
        })?;
        match (&*index, list) {
            (Some(names), _) => Ok(names.get(&self.hash(name)).copied()),
            (None, Some(list)) => {
                list(&mut |own, id| {
                    if own == name {
                        listed.get_or_insert(id);
                    }
                })?;
                Ok(listed)
            }
            (None, None) => Ok(listed),
        }
    }

    fn hash(&self, name: &[u8]) -> NameHash {
        self.hashers.each_ref().map(|hasher| hasher.hash_one(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_too_many_names_is_listed_for_each_search() {
        let index = NameIndex::with_names_max(2);
        let mut lists = 0;
        for (name, wanted) in [("b", Some(InodeId(2))), ("x", None), ("d", Some(InodeId(4)))] {
            let found = index.find(InodeId(9), name.as_bytes(), |put| {
                lists += 1;
                [("a", 1), ("b", 2), ("b", 3), ("c", 3), ("d", 4)]
                    .into_iter()
                    .for_each(|(name, id)| put(name.as_bytes(), InodeId(id)));
                Ok(())
            });
            assert_eq!(found.unwrap(), wanted);
        }
        assert_eq!(lists, 3);
    }

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
