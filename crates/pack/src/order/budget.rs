//! Choice of a placement whose walk costs hardly more than that of tree order.
//!
//! Prices alone do not bound the cost: where many files equal others, each block read out of turn
//! evicts one in use, and further decodes follow. So each placement is walked as a whole, and the
//! first one within the limits is taken.

use super::item::Item;
use super::kernel_cache::{KERNEL_KEEPS, KernelCache};
use super::pairs;
use super::rules::Rules;
use super::walk::{Files, Fills, Stretch};

/// Parts of the cost in tree order by which a walk may cost more: requests, and bytes decoded,
/// which are its CPU time.
const REQUESTS_SHARE: u64 = 32;
const BYTES_SHARE: u64 = 20;
/// Multiples of the price of a decode; the next one is tried if a walk costs too much.
const PRICES: [u64; 3] = [1, 4, 16];
/// Shared blocks for each move of a file, at least.
const BLOCKS_PER_MOVE: u64 = 3;
/// Requests of a walk for each move that a disk has to seek for, at least.
const REQUESTS_PER_SEEK: u64 = 400;
/// Numbers of moves that are tried.
const TRIES: u32 = 6;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WalkCost {
    pub requests: u64,
    pub bytes: u64,
}

impl WalkCost {
    fn limit(self) -> Self {
        WalkCost {
            requests: self.requests + self.requests / REQUESTS_SHARE,
            bytes: self.bytes + self.bytes / BYTES_SHARE,
        }
    }

    fn is_within(self, limit: Self) -> bool {
        self.requests <= limit.requests && self.bytes <= limit.bytes
    }
}

/// `items` are in tree order. Also returns the copies that are stored again. `others` is the cost
/// of blocks that are not shared.
pub(super) fn stretches(items: &[Item], others: WalkCost, rules: &Rules) -> (Vec<Stretch>, Vec<u32>) {
    let shared = Files::new(items, u64::MAX, rules);
    let mut fills = Fills::default();
    let in_tree_order = shared.place(shared.alone(), &Rules { stretch_max: 1, ..*rules }, &mut fills);
    let limit = cost(&shared, &in_tree_order, others).limit();
    let apart = Files::new(items, rules.block_len * KERNEL_KEEPS as u64, rules);
    match within(&apart, others, limit, rules, fills) {
        Some(stretches) => (apart.with_copies(stretches), apart.stored_again),
        None => (shared.with_copies(in_tree_order), Vec::new()),
    }
}

/// The placement with most moves of those within `limit`.
fn within(
    files: &Files<'_>,
    others: WalkCost,
    limit: WalkCost,
    rules: &Rules,
    mut fills: Fills,
) -> Option<Vec<Stretch>> {
    let cost = |stretches: &[Stretch]| cost(files, stretches, others);
    let priced = |price| Rules { decode_price: rules.decode_price * price, ..*rules };
    let (mut best, rules) = PRICES.map(priced).into_iter().find_map(|rules| {
        let stretches = files.place(files.alone(), &rules, &mut fills);
        cost(&stretches).is_within(limit).then_some((stretches, rules))
    })?;
    let left = limit.requests - cost(&best).requests;
    let moves = if left > 0 { pairs::moves(files, &rules) } else { Vec::new() };
    let far_max = limit.requests / REQUESTS_PER_SEEK;
    let block_count: u64 = best.iter().map(|stretch| stretch.blocks.len() as u64).sum();
    let mut low = 0;
    let mut high = left.min(block_count / BLOCKS_PER_MOVE).min(moves.len() as u64) + 1;
    let mut count = high - 1;
    for _ in 0..TRIES {
        if low + 1 >= high {
            break;
        }
        let groups = pairs::groups(files, &moves, (count, far_max), &rules);
        let stretches = files.place(groups, &rules, &mut fills);
        if cost(&stretches).is_within(limit) {
            (low, best) = (count, stretches);
        } else {
            high = count;
        }
        count = low.midpoint(high);
    }
    Some(best)
}

fn cost(files: &Files<'_>, stretches: &[Stretch], others: WalkCost) -> WalkCost {
    let mut block_of = vec![0; files.items.len()];
    let mut lens = Vec::new();
    for block in stretches.iter().flat_map(|stretch| &stretch.blocks) {
        block.iter().for_each(|&file| block_of[file as usize] = lens.len() as u32);
        lens.push(block.iter().map(|&file| u64::from(files.items[file as usize].len)).sum::<u64>());
    }
    let mut kept = KernelCache::default();
    let mut cost = others;
    for block in files.visits.iter().map(|&file| block_of[file as usize]) {
        if kept.read(block) {
            cost.requests += 1;
            cost.bytes += lens[block as usize];
        }
    }
    cost
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: WalkCost = WalkCost { requests: 0, bytes: 0 };

    fn item(features: std::ops::Range<u32>, len: u32) -> Item {
        Item { features: features.collect(), len, ..Item::default() }
    }

    /// Files that differ, and a pair of equal features every hundred files.
    fn far_pairs() -> Vec<Item> {
        let mut items: Vec<Item> = (0..400).map(|i| item(i * 100..i * 100 + 60, 300)).collect();
        for i in 0..4 {
            items[i] = item(i as u32 * 100..i as u32 * 100 + 60, 250);
            items[i * 100 + 50] = item(i as u32 * 100..i as u32 * 100 + 60, 250);
        }
        items
    }

    fn walked(items: &[Item], others: WalkCost) -> (WalkCost, WalkCost) {
        let rules = Rules::new(1000, 1000);
        let files = Files::new(items, u64::MAX, &rules);
        let in_turn = Rules { stretch_max: 1, ..rules };
        let plain = files.place(files.alone(), &in_turn, &mut Fills::default());
        let apart = Files::new(items, 3000, &rules);
        let (chosen, again) = stretches(items, others, &rules);
        let files_of_it = if again.is_empty() { &files } else { &apart };
        (cost(&files, &plain, others), cost(files_of_it, &chosen, others))
    }

    #[test]
    fn a_walk_costs_hardly_more_than_in_tree_order() {
        // Every third file equals an earlier one, which lies somewhere else.
        let mut items: Vec<Item> =
            (0..600_u32).map(|i| item(i % 7 * 100..i % 7 * 100 + 60, 130 + i % 90)).collect();
        for i in (0..600).step_by(3) {
            let first = i * 7919 % 600 / 3 * 3;
            (items[i].len, items[i].hash) = (items[first].len, Some(first as u64));
        }
        let (plain, chosen) = walked(&items, NOTHING);
        assert!(chosen.is_within(plain.limit()), "{chosen:?}, in tree order {plain:?}");
    }

    #[test]
    fn short_copies_far_from_their_original_are_stored_again() {
        let mut items: Vec<Item> = (0..40).map(|i| item(i * 100..i * 100 + 60, 300)).collect();
        for (file, len, hash) in [(0, 7, 1), (2, 7, 1), (30, 7, 1), (1, 300, 2), (31, 300, 2)] {
            items[file] = Item { len, hash: Some(hash), ..item(0..0, 0) };
        }
        let again = |items: &[Item]| stretches(items, NOTHING, &Rules::new(1000, 1000)).1;
        assert_eq!(again(&items), [30], "not one beside it, nor a long one");
        items[30].hash = None;
        assert!(again(&items).is_empty());
    }

    #[test]
    fn files_move_far_as_long_as_the_budget_lasts() {
        let items = far_pairs();
        let shares_a_block = |stretches: &[Stretch], a: u32, b: u32| {
            let mut blocks = stretches.iter().flat_map(|stretch| &stretch.blocks);
            blocks.any(|block| block.contains(&a) && block.contains(&b))
        };
        let pairs = |others| {
            let (stretches, _) = stretches(&items, others, &Rules::new(1000, 1000));
            (1..4).filter(|&i| shares_a_block(&stretches, i, i * 100 + 50)).count()
        };
        assert_eq!(pairs(WalkCost { requests: 1000, bytes: 1_000_000 }), 3);
        // Without other blocks, a few requests of 134 are left.
        let (plain, chosen) = walked(&items, NOTHING);
        assert!(chosen.is_within(plain.limit()), "{chosen:?}, in tree order {plain:?}");
    }
}
