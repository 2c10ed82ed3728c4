//! Placement of file data in clusters: files are cut by output, into clusters, chunks, flat runs,
//! inline tails and the packed stream.
//!
//! As in [`crate::blocks`], one thread decides and writes in plan order while others read and
//! compress, with a bounded window of input in flight. The result for a segment of a file or of the
//! packed stream depends only on its bytes. No format is known here: the format places indexes and
//! inodes.

mod chunks;
mod coder;
mod cutter;
mod files;
mod incompressible_skip;
mod old;
mod packed;
mod placer;
mod segment;
mod shape;
mod share;
mod sparse;
mod stored;
mod stretches;
mod tails;

use crate::PackOptions;
use crate::base::{self, KeptStream, Reuse};
use crate::conductor;
use crate::context::{Context, Kind};
use crate::data_row::DataRow;
use crate::digest_log::DigestLog;
use crate::duplicates::Duplicates;
use crate::engine::{Engine, Job, Stored};
use crate::limits::{Demand, Limits};
use crate::report::PackReport;
use cutter::Cutter;
use packfs_codec::CodecSettings;
use packfs_core::{Error, Progress, Result};
use packfs_format::{
    ClusterForm, ClusterPlan, ClusterRecipe, ClusterStorage, Clusters, Placed, Plan, Recipe,
};
use placer::Placer;
use share::Regions;
use std::path::Path;

/// Least and most input in flight (read, not yet written). Between them, one segment for each
/// worker and one more, so that idle workers find work.
const WINDOW_LEN: std::ops::RangeInclusive<u64> = 24 << 20..=64 << 20;

/// Estimated input of a cluster in multiples of its stored size.
const INPUT_FACTOR: u32 = 3;

impl Kind for Clusters {
    fn block_len(plan: &ClusterPlan) -> u32 {
        plan.block_len
    }

    fn shares_whole(plan: &ClusterPlan, storage: ClusterStorage, len: u64) -> bool {
        shape::shares_whole(plan, storage, len)
    }

    fn shared_len(plan: &ClusterPlan, storage: ClusterStorage, len: u64) -> u64 {
        if shape::is_packed(plan, storage, len) { len } else { 0 }
    }

    fn is_compared_as_tail(plan: &ClusterPlan, storage: ClusterStorage, len: u64) -> bool {
        shape::is_compared_as_tail(plan, storage, len)
    }

    fn is_flat(_: ClusterStorage) -> bool {
        false
    }

    fn data_file(storage: ClusterStorage) -> u16 {
        storage.data_file
    }

    fn shared_window(plan: &ClusterPlan) -> (u32, Option<&CodecSettings>) {
        match plan.recipes.get(usize::from(plan.packed_recipe)) {
            Some(Recipe::Clusters(recipe)) => {
                (recipe.cluster_len.saturating_mul(INPUT_FACTOR), Some(&recipe.codec))
            }
            _ => (plan.block_len, None),
        }
    }

    fn shared_block_len(_: &ClusterPlan) -> Option<u64> {
        None
    }
}

impl Engine for Clusters {
    type Kept = KeptStream;
    type Parts = Regions;

    fn settle(context: &Context<'_, Self>, format: &str) -> Result<Option<Plan<Self>>> {
        sparse::settle(context, format)
    }

    fn find_kept(
        context: &Context<'_, Self>,
        reuse: &Reuse<'_, KeptStream>,
        options: &PackOptions,
        progress: &dyn Progress,
    ) -> Result<KeptStream> {
        base::find_stream(context, reuse, options, progress)
    }

    fn find_parts(
        context: &Context<'_, Self>,
        duplicates: &Duplicates,
        options: &PackOptions,
        progress: &dyn Progress,
        _: &Path,
    ) -> Result<Regions> {
        let cut = &context.plan.data;
        check(context.plan, cut)?;
        if cut.share_ranges && context.plan.dedupe {
            Regions::find(context, cut, duplicates, options, progress)
        } else {
            Ok(Regions::default())
        }
    }

    fn place(job: &Job<'_, Self>, row: DataRow<'_>, digests: &mut DigestLog) -> Result<Stored<Self>> {
        let limits = limits(job)?;
        conductor::place(job, &limits, || Cutter::new(job), Placer::new(job), row, digests)
    }

    fn hole_bytes(_: &Context<'_, Self>, placed: &Placed<Self>) -> u64 {
        placed.files.iter().fold(0, |sum, place| sum.saturating_add(placed.hole_len(place)))
    }

    fn add_to_report(placed: &Placed<Self>, report: &mut PackReport) {
        let packed = placed.data.packed.iter().flat_map(|(place, _)| placed.clusters_of(place));
        report.fragments.stored = packed.map(|row| u64::from(row.stored_len)).sum();
        let plain = placed.data.clusters.iter().filter(|row| row.form == ClusterForm::Plain);
        report.plain_bytes = plain.map(|row| u64::from(row.stored_len)).sum();
    }
}

fn limits(job: &Job<'_, Clusters>) -> Result<Limits> {
    let Job { context, options, .. } = *job;
    let cut = &context.plan.data;
    let longest = shape::longest_segment(cut, context.plan.files.iter().map(|file| context.len(file.node)));
    let longest = longest.max(sparse::longest_chunk(cut));
    let encoder_len = |recipe: &Recipe| match recipe {
        Recipe::Clusters(recipe) => {
            recipe.codecs().map(|codec| options.effort.encoder_memory(codec, longest)).sum()
        }
        Recipe::Flat { .. } | Recipe::Chunks { .. } => 0,
    };
    let demand = Demand {
        // Encoders of all recipes, and a segment as input and as output.
        encoder_len: cut.recipes.iter().map(encoder_len).sum::<u64>() + 2 * longest,
        window_min: longest,
        node_count: context.tree.node_count().into(),
    };
    let wanted_len = |workers: usize| {
        longest.saturating_mul(workers as u64 + 1).clamp(*WINDOW_LEN.start(), *WINDOW_LEN.end())
    };
    Limits::new(options, &demand, wanted_len)
}

fn check(plan: &Plan<Clusters>, cut: &ClusterPlan) -> Result<()> {
    let block_len = cut.block_len;
    let in_blocks = |len: u64| len > 0 && len.is_multiple_of(u64::from(block_len));
    let recipe_holds = |recipe: &Recipe| match *recipe {
        Recipe::Flat { sparse_chunk_len } => sparse_chunk_len.is_none_or(in_blocks),
        Recipe::Chunks { chunk_len } => in_blocks(chunk_len),
        Recipe::Clusters(ClusterRecipe { cluster_len, .. }) => {
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
        && plan.files.iter().all(|file| usize::from(file.storage.recipe) < cut.recipes.len());
    if holds {
        Ok(())
    } else {
        Err(Error::failed("cannot place data in clusters: the format's plan is inconsistent"))
    }
}
