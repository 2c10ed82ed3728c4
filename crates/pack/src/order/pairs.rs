//! Pairs of similar files that lie far apart in the tree, where one moves beside the other.
//!
//! A walk along the tree then decodes the block of both once more, so only files move that save
//! much, with whatever fits into the block with them.

use super::chain::{Index, Numbers};
use super::item::{Item, Seen};
use super::rules::{Rules, compressed_len};
use super::walk::Files;
use std::cmp::Reverse;

/// Most files beside which a file may move.
const HOSTS_MAX: usize = 16;

/// Bytes of small files within which a move costs a disk no seek: stored, and with the larger files
/// between them, they are less than the 2 MiB that disks read in passing.
const NEAR_LEN: u64 = 1 << 20;

/// Files are numbered by their position among the originals.
pub(super) struct Move {
    gain: u64,
    file: u32,
    host: u32,
    /// True if the two lie farther apart than [`NEAR_LEN`].
    is_far: bool,
}

/// Applies the best `count` moves, with at most `far_count` far ones. Groups are in the order of
/// their first files, and so are files.
pub(super) fn groups(
    files: &Files<'_>,
    moves: &[Move],
    (mut count, mut far_count): (u64, u64),
    rules: &Rules,
) -> Vec<Vec<u32>> {
    let originals = &files.originals;
    let mut group_of: Vec<u32> = (0..originals.len() as u32).collect();
    let mut groups = files.alone();
    let len = |&file: &u32| u64::from(files.items[file as usize].len);
    let mut lens: Vec<u64> = originals.iter().map(len).collect();
    for &Move { file, host, is_far, .. } in moves {
        // A file that is a host already stays where it is.
        let (from, to) = (file as usize, group_of[host as usize] as usize);
        let moved = group_of[from] != file || groups[from].len() != 1;
        let is_too_far = is_far && far_count == 0;
        if moved || from == to || is_too_far || lens[from] + lens[to] > rules.window_len {
            continue;
        }
        if count == 0 {
            break;
        }
        count -= 1;
        far_count -= u64::from(is_far);
        group_of[from] = to as u32;
        lens[to] += lens[from];
        let alone = std::mem::take(&mut groups[from]);
        groups[to].extend(alone);
    }
    groups.retain(|group| !group.is_empty());
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups.sort_unstable_by_key(|group| group[0]);
    groups
}

/// Best first. Files with copies do not move, and nothing moves beside them.
pub(super) fn moves(files: &Files<'_>, rules: &Rules) -> Vec<Move> {
    let (items, files, copies) = (files.items, &files.originals[..], &files.copies);
    let item = |file: u32| &items[files[file as usize] as usize];
    // Neither file of a pair can save more than it has.
    let may_move = |file: &u32| {
        let is_fixed = copies.contains_key(&files[*file as usize]);
        compressed_len(item(*file).len.into()) >= rules.move_gain && !is_fixed
    };
    let long: Vec<u32> = (0..files.len() as u32).filter(may_move).collect();
    let features: Vec<&[u32]> = long.iter().map(|&file| &*item(file).features).collect();
    let index = Index::new(&features, &mut Numbers::default());
    let mut near = Seen::default();
    let mut offsets = vec![0_u64];
    for &file in files {
        offsets.push(offsets[offsets.len() - 1] + u64::from(items[file as usize].len));
    }
    let mut moves = Vec::new();
    let mut scores = vec![0_u64; long.len()];
    for (number, &file) in (0..).zip(&long) {
        let gain = |count: u64| count * compressed_len(item(file).len.into()) / weight(item(file));
        let room = rules.window_len.saturating_sub(item(file).len.into());
        let mut hosts = like(&index, number, &mut scores);
        hosts.retain(|&(Reverse(count), host)| {
            let len = u64::from(item(long[host as usize]).len);
            gain(count) >= rules.move_gain && len <= room
        });
        if hosts.is_empty() {
            continue;
        }
        hosts.sort_unstable();
        hosts.truncate(HOSTS_MAX);
        let new = new_features(items, files, &offsets, file, rules.block_len, &mut near);
        for host in hosts.into_iter().map(|(_, host)| long[host as usize]) {
            let features = item(host).features.iter();
            let gain = gain(features.filter(|feature| new.binary_search(feature).is_ok()).count() as u64);
            if gain >= rules.move_gain {
                let distance = offsets[file as usize].abs_diff(offsets[host as usize]);
                moves.push(Move { gain, file, host, is_far: distance > NEAR_LEN });
            }
        }
    }
    moves.sort_unstable_by_key(|row| (Reverse(row.gain), row.file, row.host));
    moves
}

/// Each with its number of shared features. `scores` contains zeros before and after.
fn like(index: &Index, file: u32, scores: &mut [u64]) -> Vec<(Reverse<u64>, u32)> {
    let mut found = Vec::new();
    for &feature in index.features_of(file) {
        for &other in index.files_with(feature) {
            let score = &mut scores[other as usize];
            if *score == 0 {
                found.push(other);
            }
            *score += 1;
        }
    }
    let counted = |other: u32| (Reverse(std::mem::take(&mut scores[other as usize])), other);
    let rows = found.into_iter().map(counted);
    rows.filter(|&(_, other)| other != file).collect()
}

/// Divisor of a file's length; files with few features are less certain to be alike.
fn weight(item: &Item) -> u64 {
    item.feature_count() + 2
}

/// Features that no file nearby has, which may share its block anyway.
fn new_features(
    items: &[Item],
    files: &[u32],
    offsets: &[u64],
    file: u32,
    near_len: u64,
    seen: &mut Seen,
) -> Vec<u32> {
    let file = file as usize;
    let item = |file: usize| &items[files[file] as usize];
    let first = offsets.partition_point(|&offset| offset + near_len <= offsets[file]);
    let end = offsets.partition_point(|&offset| offset < offsets[file] + near_len).min(files.len());
    seen.clear();
    for feature in (first..end).filter(|&near| near != file).flat_map(|near| &item(near).features) {
        seen.insert(*feature);
    }
    item(file).features.iter().copied().filter(|&feature| !seen.contains(feature)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(features: std::ops::Range<u32>, len: u32) -> Item {
        Item { features: features.collect(), len, ..Item::default() }
    }

    fn groups_of(items: &[Item]) -> Vec<Vec<u32>> {
        let rules = Rules::new(1000, 1000);
        let files = Files::new(items, u64::MAX, &rules);
        groups(&files, &moves(&files, &rules), (100, 100), &rules)
    }

    #[test]
    fn a_file_moves_beside_one_like_it_that_is_far_away_and_leaves_room() {
        let mut items: Vec<Item> = (0..6).map(|i| item(i * 100..i * 100 + 60, 600)).collect();
        items[0] = item(1000..1060, 400);
        items[5] = item(1000..1060, 500);
        assert_eq!(groups_of(&items), [vec![0, 5], vec![1], vec![2], vec![3], vec![4]]);
        (items[4].hash, items[5].hash, items[4].len) = (Some(1), Some(1), 500);
        assert_eq!(groups_of(&items).len(), 5, "one with a copy stays");
        (items[4].hash, items[5].hash, items[5].len) = (None, None, 700);
        assert_eq!(groups_of(&items).len(), 6);
    }

    #[test]
    fn few_files_move_so_far_that_a_disk_seeks() {
        let len = 1 << 18;
        let mut items: Vec<Item> = (0..12).map(|i| item(i * 100..i * 100 + 60, len)).collect();
        for [a, b] in [[0, 9], [1, 10], [2, 4]] {
            (items[a], items[b]) = (item(5000 + a as u32 * 100..5060 + a as u32 * 100, len), item(0..0, len));
            items[b].features = items[a].features.clone();
        }
        let rules = Rules::new(2 * u64::from(len), 2 * u64::from(len));
        let files = Files::new(&items, u64::MAX, &rules);
        let moved = |far_max| groups(&files, &moves(&files, &rules), (100, far_max), &rules);
        let pairs = |far_max| moved(far_max).into_iter().filter(|group| group.len() > 1).collect::<Vec<_>>();
        assert_eq!(pairs(0), [[2, 4]]);
        assert_eq!(pairs(1).len(), 2);
        assert_eq!(pairs(9), [[0, 9], [1, 10], [2, 4]]);
    }

    #[test]
    fn a_file_beside_one_like_it_does_not_move() {
        let mut items: Vec<Item> = (0..6).map(|i| item(i * 100..i * 100 + 60, 400)).collect();
        for file in [0, 1, 4, 5] {
            items[file] = item(1000..1060, 400);
        }
        assert_eq!(groups_of(&items).len(), 6);
    }
}
