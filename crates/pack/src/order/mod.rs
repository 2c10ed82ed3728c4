//! Which files lie beside which, where that changes the size of the image.
//!
//! A compressor finds what is alike only within a block, so small files that share blocks belong beside what they are like.
//! They come first, so that the last of their blocks is not compressed when nothing else is left to do; files with
//! blocks of their own follow in the plan's order. A reader that goes along the tree then needs blocks from further
//! away, so files move only within stretches of the tree ([`Plan::reorder_len`]).

mod chain;
mod sketch;

use crate::PackOptions;
use crate::context::Context;
use crate::parallel::learn_in_parallel;
use chain::Item;
use packfs_core::codec::CodecSettings;
use packfs_core::{Cut, FileJob, NodeId, Plan, Progress, Recipe, Result, Stage, Tree};
use sketch::sketch;
use std::cmp::Reverse;

/// In which order small files that share blocks are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As the tree goes.
    Path,
    /// Those with the same extension, then those with the same name, beside each other.
    Kind,
    /// Those with most in common beside each other. They are read once more for it.
    Similarity {
        /// Files are moved within stretches of the tree with so many bytes of small files; `None`: as far as the format
        /// can do with when it is read along the tree.
        within: Option<u64>,
    },
}

impl Default for Order {
    fn default() -> Self {
        Order::Similarity { within: None }
    }
}

/// Most files that are compared with each other: bounds what is remembered of them.
const GROUP_FILES_MAX: usize = 1 << 16;
/// Most of a file that is looked at.
const LOOK_LEN: u64 = 1 << 20;

/// The files of a plan in another order.
pub(crate) struct Ordered {
    pub files: Vec<FileJob>,
    /// How many of the first are [`Plan::first_used`].
    pub first_used_count: u32,
}

/// Orders the files of a plan: those used first in front, then the others as the options say.
pub(crate) fn sort(context: &Context<'_>, options: &PackOptions, progress: &dyn Progress) -> Result<Ordered> {
    let mut ranks = vec![None; context.tree.node_count() as usize];
    for (rank, node) in context.plan.first_used.iter().enumerate().rev() {
        ranks[node.index()] = Some(rank);
    }
    let rank = |job: &FileJob| ranks[job.node.index()];
    let (mut files, others): (Vec<FileJob>, Vec<FileJob>) =
        context.plan.files.iter().partition(|&job| rank(job).is_some());
    files.sort_by_key(rank);
    files.extend(match &options.priorities {
        Some(priorities) => by_priority(&others, priorities),
        None => by_likeness(context, &others, options, progress)?,
    });
    // Those of later files for data stay behind, used first or not.
    files.sort_by_key(|job| job.data_file);
    let first_used_count = files.iter().take_while(|job| rank(job).is_some()).count() as u32;
    Ok(Ordered { files, first_used_count })
}

fn by_likeness(
    context: &Context<'_>,
    files: &[FileJob],
    options: &PackOptions,
    progress: &dyn Progress,
) -> Result<Vec<FileJob>> {
    let (small, others): (Vec<FileJob>, Vec<FileJob>) =
        files.iter().partition(|job| context.shares_whole(job) && !context.keeps_tail_of(job.node));
    let mut sorted = match worthwhile(options.order, context.plan) {
        Order::Path => return Ok(files.to_vec()),
        Order::Kind => by_kind(context.tree, small),
        Order::Similarity { within } => {
            let within = within.unwrap_or(context.plan.reorder_len);
            by_similarity(context, &small, within, options, progress)?
        }
    };
    sorted.extend(others);
    Ok(sorted)
}

/// Higher priorities first, otherwise the plan's own order.
fn by_priority(files: &[FileJob], priorities: &[i16]) -> Vec<FileJob> {
    let mut files = files.to_vec();
    files.sort_by_key(|job| Reverse(priorities.get(job.node.index()).copied().unwrap_or(0)));
    files
}

fn by_kind(tree: &Tree, mut files: Vec<FileJob>) -> Vec<FileJob> {
    files.sort_by_cached_key(|job| kind_key(tree, job.node));
    files
}

/// Files of one kind are those with the same extension, then those with the same name.
fn kind_key(tree: &Tree, id: NodeId) -> (Vec<u8>, Vec<u8>) {
    let name = tree.first_name(id);
    let dot = name.iter().rposition(|&byte| byte == b'.').filter(|&dot| dot > 0);
    let extension = dot.map_or(&[][..], |dot| &name[dot..]);
    (extension.to_vec(), name.to_vec())
}

fn by_similarity(
    context: &Context<'_>,
    files: &[FileJob],
    within: u64,
    options: &PackOptions,
    progress: &dyn Progress,
) -> Result<Vec<FileJob>> {
    let bytes_total = files.iter().map(|job| context.len(job.node)).sum();
    progress.begin(Stage::Order, files.len() as u64, bytes_total);
    let mut sorted = Vec::with_capacity(files.len());
    let mut rest = files;
    while !rest.is_empty() {
        let (group, later) = rest.split_at(group_count(context, rest, within));
        rest = later;
        let items = learn_in_parallel(options, progress, group, |job| {
            let item = item(context, job);
            progress.advance(1, context.len(job.node), 0);
            item
        })?;
        let items: Vec<Item> = items.into_iter().map(Option::unwrap_or_default).collect();
        let order = chain::chain(&items, window_len(context.plan));
        sorted.extend(order.into_iter().map(|index| group[index as usize]));
    }
    Ok(sorted)
}

/// How many of the first files are sorted together.
fn group_count(context: &Context<'_>, files: &[FileJob], within: u64) -> usize {
    let mut len = 0_u64;
    let count = files
        .iter()
        .take(GROUP_FILES_MAX)
        .take_while(|job| {
            len = len.saturating_add(context.len(job.node));
            len <= within
        })
        .count();
    count.max(1)
}

fn item(context: &Context<'_>, job: &FileJob) -> Result<Item> {
    let len = context.len(job.node);
    let mut bytes = vec![0; len.min(LOOK_LEN) as usize];
    context.open(job.node)?.read_exact_at(0, &mut bytes)?;
    Ok(Item { features: sketch(&bytes), len: len.try_into().unwrap_or(u32::MAX) })
}

/// A cluster of stored bytes holds about so many times as much input.
const PLAIN_FACTOR: u32 = 3;

/// The order that was asked for, unless nothing is gained by it: what is stored as it is takes the same room beside what it
/// is like as anywhere else, and who reads along the tree would read shared blocks again and again for nothing.
pub(crate) fn worthwhile(order: Order, plan: &Plan) -> Order {
    match order {
        Order::Similarity { .. } if shared_blocks(plan).1.is_none() => Order::Path,
        order => order,
    }
}

/// How much input a compressor sees at a time, or about so much.
fn window_len(plan: &Plan) -> u64 {
    let (block_len, codec) = shared_blocks(plan);
    let reach = codec.and_then(CodecSettings::reach).unwrap_or(u32::MAX);
    u64::from(block_len.min(reach))
}

/// About how much input a shared block takes, and what encodes it; none if it is stored as it is.
fn shared_blocks(plan: &Plan) -> (u32, Option<&CodecSettings>) {
    match &plan.cut {
        Cut::FixedInput { block_len } => (*block_len, plan.shared_codec.as_ref()),
        Cut::FixedOutput(cut) => match cut.recipes.get(usize::from(cut.packed_recipe)) {
            Some(Recipe::Clusters { cluster_len, codec, .. }) => {
                (cluster_len.saturating_mul(PLAIN_FACTOR), Some(codec))
            }
            _ => (cut.block_len, None),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::{ContentId, ImagePath, Meta, NodeKind, Tail, TreeBuilder, Xattrs};

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
        let files = files.map(|(node, _)| FileJob { node, tail: Tail::Shared, recipe: 0, data_file: 0 });
        let sorted = by_kind(&tree, files.collect());
        let names: Vec<&[u8]> = sorted.iter().map(|job| tree.first_name(job.node)).collect();
        let expected: [&[u8]; 7] =
            [b".hidden", b"Makefile", b"Makefile", b"lib.c", b"main.c", b"mod.rs", b"mod.rs"];
        assert_eq!(names, expected);
    }
}
