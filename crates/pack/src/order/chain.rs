//! Orders files so that each has much in common with those right before it.
//!
//! Greedy: the next file is the one with most features in the block that is being filled; if none
//! has any, the first one left in the given order. A compressor sees only its block, so every block
//! starts with the file most similar to the last one. Near-linear: files are looked up by features,
//! and features of too many files are ignored.

use super::item::Item;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A feature of more files is ignored.
const POSTINGS_MAX: usize = 256;
/// Added to the number of a file's features, so that tiny files, all of whose few features are
/// common, do not precede longer ones.
const FEATURES_MORE: u64 = 8;

/// Depends on nothing but its arguments.
pub(super) fn chain(items: &[Item], block_len: u64, numbers: &mut Numbers) -> Vec<u32> {
    let index = Index::new(&items.iter().map(|item| &*item.features).collect::<Vec<_>>(), numbers);
    let mut chain = Chain {
        index: &index,
        items,
        scores: vec![0; items.len()],
        scored: Vec::new(),
        placed: vec![false; items.len()],
        seen: vec![false; index.starts.len()],
        seen_list: Vec::new(),
        changed: Vec::new(),
        has_changed: vec![false; items.len()],
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

/// Zeros, one a feature; each [`Index`] reuses the table.
#[derive(Default)]
pub(super) struct Numbers(Vec<u32>);

pub(super) struct Index {
    /// Start of each feature's files in `files`, and the end.
    starts: Vec<u32>,
    files: Vec<u32>,
    /// Start of each file's features in `features`, and the end.
    file_starts: Vec<u32>,
    features: Vec<u32>,
}

impl Index {
    pub(super) fn new(files_features: &[&[u32]], Numbers(numbers): &mut Numbers) -> Self {
        let all = || files_features.iter().copied().flatten().map(|&feature| feature as usize);
        numbers.resize(numbers.len().max(all().max().map_or(0, |last| last + 1)), 0);
        let mut found = Vec::new();
        for feature in all() {
            if numbers[feature] == 0 {
                found.push(feature);
            }
            numbers[feature] += 1;
        }
        // The number of files of each feature gives way to its number in the index, from one.
        let (mut starts, mut next) = (vec![0], vec![0]);
        for &feature in &found {
            let file_count = std::mem::take(&mut numbers[feature]);
            if (2..=POSTINGS_MAX).contains(&(file_count as usize)) {
                numbers[feature] = starts.len() as u32;
                next.push(starts[starts.len() - 1]);
                starts.push(starts[starts.len() - 1] + file_count);
            }
        }
        let mut files = vec![0; starts[starts.len() - 1] as usize];
        let (mut file_starts, mut features) = (vec![0], Vec::with_capacity(files.len()));
        for (file, of_file) in (0..).zip(files_features) {
            for &feature in *of_file {
                let number = numbers[feature as usize] as usize;
                if number > 0 {
                    files[next[number] as usize] = file;
                    next[number] += 1;
                    features.push(number as u32 - 1);
                }
            }
            file_starts.push(features.len() as u32);
        }
        found.into_iter().for_each(|feature| numbers[feature] = 0);
        Index { starts, files, file_starts, features }
    }

    pub(super) fn features_of(&self, file: u32) -> &[u32] {
        let file = file as usize;
        &self.features[self.file_starts[file] as usize..self.file_starts[file + 1] as usize]
    }

    pub(super) fn files_with(&self, feature: u32) -> &[u32] {
        let feature = feature as usize;
        &self.files[self.starts[feature] as usize..self.starts[feature + 1] as usize]
    }
}

struct Chain<'a> {
    index: &'a Index,
    items: &'a [Item],
    scores: Vec<u32>,
    scored: Vec<u32>,
    placed: Vec<bool>,
    seen: Vec<bool>,
    seen_list: Vec<u32>,
    /// Files whose score is no longer that in `heap`.
    changed: Vec<u32>,
    has_changed: Vec<bool>,
    /// Files by score, best first; a row with an outdated score is skipped.
    heap: BinaryHeap<(u64, Reverse<u32>, u32)>,
}

impl Chain<'_> {
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
                if !std::mem::replace(&mut self.has_changed[other as usize], true) {
                    self.changed.push(other);
                }
            }
        }
        for other in self.changed.drain(..) {
            self.has_changed[other as usize] = false;
            let score = self.scores[other as usize];
            let count = self.items[other as usize].feature_count();
            self.heap.push(((u64::from(score) << 32) / (count + FEATURES_MORE), Reverse(other), score));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(features: &[u32], len: u32) -> Item {
        Item { features: features.into(), len, ..Item::default() }
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
        assert_eq!(chain(&items, 1000, &mut Numbers::default()), [0, 3, 5, 1, 4, 2]);
    }

    #[test]
    fn a_new_block_begins_with_what_is_like_the_last_one_and_forgets_it() {
        let items = [item(&[1, 5], 60), item(&[9], 60), item(&[1, 7], 60), item(&[7, 9], 60), item(&[5], 60)];
        // 0 fills the first block; 4 and 2 resemble it. 2 has a feature of 3, which has one of 1.
        assert_eq!(chain(&items, 100, &mut Numbers::default()), [0, 4, 1, 3, 2]);
    }

    #[test]
    fn ignores_features_of_too_many_files() {
        let mut items: Vec<Item> = (0..=POSTINGS_MAX).map(|_| item(&[7], 1)).collect();
        items[POSTINGS_MAX] = item(&[3, 7], 1);
        items[0] = item(&[3, 7], 1);
        let order = chain(&items, 1 << 20, &mut Numbers::default());
        assert_eq!(order[..3], [0, POSTINGS_MAX as u32, 1]);
        let mut sorted = order;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..items.len() as u32));
    }

    #[test]
    fn no_files_are_no_order() {
        assert!(chain(&[], 100, &mut Numbers::default()).is_empty());
    }
}
