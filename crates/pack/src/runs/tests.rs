use super::*;
use crate::context::{Boundaries, Context};
use packfs_core::{ContentId, Held, NodeKind, Silent, Tree};
use packfs_format::{BlockPlan, FileJob};
use packfs_testkit::{Random, tree_of};

const BLOCK: u64 = 4096;

/// Files with blocks of their own, in plan order.
struct Fixture {
    tree: Tree,
    contents: Held,
    plan: Plan<Blocks>,
    boundaries: Boundaries,
    nodes: Vec<NodeId>,
}

fn fixture(files: &[Vec<u8>], sharing: BlockSharing) -> Fixture {
    let named = files.iter().enumerate().map(|(index, bytes)| (format!("{index:04}"), bytes.clone()));
    let (tree, contents) = tree_of(named);
    let mut nodes = vec![NodeId::ROOT; files.len()];
    for (id, node) in tree.nodes() {
        if let NodeKind::File { content: ContentId(index), .. } = node.kind {
            nodes[index as usize] = id;
        }
    }
    let job = |&node| FileJob { node, storage: BlockStorage::Blocks };
    let plan = Plan {
        data_start: 0,
        files: nodes.iter().map(job).collect(),
        first_used: Vec::new(),
        reorder_len: 0,
        dedupe: true,
        holes: true,
        losses: Vec::new(),
        data: BlockPlan { sharing, ..BlockPlan::new(BLOCK as u32, None) },
    };
    Fixture { tree, contents, plan, boundaries: Boundaries::default(), nodes }
}

impl Fixture {
    fn find(&self, jobs: usize) -> Runs {
        let context = Context {
            tree: &self.tree,
            contents: &self.contents,
            plan: &self.plan,
            boundaries: &self.boundaries,
        };
        let options = PackOptions { jobs, ..PackOptions::default() };
        find(&context, &Duplicates::default(), &options, &Silent, Path::new("image")).unwrap()
    }

    /// Returns a file's run: host, first block, number of blocks, and true if the tail is
    /// elsewhere.
    fn run(&self, runs: &Runs, file: usize) -> Option<(usize, u64, u64, bool)> {
        let run = runs.of.get(&self.nodes[file])?;
        let host = self.nodes.iter().position(|node| *node == run.host)?;
        Some((host, run.first_block, run.blocks, run.leaves_tail))
    }
}

/// Ten different blocks and a short one.
fn host() -> Vec<u8> {
    Random::new(1).noise((10 * BLOCK + 1000) as usize)
}

fn part(bytes: &[u8], from: u64, len: u64) -> Vec<u8> {
    bytes[from as usize..(from + len) as usize].to_vec()
}

#[test]
fn beginnings_ends_and_middles_are_found_in_later_files_too() {
    let host = host();
    let files = [
        part(&host, 0, 3 * BLOCK),
        part(&host, 7 * BLOCK, 3 * BLOCK + 1000),
        host.clone(),
        part(&host, 2 * BLOCK, 5 * BLOCK),
        part(&host, 9 * BLOCK, BLOCK),
    ];
    let fixture = fixture(&files, BlockSharing::Runs);
    let runs = fixture.find(2);
    let found: Vec<_> = (0..files.len()).map(|file| fixture.run(&runs, file)).collect();
    let wanted = [
        Some((2, 0, 3, false)),
        Some((2, 7, 4, false)),
        None,
        Some((2, 2, 5, false)),
        Some((2, 9, 1, false)),
    ];
    assert_eq!(found, wanted);
    assert!(runs.moved_tails.is_empty());
}

#[test]
fn one_other_byte_anywhere_or_another_place_is_no_run() {
    let host = host();
    let mut files = vec![host.clone()];
    for at in [0, 511, 513, 2 * BLOCK + 77, 4 * BLOCK - 1] {
        let mut other = part(&host, 0, 4 * BLOCK);
        other[at as usize] ^= 1;
        files.push(other);
    }
    // Not at a block, beyond the end, and the short block inside a file.
    files.push(part(&host, 100, 4 * BLOCK));
    files.push([part(&host, 8 * BLOCK, 2 * BLOCK), vec![7; BLOCK as usize]].concat());
    files.push([part(&host, 10 * BLOCK, 1000), vec![7; 3096]].concat());
    let fixture = fixture(&files, BlockSharing::RunsAndTails);
    let runs = fixture.find(2);
    assert!(runs.of.is_empty(), "{:?}", runs.of);
}

#[test]
fn a_tail_that_is_no_block_there_goes_elsewhere_if_it_may() {
    let host = host();
    let files = [host.clone(), part(&host, 0, 3 * BLOCK + 5), part(&host, BLOCK, 9 * BLOCK + 999)];
    let allowed = fixture(&files, BlockSharing::RunsAndTails);
    let runs = allowed.find(2);
    assert_eq!(allowed.run(&runs, 1), Some((0, 0, 3, true)));
    assert_eq!(allowed.run(&runs, 2), Some((0, 1, 9, true)));
    let stored_from = |file: usize| runs.stored_from(allowed.nodes[file], files[file].len() as u64);
    assert_eq!([stored_from(0), stored_from(1), stored_from(2)], [0, 3 * BLOCK, 9 * BLOCK]);
    let mut plan = allowed.plan.clone();
    runs.move_tails(&mut plan);
    let storages: Vec<BlockStorage> = plan.files.iter().map(|job| job.storage).collect();
    assert_eq!(storages, [BlockStorage::Blocks, BlockStorage::SharedTail, BlockStorage::SharedTail]);
    for sharing in [BlockSharing::Files, BlockSharing::Runs] {
        assert!(fixture(&files, sharing).find(2).of.is_empty());
    }
}

#[test]
fn a_run_of_a_run_is_one_of_what_is_stored() {
    let host = host();
    // The second ends within the host, the third where the second ends, the fourth begins later.
    let files = [
        host.clone(),
        part(&host, BLOCK, 6 * BLOCK + 500),
        part(&host, 3 * BLOCK, 4 * BLOCK + 500),
        part(&host, 4 * BLOCK, 3 * BLOCK + 500),
    ];
    let fixture = fixture(&files, BlockSharing::RunsAndTails);
    let runs = fixture.find(2);
    assert_eq!(fixture.run(&runs, 1), Some((0, 1, 6, true)));
    assert_eq!(fixture.run(&runs, 2), Some((0, 3, 4, true)));
    assert_eq!(fixture.run(&runs, 3), Some((0, 4, 3, true)));
    let end = Run { host: fixture.nodes[1], first_block: 2, blocks: 5, leaves_tail: false };
    let file = Long { node: fixture.nodes[2], job: 2, len: files[2].len() as u64, blocks: 5 };
    let resolved = Run { host: fixture.nodes[0], first_block: 3, blocks: 4, leaves_tail: true };
    assert_eq!(runs.resolve(end, &file, BLOCK), resolved);
}

#[test]
fn zeros_count_as_bytes() {
    let noise = |seed| Random::new(seed).noise(BLOCK as usize);
    let zeros = vec![0; BLOCK as usize];
    let host = [noise(1), zeros.clone(), noise(2), zeros.clone(), noise(3), zeros.clone()].concat();
    let files = [
        host.clone(),
        part(&host, BLOCK, 3 * BLOCK),
        part(&host, 3 * BLOCK, 3 * BLOCK),
        [zeros.clone(), noise(2), noise(3)].concat(),
        vec![0; 3 * BLOCK as usize],
    ];
    let fixture = fixture(&files, BlockSharing::Runs);
    let runs = fixture.find(2);
    assert_eq!(fixture.run(&runs, 1), Some((0, 1, 3, false)));
    assert_eq!(fixture.run(&runs, 2), Some((0, 3, 3, false)));
    assert_eq!((fixture.run(&runs, 3), fixture.run(&runs, 4)), (None, None));
}

#[test]
fn first_used_files_share_only_with_each_other() {
    let host = host();
    let mut fixture =
        fixture(&[part(&host, 0, 2 * BLOCK), host.clone(), part(&host, BLOCK, BLOCK)], BlockSharing::Runs);
    fixture.boundaries.first_used = 1;
    let runs = fixture.find(1);
    assert_eq!((fixture.run(&runs, 0), fixture.run(&runs, 2)), (None, Some((1, 1, 1, false))));
    fixture.boundaries.first_used = 2;
    assert_eq!(fixture.run(&fixture.find(1), 0), Some((1, 0, 2, false)));
}

#[test]
fn runs_do_not_depend_on_the_number_of_threads() {
    let mut random = Random::new(9);
    let host = host();
    let files: Vec<Vec<u8>> = (0..200)
        .map(|_| {
            let from = random.below(10);
            part(&host, from * BLOCK, random.below((10 - from) * BLOCK + 1000) + 1)
        })
        .collect();
    let fixture = fixture(&files, BlockSharing::RunsAndTails);
    let rows = |jobs| {
        let runs = fixture.find(jobs);
        (0..files.len()).map(|file| fixture.run(&runs, file)).collect::<Vec<_>>()
    };
    let one = rows(1);
    assert!(one.iter().flatten().count() > 100);
    for (file, run) in one.iter().enumerate() {
        let Some((host, first, blocks, _)) = *run else { continue };
        assert!(one[host].is_none(), "{file} in {host}, which is not stored");
        let len = (files[file].len() as u64).min(blocks * BLOCK);
        assert!(part(&files[host], first * BLOCK, len) == part(&files[file], 0, len), "{file} in {host}");
    }
    assert_eq!(one, rows(2));
    assert_eq!(one, rows(16));
}

#[test]
fn finds_the_block_that_begins_with_a_tail() {
    let host = host();
    let mut fixture =
        fixture(&[host.clone(), part(&host, 0, 4 * BLOCK), vec![1; 600]], BlockSharing::RunsAndTails);
    let runs = fixture.find(2);
    let context = Context {
        tree: &fixture.tree,
        contents: &fixture.contents,
        plan: &fixture.plan,
        boundaries: &fixture.boundaries,
    };
    let host_block = |tail: Vec<u8>| {
        runs.find_host_block(&context, 2, &tail)
            .unwrap()
            .map(|host_block| (host_block.node, host_block.block))
    };
    let in_host = |block| Some((fixture.nodes[0], block));
    assert_eq!(host_block(part(&host, 0, SAMPLE_LEN)), in_host(0));
    assert_eq!(host_block(part(&host, 3 * BLOCK, BLOCK)), in_host(3));
    assert_eq!(host_block(part(&host, 10 * BLOCK, 1000)), in_host(10));
    // Too short, not at a block, beyond its end, beyond the file's end, different bytes at the end,
    // in the middle.
    assert_eq!(host_block(part(&host, 0, SAMPLE_LEN - 1)), None);
    assert_eq!(host_block(part(&host, 8, SAMPLE_LEN)), None);
    assert_eq!(host_block(part(&host, 0, BLOCK + 1)), None);
    assert_eq!(host_block([part(&host, 10 * BLOCK, 1000), vec![7]].concat()), None);
    for at in [999, 600] {
        let mut other = part(&host, 2 * BLOCK, 1000);
        other[at] ^= 1;
        assert_eq!(host_block(other), None, "{at}");
    }
    fixture.boundaries.first_used = 3;
    let context = Context {
        tree: &fixture.tree,
        contents: &fixture.contents,
        plan: &fixture.plan,
        boundaries: &fixture.boundaries,
    };
    assert!(runs.find_host_block(&context, 2, &part(&host, 0, 1000)).unwrap().is_some());
    fixture.plan.files.swap(0, 2);
    fixture.boundaries.first_used = 1;
    let runs = fixture.find(2);
    let context = Context {
        tree: &fixture.tree,
        contents: &fixture.contents,
        plan: &fixture.plan,
        boundaries: &fixture.boundaries,
    };
    assert!(runs.find_host_block(&context, 0, &part(&host, 0, 1000)).unwrap().is_none());
    assert!(runs.find_host_block(&context, 1, &part(&host, 0, 1000)).unwrap().is_some());
}

#[test]
fn spilled_samples_are_found_like_those_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let host = host();
    let files: Vec<Vec<u8>> =
        (0..60).map(|index| part(&host, index % 9 * BLOCK, (1 + index % 2) * BLOCK)).collect();
    let fixture = fixture(&files, BlockSharing::Runs);
    let context = Context {
        tree: &fixture.tree,
        contents: &fixture.contents,
        plan: &fixture.plan,
        boundaries: &fixture.boundaries,
    };
    let options = PackOptions { jobs: 2, ..PackOptions::default() };
    let long = long_files(&context, &Duplicates::default());
    let output = folder.path().join("image");
    let taken = |room| Samples::take(&context, &long, &options, &Silent, (&output, room)).unwrap();
    let (all, few) = (taken(u64::MAX), taken(0));
    assert!(all.spilled.is_empty() && few.spilled.len() > 10);
    let mut compared = 0;
    for index in 0..long.len() as u32 {
        assert_eq!(all.first_of(index), few.first_of(index));
        let Some(first) = all.first_of(index) else { continue };
        for most in [1, 3, LOOKED_MAX] {
            assert_eq!(all.with_hash(first.hash, most).unwrap(), few.with_hash(first.hash, most).unwrap());
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared}");
}
