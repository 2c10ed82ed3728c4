//! Orders files so that each has much in common with those right before it.
//!
//! Greedy: the next file is the one with most features in the block that is being filled; if none
//! has any, the first one left in the given order. A compressor sees only its block, so every block
//! starts with the file most similar to the last one. Near-linear: files are looked up by features,
//! and features of too many files are ignored.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A feature of more files is ignored.
const POSTINGS_MAX: usize = 256;
const FILE_BITS: u32 = 32;
/// Added to the number of a file's features, so that tiny files, all of whose few features are
/// common, do not precede longer ones.
const FEATURES_MORE: u64 = 8;

/// One file: its features, and its length in bytes.
#[derive(Default)]
pub(super) struct Item {
    pub features: Box<[u32]>,
    pub len: u32,
    /// Hash of the contents, if equal files are stored once.
    pub hash: Option<u64>,
}

/// Returns the order of `items` as indexes, for blocks of `block_len` bytes; it depends on nothing
/// else.
pub(super) fn chain(items: &[Item], block_len: u64) -> Vec<u32> {
    let index = Index::new(&items.iter().map(|item| &*item.features).collect::<Vec<_>>());
    let mut chain = Chain {
        index: &index,
        items,
        scores: vec![0; items.len()],
        scored: Vec::new(),
        placed: vec![false; items.len()],
        seen: vec![false; index.starts.len()],
        seen_list: Vec::new(),
        heap: BinaryHeap::new(),
    };
    let mut order = Vec::with_capacity(items.len());
    let mut first_left = 0;
    let mut filled = 0;
    while order.len() < items.len() {
        let next = chain.best().unwrap_or_else(|| {
            first_left += chain.placed[first_left..].iter().position(|placed| !placed).unwrap_or(0);
            first_left as u32
        });
        let len = u64::from(items[next as usize].len);
        if filled + len > block_len {
            chain.begin_block();
            filled = 0;
        }
        filled += len;
        chain.place(next);
        order.push(next);
    }
    order
}

/// Features shared by files; those of a single file are left out.
pub(super) struct Index {
    /// Start of each feature's files in `files`, and the end.
    starts: Vec<u32>,
    files: Vec<u32>,
    /// Start of each file's features in `features`, and the end.
    file_starts: Vec<u32>,
    features: Vec<u32>,
}

impl Index {
    /// Creates an index of files by the features of each.
    pub(super) fn new(files_features: &[&[u32]]) -> Self {
        let file_count = files_features.len();
        let mut pairs: Vec<u64> = Vec::with_capacity(files_features.iter().copied().map(<[u32]>::len).sum());
        for (file, features) in files_features.iter().enumerate() {
            pairs.extend(features.iter().map(|&feature| u64::from(feature) << FILE_BITS | file as u64));
        }
        pairs.sort_unstable();
        let (mut starts, mut files) = (Vec::new(), Vec::new());
        let mut file_starts = vec![0_u32; file_count + 1];
        for group in pairs.chunk_by(|a, b| a >> FILE_BITS == b >> FILE_BITS) {
            if (2..=POSTINGS_MAX).contains(&group.len()) {
                starts.push(files.len() as u32);
                for &pair in group {
                    files.push(pair as u32);
                    file_starts[pair as u32 as usize + 1] += 1;
                }
            }
        }
        starts.push(files.len() as u32);
        drop(pairs);
        for file in 0..file_count {
            file_starts[file + 1] += file_starts[file];
        }
        let mut features = vec![0; files.len()];
        let mut next = file_starts.clone();
        for (feature, range) in starts.windows(2).enumerate() {
            for &file in &files[range[0] as usize..range[1] as usize] {
                let at = &mut next[file as usize];
                features[*at as usize] = feature as u32;
                *at += 1;
            }
        }
        Index { starts, files, file_starts, features }
    }

    /// Returns the numbers of a file's features.
    pub(super) fn features_of(&self, file: u32) -> &[u32] {
        let file = file as usize;
        &self.features[self.file_starts[file] as usize..self.file_starts[file + 1] as usize]
    }

    /// Returns the files that have a feature, by its number.
    pub(super) fn files_with(&self, feature: u32) -> &[u32] {
        let feature = feature as usize;
        &self.files[self.starts[feature] as usize..self.starts[feature + 1] as usize]
    }
}

struct Chain<'a> {
    index: &'a Index,
    items: &'a [Item],
    /// Number of features that each file shares with the block.
    scores: Vec<u32>,
    scored: Vec<u32>,
    placed: Vec<bool>,
    /// Features in the block.
    seen: Vec<bool>,
    seen_list: Vec<u32>,
    /// Files by score, best first; a row with an outdated score is skipped.
    heap: BinaryHeap<(u64, Reverse<u32>, u32)>,
}

impl Chain<'_> {
    /// Returns the remaining file with most features in the block.
    fn best(&mut self) -> Option<u32> {
        while let Some((_, Reverse(file), score)) = self.heap.pop() {
            if !self.placed[file as usize] && self.scores[file as usize] == score {
                return Some(file);
            }
        }
        None
    }

    fn begin_block(&mut self) {
        for file in self.scored.drain(..) {
            self.scores[file as usize] = 0;
        }
        for feature in self.seen_list.drain(..) {
            self.seen[feature as usize] = false;
        }
        self.heap.clear();
    }

    fn place(&mut self, file: u32) {
        self.placed[file as usize] = true;
        for &feature in self.index.features_of(file) {
            if std::mem::replace(&mut self.seen[feature as usize], true) {
                continue;
            }
            self.seen_list.push(feature);
            for &other in self.index.files_with(feature) {
                if self.placed[other as usize] {
                    continue;
                }
                let score = &mut self.scores[other as usize];
                if *score == 0 {
                    self.scored.push(other);
                }
                *score += 1;
                let count = self.items[other as usize].features.len() as u64;
                self.heap.push(((u64::from(*score) << 32) / (count + FEATURES_MORE), Reverse(other), *score));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(features: &[u32], len: u32) -> Item {
        Item { features: features.into(), len, hash: None }
    }

    #[test]
    fn groups_similar_files_and_keeps_the_order_of_others() {
        let items = [
            item(&[1, 2, 3], 10),
            item(&[10, 11], 10),
            item(&[20], 10),
            item(&[1, 2, 4], 10),
            item(&[10, 12], 10),
            item(&[2, 3, 4], 10),
        ];
        assert_eq!(chain(&items, 1000), [0, 3, 5, 1, 4, 2]);
    }

    #[test]
    fn a_new_block_begins_with_what_is_like_the_last_one_and_forgets_it() {
        let items = [item(&[1, 5], 60), item(&[9], 60), item(&[1, 7], 60), item(&[7, 9], 60), item(&[5], 60)];
        // 0 fills the first block; 4 and 2 resemble it. 2 has a feature of 3, which has one of 1.
        assert_eq!(chain(&items, 100), [0, 4, 1, 3, 2]);
    }

    #[test]
    fn ignores_features_of_too_many_files() {
        let mut items: Vec<Item> = (0..=POSTINGS_MAX).map(|_| item(&[7], 1)).collect();
        items[POSTINGS_MAX] = item(&[3, 7], 1);
        items[0] = item(&[3, 7], 1);
        let order = chain(&items, 1 << 20);
        assert_eq!(order[..3], [0, POSTINGS_MAX as u32, 1]);
        let mut sorted = order;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..items.len() as u32));
    }

    #[test]
    fn no_files_are_no_order() {
        assert!(chain(&[], 100).is_empty());
    }
}
