//! Places file data for [`packfs_format::Cut::FixedOutput`]: clusters, chunks, flat runs, inline tails and the packed stream.
//!
//! As in [`crate::data`], one thread decides and writes in plan order and the others read and compress, with a bounded
//! window of input in flight. What one segment of a file or of the packed stream becomes depends on its bytes alone.
//! Knows no format: where indexes and inodes go is not its concern.

mod chunks;
mod cutter;
mod doubt;
mod files;
mod old;
mod packed;
mod placer;
mod segment;
mod shape;
mod share;
mod sparse;
mod stored;
mod stretches;

pub(crate) use shape::{is_compared_as_tail, shares_whole};
pub(crate) use sparse::settle as settle_sparse;

use crate::PackOptions;
use crate::by_class::Classes;
use crate::context::{Context, Piece};
use crate::data_row::DataRow;
use crate::limits::{Demand, Limits};
use crate::parallel::start;
use crate::queue::{CloseOnDrop, TaskQueue, work};
use crate::spool::Spool;
use crate::twins::Twins;
use crate::witness::Testimony;
use cutter::{CutSpan, Cutter};
use packfs_core::{Error, Progress, Result, Stage};
use packfs_format::{ClusterCut, Placed, Plan, Recipe};
use placer::Placer;
use share::{Candidate, Regions};
use std::path::Path;
use std::sync::mpsc::channel;
use stored::CutCluster;

/// Least and most input in flight: read but not yet written. What lies in between is a segment for each worker and as much
/// again for one, so that who is done finds work.
const WINDOW_LEN: std::ops::RangeInclusive<u64> = 24 << 20..=64 << 20;

enum Task {
    /// Pieces, and for each the stored clusters that it may share.
    Span(u64, Vec<Piece>, Vec<Vec<Candidate>>),
    Packed(u64, Vec<u8>),
}

enum Answer {
    Span(u64, Vec<Piece>, CutSpan),
    /// A segment of the packed stream: its number, its length, what became of it.
    Packed(u64, u64, Result<(Vec<CutCluster>, Vec<u8>)>),
}

fn answer(cutter: &mut Cutter<'_>, task: Task) -> Answer {
    match task {
        Task::Span(number, pieces, candidates) => {
            let cut = cutter.cut(&pieces, &candidates);
            Answer::Span(number, pieces, cut)
        }
        Task::Packed(number, bytes) => Answer::Packed(number, bytes.len() as u64, cutter.cut_packed(&bytes)),
    }
}

/// What the engine has to work with.
pub(crate) struct Job<'a> {
    pub context: &'a Context<'a>,
    pub twins: &'a Twins,
    pub options: &'a PackOptions,
    pub progress: &'a dyn Progress,
    /// Where the image will be; what must wait is kept beside it.
    pub output: &'a Path,
}

/// Reads, compresses and writes the data of every file. Also returns what could not be read, if that is allowed, and the
/// tails that the format is to store.
pub(crate) fn place(
    job: &Job<'_>,
    cut: &ClusterCut,
    row: DataRow<'_>,
    testimony: &mut Testimony,
) -> Result<(Placed, Vec<String>, Spool, Classes)> {
    let context = job.context;
    check(context.plan, cut)?;
    let regions = match cut.share_ranges && context.plan.dedupe {
        true => Regions::find(context, cut, job.twins, job.options, job.progress)?,
        false => Regions::default(),
    };
    let bytes_total = context.bytes_total();
    job.progress.begin(Stage::Data, context.plan.files.len() as u64, bytes_total);
    let longest = shape::longest_segment(cut, context.plan.files.iter().map(|file| context.len(file.node)));
    let longest = longest.max(sparse::longest_chunk(cut));
    let limits = limits(context, cut, job.options, longest)?;
    let queue = &TaskQueue::new();
    std::thread::scope(|scope| {
        let _closes = CloseOnDrop(queue);
        let (answers, answered) = channel();
        for index in 0..limits.worker_count {
            let answers = answers.clone();
            let mut cutter = Cutter::new(context, cut, job.options)?;
            if !start(scope, index, move || work(queue, &answers, |task| answer(&mut cutter, task)))? {
                break;
            }
        }
        let mut placer = Placer::new(context, cut, job, &regions, queue, row, testimony);
        placer.copy_kept()?;
        placer.run(&answered, limits.window_len)?;
        placer.finish()
    })
}

fn limits(context: &Context<'_>, cut: &ClusterCut, options: &PackOptions, longest: u64) -> Result<Limits> {
    let encoder_len = |recipe: &Recipe| match recipe {
        Recipe::Clusters { codec, second, .. } => {
            let codecs = std::iter::once(codec).chain(second);
            codecs.map(|codec| options.effort.encoder_memory(codec, longest)).sum()
        }
        Recipe::Flat { .. } | Recipe::Chunks { .. } => 0,
    };
    let demand = Demand {
        // Encoders of all recipes, and a segment with what it becomes.
        encoder_len: cut.recipes.iter().map(encoder_len).sum::<u64>() + 2 * longest,
        window_min: longest,
        node_count: context.tree.node_count().into(),
    };
    let wanted_len = |workers: usize| {
        longest.saturating_mul(workers as u64 + 1).clamp(*WINDOW_LEN.start(), *WINDOW_LEN.end())
    };
    Limits::new(options, &demand, wanted_len)
}

/// Figures that the engine relies on.
fn check(plan: &Plan, cut: &ClusterCut) -> Result<()> {
    let block_len = cut.block_len;
    let in_blocks = |len: u64| len > 0 && len.is_multiple_of(u64::from(block_len));
    let recipe_holds = |recipe: &Recipe| match *recipe {
        Recipe::Flat { sparse_chunk_len } => sparse_chunk_len.is_none_or(in_blocks),
        Recipe::Chunks { chunk_len } => in_blocks(chunk_len),
        Recipe::Clusters { cluster_len, .. } => {
            in_blocks(cluster_len.into())
                && cut.decoded_len_max / 2 >= cluster_len
                && (!cut.byte_aligned || cut.segment_len.is_multiple_of(u64::from(cluster_len)))
        }
    };
    let holds = block_len.is_power_of_two()
        && !(cut.interlaced && (cut.share_ranges || cut.byte_aligned))
        && plan.data_start.is_multiple_of(u64::from(block_len))
        && in_blocks(cut.segment_len)
        && cut.segment_len <= 1 << 30
        && cut.recipes.iter().all(recipe_holds)
        && usize::from(cut.packed_recipe) < cut.recipes.len()
        && plan.files.iter().all(|file| usize::from(file.recipe) < cut.recipes.len());
    if holds { Ok(()) } else { Err(Error::failed("internal: the format's plan of clusters does not add up")) }
}
