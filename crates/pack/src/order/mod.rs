//! Order of files, where it affects the size of the image.
//!
//! A compressor finds repetitions only within a block, so small files that share blocks belong
//! beside similar ones. Reading along the tree then needs more distant blocks. If readers keep few
//! blocks decoded, files move as far as such a walk allows ([`walk`]), or, on request, within
//! ranges of the tree that have shared blocks of their own. In other formats small files come
//! first, so that the last of their blocks is compressed while other work is left.

mod budget;
mod chain;
mod item;
mod kernel_cache;
mod pairs;
mod rules;
mod sketch;
mod walk;

use crate::PackOptions;
use crate::context::{Boundaries, Context, Kind};
use crate::parallel::read_in_parallel;
use budget::WalkCost;
use chain::Numbers;
use item::{Item, number_features};
use kernel_cache::KERNEL_KEEPS;
pub(crate) use kernel_cache::KernelCache;
use packfs_codec::CodecSettings;
use packfs_core::{NodeId, Order, Progress, Result, Stage, Tree};
use packfs_format::{FileJob, Plan};
use rules::Rules;
use sketch::sketch;
use std::cmp::Reverse;

/// Most files compared with each other, which bounds memory.
const GROUP_FILES_MAX: usize = 1 << 16;
const LOOK_LEN: u64 = 1 << 20;

pub(crate) struct Ordered<K: Kind> {
    pub files: Vec<FileJob<K>>,
    pub boundaries: Boundaries,
    pub far_apart: bool,
}

struct Sorted<K: Kind> {
    files: Vec<FileJob<K>>,
    starts: Vec<u32>,
    stored_again: Vec<NodeId>,
}

impl<K: Kind> From<Vec<FileJob<K>>> for Sorted<K> {
    fn from(files: Vec<FileJob<K>>) -> Self {
        Sorted { files, starts: Vec::new(), stored_again: Vec::new() }
    }
}

/// `stays` returns true for files that keep their place in the base.
pub(crate) fn sort<K: Kind>(
    context: &Context<'_, K>,
    stays: impl Fn(NodeId) -> bool,
    options: &PackOptions,
    progress: &dyn Progress,
) -> Result<Ordered<K>> {
    let mut ranks = vec![None; context.tree.node_count() as usize];
    for (rank, node) in context.plan.first_used.iter().enumerate().rev() {
        ranks[node.index()] = Some(rank);
    }
    let rank = |job: &FileJob<K>| ranks[job.node.index()];
    let (mut files, others): (Vec<_>, Vec<_>) =
        context.plan.files.iter().partition(|&job| rank(job).is_some());
    files.sort_by_key(rank);
    let first = files.len() as u32;
    let far_apart = options.priorities.is_none() && moves_far(context, &others, options.order);
    let mut sorted = match &options.priorities {
        Some(priorities) => Sorted::from(by_priority(&others, priorities)),
        None => by_likeness(context, &others, stays, options, progress)?,
    };
    files.extend(sorted.files);
    sorted.starts.iter_mut().for_each(|start| *start += first);
    sorted.stored_again.sort_unstable_by_key(|node| node.index());
    // Files of later data files stay after the others, even if used first.
    files.sort_by_key(|job| K::data_file(job.storage));
    let first_used = files.iter().take_while(|job| rank(job).is_some()).count() as u32;
    let boundaries =
        Boundaries { first_used, stretch_starts: sorted.starts, stored_again: sorted.stored_again };
    Ok(Ordered { files, boundaries, far_apart })
}

/// Returns true if a walk in tree order needs blocks that the kernel has evicted, for formats whose
/// shared blocks are not in the page cache.
fn moves_far<K: Kind>(context: &Context<'_, K>, files: &[FileJob<K>], order: Order) -> bool {
    let Some(block_len) = K::shared_block_len(&context.plan.data) else { return false };
    let kept_len = KERNEL_KEEPS as u64 * block_len;
    let within = match worthwhile(order, context.plan) {
        Order::Path => return false,
        Order::Kind => u64::MAX,
        Order::Similarity(within) => within.unwrap_or(context.plan.reorder_len),
    };
    let small = files.iter().filter(|job| context.shares_whole(job)).map(|job| context.len(job.node));
    within > kept_len && small.sum::<u64>() > kept_len
}

fn by_likeness<K: Kind>(
    context: &Context<'_, K>,
    files: &[FileJob<K>],
    stays: impl Fn(NodeId) -> bool,
    options: &PackOptions,
    progress: &dyn Progress,
) -> Result<Sorted<K>> {
    let (small, mut others): (Vec<_>, Vec<_>) =
        files.iter().partition(|job| context.shares_whole(job) && !stays(job.node));
    let (mut sorted, starts) = match worthwhile(options.order, context.plan) {
        Order::Path => return Ok(files.to_vec().into()),
        Order::Kind => (by_kind(context.tree, small), Vec::new()),
        Order::Similarity(None) if K::shared_block_len(&context.plan.data).is_some() => {
            return for_walks(context, files, stays, options, progress);
        }
        Order::Similarity(within) => {
            let within = within.unwrap_or(context.plan.reorder_len);
            let (mut sorted, starts) = by_similarity(context, &small, within, options, progress)?;
            if K::shared_block_len(&context.plan.data).is_none() {
                // Long files have too few features in common with short ones to lie among them.
                let is_long = |job: &FileJob<K>| context.shared_len(job) > 0 && !stays(job.node);
                let (long, rest): (Vec<_>, Vec<_>) = others.into_iter().partition(is_long);
                sorted.extend(by_similarity(context, &long, within, options, progress)?.0);
                others = rest;
            }
            (sorted, starts)
        }
    };
    sorted.extend(others);
    Ok(Sorted { files: sorted, starts, stored_again: Vec::new() })
}

/// Equal priorities stay in plan order.
fn by_priority<K: Kind>(files: &[FileJob<K>], priorities: &[i16]) -> Vec<FileJob<K>> {
    let mut files = files.to_vec();
    files.sort_by_key(|job| Reverse(priorities.get(job.node.index()).copied().unwrap_or(0)));
    files
}

fn by_kind<K: Kind>(tree: &Tree, mut files: Vec<FileJob<K>>) -> Vec<FileJob<K>> {
    files.sort_by_cached_key(|job| kind_key(tree, job.node));
    files
}

fn kind_key(tree: &Tree, id: NodeId) -> (Vec<u8>, Vec<u8>) {
    let name = tree.first_name(id);
    let dot = name.iter().rposition(|&byte| byte == b'.').filter(|&dot| dot > 0);
    let extension = dot.map_or(&[][..], |dot| &name[dot..]);
    (extension.to_vec(), name.to_vec())
}

/// Ranges have at most `within` bytes. Also returns the indexes at which a range with separate
/// blocks starts.
fn by_similarity<K: Kind>(
    context: &Context<'_, K>,
    files: &[FileJob<K>],
    within: u64,
    options: &PackOptions,
    progress: &dyn Progress,
) -> Result<(Vec<FileJob<K>>, Vec<u32>)> {
    let bytes_total = files.iter().map(|job| context.len(job.node)).sum();
    progress.begin(Stage::Order, files.len() as u64, bytes_total);
    let mut sorted = Vec::with_capacity(files.len());
    let mut starts = Vec::new();
    let blocks = whole_blocks(context.plan, within);
    let mut numbers = Numbers::default();
    for batch in files.chunks(GROUP_FILES_MAX) {
        let items = read_in_parallel(options, progress, batch, |job| {
            let item = item(context, job);
            progress.advance(1, context.len(job.node), 0);
            item
        })?;
        let mut items: Vec<Item> = items.into_iter().map(Option::unwrap_or_default).collect();
        number_features(&mut items);
        let mut done = 0;
        while done < items.len() {
            let order = stretch(&items[done..], within, blocks, window_len(context.plan), &mut numbers);
            starts.extend(blocks.map(|_| sorted.len() as u32));
            sorted.extend(order.iter().map(|&index| batch[done + index as usize]));
            done += order.len();
        }
    }
    starts.extend(blocks.map(|_| sorted.len() as u32));
    Ok((sorted, starts))
}

/// Files with separate blocks come between the shared blocks of files around them.
fn for_walks<K: Kind>(
    context: &Context<'_, K>,
    files: &[FileJob<K>],
    stays: impl Fn(NodeId) -> bool,
    options: &PackOptions,
    progress: &dyn Progress,
) -> Result<Sorted<K>> {
    let plan = context.plan;
    let shares = |job: &FileJob<K>| context.shared_len(job) > 0 && !stays(job.node);
    let small: Vec<usize> = (0..files.len()).filter(|&index| shares(&files[index])).collect();
    let bytes_total = small.iter().map(|&index| context.shared_len(&files[index])).sum();
    progress.begin(Stage::Order, small.len() as u64, bytes_total);
    let rules = Rules::new(K::shared_block_len(&plan.data).unwrap_or(1), window_len(plan));
    let own = own_blocks(context, files, small.len().div_ceil(GROUP_FILES_MAX));
    let mut sorted = Vec::with_capacity(files.len());
    let (mut starts, mut stored_again) = (Vec::new(), Vec::new());
    let mut others = (0..files.len()).filter(|&index| !shares(&files[index])).peekable();
    for (number, batch) in small.chunks(GROUP_FILES_MAX).enumerate() {
        let items = read_in_parallel(options, progress, batch, |&index| {
            let item = item(context, &files[index]);
            progress.advance(1, context.shared_len(&files[index]), 0);
            item
        })?;
        let mut items: Vec<Item> = items.into_iter().map(Option::unwrap_or_default).collect();
        number_features(&mut items);
        let batch_end = (number + 1) * GROUP_FILES_MAX;
        let (stretches, again) = budget::stretches(&items, own, &rules);
        stored_again.extend(again.into_iter().map(|index| files[batch[index as usize]].node));
        let mut begin = 0;
        for stretch in stretches {
            for (first, block) in in_walk_order(stretch.blocks, begin) {
                // A walk reads these before it comes to the block.
                let before = first.map_or(0, |first| batch[first as usize]);
                while let Some(index) = others.next_if(|&index| index < before) {
                    sorted.push(files[index]);
                }
                starts.push(sorted.len() as u32);
                sorted.extend(block.iter().map(|&index| files[batch[index as usize]]));
                starts.push(sorted.len() as u32);
            }
            begin = stretch.end;
            let next = batch.get(stretch.end as usize).or(small.get(batch_end));
            let end = next.copied().unwrap_or(files.len());
            while let Some(index) = others.next_if(|&index| index < end) {
                sorted.push(files[index]);
            }
        }
    }
    sorted.extend(others.map(|index| files[index]));
    starts.push(sorted.len() as u32);
    Ok(Sorted { files: sorted, starts, stored_again })
}

/// Sorts blocks as a walk comes to the blocks of a stretch, each with its first file in the
/// stretch. The stretch's files begin at `begin` in tree order.
fn in_walk_order(blocks: Vec<Vec<u32>>, begin: u32) -> Vec<(Option<u32>, Vec<u32>)> {
    let first = |block: &Vec<u32>| block.iter().copied().filter(|&file| file >= begin).min();
    let mut blocks: Vec<_> = blocks.into_iter().map(|block| (first(&block), block)).collect();
    // A block of files that moved here from elsewhere only comes last.
    blocks.sort_by_key(|(first, _)| first.unwrap_or(u32::MAX));
    blocks
}

/// Cost for one of `parts` of the tree.
fn own_blocks<K: Kind>(context: &Context<'_, K>, files: &[FileJob<K>], parts: usize) -> WalkCost {
    let block_len = K::shared_block_len(&context.plan.data).unwrap_or(1).max(1);
    let (mut requests, mut bytes) = (0, 0);
    for len in files.iter().map(|job| context.len(job.node) - context.shared_len(job)) {
        requests += len.div_ceil(block_len);
        bytes += len;
    }
    let parts = parts.max(1) as u64;
    WalkCost { requests: requests / parts, bytes: bytes / parts }
}

/// `None` if a range is shorter than a block, or unlimited. A block common to two ranges would be
/// one more than the kernel keeps during a walk.
fn whole_blocks<K: Kind>(plan: &Plan<K>, within: u64) -> Option<(u64, u64)> {
    let block_len = K::shared_block_len(&plan.data)?;
    let count = within / block_len;
    (count > 0 && within < u64::MAX).then_some((count, block_len))
}

fn stretch(
    items: &[Item],
    within: u64,
    blocks: Option<(u64, u64)>,
    window_len: u64,
    numbers: &mut Numbers,
) -> Vec<u32> {
    let mut count = group_count(items, within);
    loop {
        let order = chain::chain(&items[..count], window_len, numbers);
        let overfull = blocks.map_or(0, |(blocks, block_len)| beyond(items, &order, blocks, block_len));
        if overfull == 0 || count == 1 {
            return order;
        }
        // Files that do not fit go to the next range, taken from the end in tree order.
        let mut freed = 0;
        while freed < overfull && count > 1 {
            count -= 1;
            freed += u64::from(items[count].len);
        }
    }
}

fn beyond(items: &[Item], order: &[u32], blocks: u64, block_len: u64) -> u64 {
    let (mut number, mut filled, mut left) = (1, 0, 0);
    for &index in order {
        let len = u64::from(items[index as usize].len);
        if filled + len > block_len {
            (number, filled) = (number + 1, 0);
        }
        filled += len;
        left += if number > blocks { len } else { 0 };
    }
    left
}

fn group_count(items: &[Item], within: u64) -> usize {
    let mut len = 0_u64;
    let fits = |item: &&Item| {
        len = len.saturating_add(item.len.into());
        len <= within
    };
    items.iter().take_while(fits).count().max(1)
}

fn item<K: Kind>(context: &Context<'_, K>, job: &FileJob<K>) -> Result<Item> {
    let len = context.shared_len(job);
    let mut bytes = vec![0; len.min(LOOK_LEN) as usize];
    context.open(job.node)?.read_exact_at(context.len(job.node) - len, &mut bytes)?;
    let is_whole = context.plan.dedupe && len <= LOOK_LEN;
    let hash = is_whole.then(|| xxhash_rust::xxh3::xxh3_64(&bytes));
    let len = len.try_into().unwrap_or(u32::MAX);
    Ok(Item { features: sketch(&bytes), unshared: 0, len, hash })
}

/// Tree order if nothing is gained: the position of uncompressed data does not affect its size, and
/// reads in tree order would read shared blocks repeatedly.
fn worthwhile<K: Kind>(order: Order, plan: &Plan<K>) -> Order {
    match order {
        Order::Similarity(_) if K::shared_window(&plan.data).1.is_none() => Order::Path,
        order => order,
    }
}

fn window_len<K: Kind>(plan: &Plan<K>) -> u64 {
    let (block_len, codec) = K::shared_window(&plan.data);
    let reach = codec.and_then(CodecSettings::reach).unwrap_or(u32::MAX);
    u64::from(block_len.min(reach))
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::{ContentId, ImagePath, Meta, NodeKind, TreeBuilder, Xattrs};
    use packfs_format::{BlockStorage, Blocks};

    #[test]
    fn blocks_lie_in_the_order_of_a_walk() {
        let blocks = vec![vec![7, 12], vec![2, 8], vec![5, 10], vec![6, 9]];
        let ordered = in_walk_order(blocks, 6);
        let firsts: Vec<Option<u32>> = ordered.iter().map(|(first, _)| *first).collect();
        assert_eq!(firsts, [Some(6), Some(7), Some(8), Some(10)]);
        assert_eq!(in_walk_order(vec![vec![1], vec![9]], 6), [(Some(9), vec![9]), (None, vec![1])]);
    }

    #[test]
    fn a_kind_is_an_extension_and_then_a_name() {
        let mut builder = TreeBuilder::new(Meta::default());
        for path in ["a/Makefile", "a/main.c", "a/mod.rs", "b/Makefile", "b/.hidden", "b/lib.c", "b/mod.rs"] {
            let kind = NodeKind::File { len: 1, content: ContentId(0) };
            let path = ImagePath::parse(path.as_bytes()).unwrap();
            builder.add(&path, kind, Meta::default(), Xattrs::new()).unwrap();
        }
        let tree = builder.finish().unwrap();
        let files = tree.nodes().filter(|(_, node)| matches!(node.kind, NodeKind::File { .. }));
        let files = files.map(|(node, _)| FileJob::<Blocks> { node, storage: BlockStorage::SharedTail });
        let sorted = by_kind(&tree, files.collect());
        let names: Vec<&[u8]> = sorted.iter().map(|job| tree.first_name(job.node)).collect();
        let expected: [&[u8]; 7] =
            [b".hidden", b"Makefile", b"Makefile", b"lib.c", b"main.c", b"mod.rs", b"mod.rs"];
        assert_eq!(names, expected);
    }
}
