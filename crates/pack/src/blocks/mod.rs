//! Placement of file data in blocks: files are cut by input, and each block but a file's last has
//! the same length.
//!
//! Tails of several files share fragment blocks, and all blocks of a file may be a run of
//! another's. No format is known here: the format places inodes and tables.

mod cutter;
mod placer;
mod tails;
mod walk;
mod whole_files;

use crate::base::{KeptBlocks, Reuse};
use crate::conductor;
use crate::context::{Context, Kind};
use crate::data_row::DataRow;
use crate::digest_log::DigestLog;
use crate::duplicates::Duplicates;
use crate::engine::{Engine, Job, Stored};
use crate::limits::{Demand, Limits};
use crate::report::{PackReport, WalkReads};
use crate::runs::{self, Runs};
use crate::spans::SPAN_LEN;
use crate::{PackOptions, base};
use cutter::Cutter;
use packfs_codec::CodecSettings;
use packfs_core::{NodeId, Progress, Result};
use packfs_format::{BlockPlan, BlockStorage, Blocks, Placed, Plan};
use placer::Placer;
use std::ops::Range;
use std::path::Path;
use whole_files::WholeFiles;

impl Kind for Blocks {
    fn block_len(plan: &BlockPlan) -> u32 {
        plan.block_len
    }

    fn shares_whole(plan: &BlockPlan, storage: BlockStorage, len: u64) -> bool {
        storage == BlockStorage::SharedTail && len < plan.block_len.into()
    }

    fn shared_len(plan: &BlockPlan, storage: BlockStorage, len: u64) -> u64 {
        match storage {
            BlockStorage::Blocks | BlockStorage::Flat => 0,
            BlockStorage::SharedTail => len % u64::from(plan.block_len),
        }
    }

    fn is_compared_as_tail(plan: &BlockPlan, storage: BlockStorage, len: u64) -> bool {
        Self::shares_whole(plan, storage, len)
    }

    fn is_flat(storage: BlockStorage) -> bool {
        storage == BlockStorage::Flat
    }

    fn data_file(_: BlockStorage) -> u16 {
        0
    }

    fn shared_window(plan: &BlockPlan) -> (u32, Option<&CodecSettings>) {
        (plan.block_len, plan.shared_codec.as_ref())
    }

    fn shared_block_len(plan: &BlockPlan) -> Option<u64> {
        Some(plan.block_len.into())
    }
}

impl Engine for Blocks {
    type Kept = KeptBlocks;
    type Parts = Runs;

    fn find_kept(
        context: &Context<'_, Self>,
        reuse: &Reuse<'_, KeptBlocks>,
        options: &PackOptions,
        progress: &dyn Progress,
    ) -> Result<KeptBlocks> {
        base::find_blocks(context, reuse, options, progress)
    }

    fn find_parts(
        context: &Context<'_, Self>,
        duplicates: &Duplicates,
        options: &PackOptions,
        progress: &dyn Progress,
        output: &Path,
    ) -> Result<Runs> {
        runs::find(context, duplicates, options, progress, output)
    }

    fn amend(runs: &Runs, plan: &mut Plan<Self>) {
        runs.move_tails(plan);
    }

    fn place(job: &Job<'_, Self>, row: DataRow<'_>, digests: &mut DigestLog) -> Result<Stored<Self>> {
        let whole_files = &WholeFiles::default();
        let limits = limits(job)?;
        conductor::place(job, &limits, || Cutter::new(job, whole_files), Placer::new(job), row, digests)
    }

    fn leads(plan: &BlockPlan, placed: &Placed<Self>) -> Vec<Range<u64>> {
        placed.leads(plan.lead).collect()
    }

    fn hole_bytes(context: &Context<'_, Self>, placed: &Placed<Self>) -> u64 {
        let hole_len = |node: NodeId| {
            placed.hole_len(&placed.files[node.index()], context.block_len(), context.len(node))
        };
        context.tree.nodes().fold(0, |sum, (node, _)| sum.saturating_add(hole_len(node)))
    }

    fn add_to_report(placed: &Placed<Self>, report: &mut PackReport) {
        let data = &placed.data;
        (report.run_files, report.run_bytes) = (data.run_files, data.run_bytes);
        (report.duplicate_tails, report.duplicate_tail_bytes) =
            (data.duplicate_tails, data.duplicate_tail_bytes);
        report.fragment_blocks = data.shared.len() as u64;
        let shared = data.shared.iter().map(|(_, block)| block);
        report.fragments.stored = shared.clone().map(|block| u64::from(block.stored_len)).sum();
        let plain = data.blocks.iter().chain(shared).filter(|block| !block.compressed);
        report.plain_bytes = plain.map(|block| u64::from(block.stored_len)).sum();
    }

    fn walk(context: &Context<'_, Self>, placed: &Placed<Self>) -> WalkReads {
        walk::walk(context, placed)
    }
}

/// Input in flight (read, not yet written) while memory suffices.
const WINDOW_LEN: u64 = 24 << 20;

fn limits(job: &Job<'_, Blocks>) -> Result<Limits> {
    let Job { context, options, .. } = *job;
    let BlockPlan { block_codec, shared_codec, .. } = &context.plan.data;
    let codecs = block_codec.iter().chain(shared_codec.iter().filter(|_| shared_codec != block_codec));
    let encoders: u64 = codecs.map(|codec| options.effort.encoder_memory(codec, context.block_len())).sum();
    let demand = Demand {
        // A span is held twice: as input, and as blocks until it is written.
        encoder_len: encoders + 2 * context.block_len(),
        window_min: 2 * SPAN_LEN.max(context.block_len()),
        node_count: context.tree.node_count().into(),
    };
    Limits::new(options, &demand, |_| WINDOW_LEN)
}

impl Context<'_, Blocks> {
    pub(crate) fn block_len(&self) -> u64 {
        self.plan.data.block_len.into()
    }

    /// Returns the length of the file's tail that goes into a fragment block; 0 if none does.
    pub(crate) fn shared_tail_len(&self, job: u32) -> u64 {
        self.shared_len(&self.plan.files[job as usize])
    }
}
