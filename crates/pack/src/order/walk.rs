//! Placement of small files for readers that walk along the tree and keep few shared blocks
//! decoded, as Linux's SquashFS driver does.
//!
//! The tree is cut into stretches of one to three blocks, and files move within them. The number of
//! blocks is that with the least cost: estimated compressed bytes, and a price for each time that
//! a walk decodes a block. A model of the reader's cache counts these, with all other blocks that
//! the walk needs meanwhile: those of equal files, and of files that moved farther.

use super::chain::{self, Numbers};
use super::item::{Item, Seen};
use super::kernel_cache::KernelCache;
use super::rules::{Rules, compressed_len};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

/// Files that a walk reads before it needs a block again that it keeps.
const NEAR_FILES: u32 = 8;

pub(super) struct Stretch {
    pub blocks: Vec<Vec<u32>>,
    /// Files before this index are in this stretch, or an earlier one.
    pub end: u32,
}

pub(super) struct Files<'a> {
    pub items: &'a [Item],
    /// File whose bytes are read for each file: the first that equals it.
    pub visits: Vec<u32>,
    /// Files that equal no earlier one.
    pub originals: Vec<u32>,
    pub copies: HashMap<u32, Vec<u32>>,
    /// Copies that are stored separately, because a walk would decode the block of the original for
    /// a few bytes.
    pub stored_again: Vec<u32>,
}

impl<'a> Files<'a> {
    /// Short copies are stored again if the original is at least `far_len` bytes before them.
    pub(super) fn new(items: &'a [Item], far_len: u64, rules: &Rules) -> Self {
        let Visits { visits, originals, stored_again } = visits(items, far_len, rules);
        let mut copies: HashMap<u32, Vec<u32>> = HashMap::new();
        for (file, &original) in (0..).zip(&visits).filter(|&(file, &original)| file != original) {
            copies.entry(original).or_default().push(file);
        }
        Files { items, visits, originals, copies, stored_again }
    }

    pub(super) fn alone(&self) -> Vec<Vec<u32>> {
        self.originals.iter().map(|&file| vec![file]).collect()
    }

    /// Places each group within one block; copies are left out. `fills` are those of earlier
    /// placements of the same files.
    pub(super) fn place(&self, groups: Vec<Vec<u32>>, rules: &Rules, fills: &mut Fills) -> Vec<Stretch> {
        let units = groups.iter().map(|group| unit(self.items, group)).collect();
        let starts = groups.iter().map(|group| group[0]).chain([self.items.len() as u32]).collect();
        let block_of = vec![u32::MAX; self.items.len()];
        let kept = KernelCache::default();
        Walk { files: self, rules, groups, units, starts, block_of, block_count: 0, kept, fills }.run()
    }

    pub(super) fn with_copies(&self, mut stretches: Vec<Stretch>) -> Vec<Stretch> {
        for block in stretches.iter_mut().flat_map(|stretch| &mut stretch.blocks) {
            let copies = |file: &u32| self.copies.get(file).into_iter().flatten().copied();
            *block = block.iter().flat_map(|file| [*file].into_iter().chain(copies(file))).collect();
        }
        stretches
    }
}

struct Visits {
    visits: Vec<u32>,
    originals: Vec<u32>,
    stored_again: Vec<u32>,
}

fn visits(items: &[Item], far_len: u64, rules: &Rules) -> Visits {
    let mut firsts: HashMap<(u64, u32), (u32, u64)> = HashMap::new();
    let mut found = Visits { visits: Vec::new(), originals: Vec::new(), stored_again: Vec::new() };
    let mut offset = 0;
    for (file, item) in (0..).zip(items) {
        let first = item.hash.map(|hash| *firsts.entry((hash, item.len)).or_insert((file, offset)));
        let is_far = |first_at: u64| u64::from(item.len) <= rules.again_max && offset - first_at >= far_len;
        match first {
            Some((first, first_at)) if first != file && !is_far(first_at) => found.visits.push(first),
            _ => {
                found.visits.push(file);
                found.originals.push(file);
                offset += u64::from(item.len);
                let is_copy = first.is_some_and(|(first, _)| first != file);
                found.stored_again.extend(is_copy.then_some(file));
            }
        }
    }
    found
}

fn unit(items: &[Item], group: &[u32]) -> Item {
    let files = group.iter().map(|&file| &items[file as usize]);
    let mut features: Vec<u32> = files.clone().flat_map(|item| item.features.iter().copied()).collect();
    features.sort_unstable();
    features.dedup();
    let unshared = files.clone().map(|item| item.unshared).sum();
    Item { features: features.into(), unshared, len: files.map(|item| item.len).sum(), hash: None }
}

struct Fill {
    /// The first file of each unit has the flag [`FIRST`].
    tried: Vec<u32>,
    count: usize,
    /// Files of each block.
    blocks: Vec<Vec<u32>>,
    len: u64,
    stored_len: u64,
}

/// Fills of blocks, by first file and number of blocks. Placements differ in few places, so most
/// fills serve them all.
#[derive(Default)]
pub(super) struct Fills {
    done: HashMap<(u32, u64), Rc<Fill>>,
    numbers: Numbers,
    seen: Seen,
}

/// Flag of a file that is the first of a unit; there are at most 65,536 files.
const FIRST: u32 = 1 << 31;

fn flagged(groups: &[Vec<u32>]) -> impl Iterator<Item = u32> {
    groups
        .iter()
        .flat_map(|group| (0..).zip(group).map(|(i, &file)| if i == 0 { file | FIRST } else { file }))
}

struct Trial {
    fill: Rc<Fill>,
    kept: KernelCache,
    cost: u64,
}

impl Trial {
    fn is_cheaper(&self, other: &Trial) -> bool {
        u128::from(self.cost) * u128::from(other.fill.len)
            < u128::from(other.cost) * u128::from(self.fill.len)
    }
}

struct Walk<'a> {
    files: &'a Files<'a>,
    rules: &'a Rules,
    groups: Vec<Vec<u32>>,
    units: Vec<Item>,
    starts: Vec<u32>,
    block_of: Vec<u32>,
    block_count: u32,
    kept: KernelCache,
    fills: &'a mut Fills,
}

impl Walk<'_> {
    fn run(&mut self) -> Vec<Stretch> {
        let mut stretches = Vec::new();
        let mut done = 0;
        while done < self.units.len() {
            let mut best = self.attempt(done, 1);
            for count in 2..=self.rules.stretch_max {
                let trial = self.attempt(done, count);
                if trial.is_cheaper(&best) {
                    best = trial;
                }
            }
            let Fill { blocks, count, .. } = &*best.fill;
            self.number(blocks);
            self.block_count += blocks.len() as u32;
            self.kept = best.kept;
            done += count;
            stretches.push(Stretch { blocks: blocks.clone(), end: self.starts[done] });
        }
        stretches
    }

    fn attempt(&mut self, start: usize, block_count: u64) -> Trial {
        let fill = self.fill(start, block_count);
        self.number(&fill.blocks);
        let mut kept = self.kept;
        let walked = self.starts[start] as usize..self.starts[start + fill.count] as usize;
        let decodes = self.decodes(walked.clone(), &mut kept) + self.later_decodes(walked.end, &fill.blocks);
        let cost = fill.stored_len + decodes * self.rules.decode_price;
        Trial { fill, kept, cost }
    }

    fn fill(&mut self, start: usize, block_count: u64) -> Rc<Fill> {
        let room = block_count * self.rules.block_len;
        let mut len = 0;
        let fits = |unit: &&Item| {
            len += u64::from(unit.len);
            len <= room
        };
        let tried = self.units[start..].iter().take_while(fits).count().max(1);
        let groups = &self.groups[start..start + tried];
        let key = (groups[0][0], block_count);
        if let Some(fill) = self.fills.done.get(&key)
            && flagged(groups).eq(fill.tried.iter().copied())
        {
            return Rc::clone(fill);
        }
        let tried_files = flagged(groups).collect();
        let (count, blocks) = self.units_in_blocks(start, tried, block_count);
        let lens = blocks.iter().flatten().map(|&file| u64::from(self.files.items[file as usize].len));
        let len = lens.sum();
        let stored_len = blocks.iter().map(|block| self.stored_len(block)).sum();
        let fill = Rc::new(Fill { tried: tried_files, count, blocks, len, stored_len });
        self.fills.done.insert(key, Rc::clone(&fill));
        fill
    }

    fn units_in_blocks(
        &mut self,
        start: usize,
        mut count: usize,
        block_count: u64,
    ) -> (usize, Vec<Vec<u32>>) {
        let units = &self.units[start..start + count];
        loop {
            let order = chain::chain(&units[..count], self.rules.window_len, &mut self.fills.numbers);
            let blocks = self.cut(start, &order);
            if blocks.len() as u64 <= block_count || count == 1 {
                return (count, blocks);
            }
            // Units that do not fit go to the next stretch, taken from the end in tree order.
            let beyond = blocks[block_count as usize..].iter().flatten();
            let overfull: u64 = beyond.map(|&file| u64::from(self.files.items[file as usize].len)).sum();
            let mut freed = 0;
            while freed < overfull.max(1) && count > 1 {
                count -= 1;
                freed += u64::from(units[count].len);
            }
        }
    }

    fn cut(&self, start: usize, order: &[u32]) -> Vec<Vec<u32>> {
        let mut blocks = Vec::new();
        let mut block = Vec::new();
        let mut filled = 0;
        for &index in order {
            let number = start + index as usize;
            let len = u64::from(self.units[number].len);
            if filled + len > self.rules.block_len {
                blocks.push(std::mem::take(&mut block));
                filled = 0;
            }
            filled += len;
            block.extend(&self.groups[number]);
        }
        blocks.push(block);
        blocks.retain(|block| !block.is_empty());
        blocks
    }

    fn number(&mut self, blocks: &[Vec<u32>]) {
        for (number, block) in (self.block_count..).zip(blocks) {
            for &file in block {
                self.block_of[file as usize] = number;
            }
        }
    }

    fn decodes(&self, walked: Range<usize>, kept: &mut KernelCache) -> u64 {
        let blocks = self.files.visits[walked].iter().map(|&file| self.block_of[file as usize]);
        blocks.filter(|&block| kept.read(block)).count() as u64
    }

    /// Estimates the decodes when a walk comes back to these blocks, from `walked` on.
    fn later_decodes(&self, walked: usize, blocks: &[Vec<u32>]) -> u64 {
        let files = blocks.iter().flatten();
        let copies = files.clone().filter_map(|file| self.files.copies.get(file)).flatten();
        let mut visits: Vec<u32> = files.chain(copies).copied().collect();
        visits.retain(|&file| file as usize >= walked);
        visits.sort_unstable();
        // What lies between takes the place of all but the last block.
        let block = |file: &u32| self.block_of[self.files.visits[*file as usize] as usize];
        visits.chunk_by(|a, b| b - a <= NEAR_FILES && block(a) == block(b)).count() as u64
    }

    /// Bytes with features that the block has already are free.
    fn stored_len(&mut self, block: &[u32]) -> u64 {
        self.fills.seen.clear();
        let mut filled = 0;
        let mut stored = 0;
        for &file in block {
            let item = &self.files.items[file as usize];
            let len = u64::from(item.len);
            if filled + len > self.rules.window_len {
                self.fills.seen.clear();
                filled = 0;
            }
            filled += len;
            let new = item.features.iter().filter(|&&feature| self.fills.seen.insert(feature)).count() as u64;
            let (new, count) = (new + u64::from(item.unshared), item.feature_count());
            stored += compressed_len(len) * (new + 2) / (count + 2);
        }
        stored
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(features: Range<u32>, len: u32) -> Item {
        Item { features: features.collect(), len, ..Item::default() }
    }

    /// Kinds of files in turn, each kind with features of its own.
    fn mixed(count: u32, kinds: u32, len: u32) -> Vec<Item> {
        (0..count).map(|i| item(i % kinds * 100..i % kinds * 100 + 60, len)).collect()
    }

    fn stretches(items: &[Item]) -> Vec<Stretch> {
        let files = Files::new(items, u64::MAX, &Rules::new(1000, 1000));
        let rules = Rules::new(1000, 1000);
        files.with_copies(files.place(files.alone(), &rules, &mut Fills::default()))
    }

    fn lens(items: &[Item], stretches: &[Stretch]) -> Vec<u64> {
        let blocks = stretches.iter().flat_map(|stretch| &stretch.blocks);
        blocks.map(|block| block.iter().map(|&file| u64::from(items[file as usize].len)).sum()).collect()
    }

    #[test]
    fn every_file_is_in_one_block_that_holds_it() {
        let items = mixed(200, 7, 130);
        let stretches = stretches(&items);
        let mut files: Vec<u32> =
            stretches.iter().flat_map(|stretch| stretch.blocks.iter().flatten().copied()).collect();
        files.sort_unstable();
        assert!(files.into_iter().eq(0..200));
        assert!(lens(&items, &stretches).iter().all(|&len| len <= 1000));
        assert!(stretches.iter().all(|stretch| stretch.blocks.len() <= 3));
        assert_eq!(stretches.last().unwrap().end, 200);
    }

    #[test]
    fn files_that_are_alike_share_a_block_of_three() {
        let items = mixed(9, 3, 300);
        let stretches = stretches(&items);
        assert_eq!(stretches.len(), 1);
        assert_eq!(stretches[0].blocks, [vec![0, 3, 6], vec![1, 4, 7], vec![2, 5, 8]]);
    }

    #[test]
    fn fills_of_other_placements_change_nothing() {
        let items = mixed(300, 7, 130);
        let rules = Rules::new(1000, 1000);
        let files = Files::new(&items, u64::MAX, &rules);
        let mut used = Fills::default();
        let mut others = files.alone();
        let moved = others.remove(250);
        others[100].extend(moved);
        for groups in [files.alone(), others, files.alone()] {
            let blocks = |fills: &mut Fills| -> Vec<_> {
                let stretches = files.place(groups.clone(), &rules, fills);
                stretches.into_iter().map(|stretch| (stretch.blocks, stretch.end)).collect()
            };
            assert_eq!(blocks(&mut used), blocks(&mut Fills::default()));
        }
    }

    #[test]
    fn files_that_differ_stay_in_tree_order() {
        let items: Vec<Item> = (0..40).map(|i| item(i * 100..i * 100 + 60, 90)).collect();
        let stretches = stretches(&items);
        let files = stretches.iter().flat_map(|stretch| stretch.blocks.iter().flatten().copied());
        assert!(files.eq(0..40));
    }

    #[test]
    fn a_copy_follows_its_original_and_takes_no_room() {
        let mut items: Vec<Item> = (0..4).map(|i| item(i * 100..i * 100 + 60, 450)).collect();
        (items[0].hash, items[1].hash) = (Some(1), Some(1));
        let stretches = stretches(&items);
        assert_eq!(stretches[0].blocks, [vec![0, 1, 2]]);
        assert_eq!(stretches[1].blocks, [vec![3]]);
    }
}
