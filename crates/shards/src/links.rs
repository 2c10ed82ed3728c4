//! Shards of files with several names: all names go where the first one went.

use packfs_source::Surveyed;
use std::collections::HashMap;

/// Most files whose further names are still to come: about 160 MB.
const FILES_MAX: usize = 4_000_000;

/// Files whose further names are still to come.
#[derive(Default)]
pub(crate) struct Links {
    /// Shard, and names to come, by device and inode.
    files: HashMap<(u64, u64), (u32, u64)>,
    /// Files that memory has no room for: their names may be in different shards.
    pub split: u64,
}

impl Links {
    /// Returns the shard of a name, `shard` being the one that its place in the tree gives, and
    /// true if it is the first name of its file.
    pub(crate) fn shard_of(&mut self, found: &Surveyed, shard: usize) -> (usize, bool) {
        if found.links < 2 {
            return (shard, true);
        }
        if let Some((first, left)) = self.files.get_mut(&found.identity) {
            let first = *first as usize;
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.files.remove(&found.identity);
            }
            return (first, false);
        }
        match u32::try_from(shard) {
            Ok(number) if self.files.len() < FILES_MAX => {
                self.files.insert(found.identity, (number, found.links - 1));
            }
            _ => self.split += 1,
        }
        (shard, true)
    }
}
