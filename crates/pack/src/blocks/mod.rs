//! Places file data in blocks: files are cut by input, each block but the last of a file as long as the others.
//!
//! Tails of several files share blocks, and all blocks of a file may be a run of another's. Knows no
//! format: where inodes and tables go is not its concern.

mod cutter;
mod placer;
mod tails;
mod worth;

use crate::base::{KeptBlocks, Reuse};
use crate::context::{Context, Kind};
use crate::data_row::DataRow;
use crate::engine::{Engine, Job, Stored};
use crate::report::PackReport;
use crate::runs::{self, Runs};
use crate::twins::Twins;
use crate::witness::Testimony;
use crate::{PackOptions, base};
use packfs_codec::CodecSettings;
use packfs_core::{Progress, Result};
use packfs_format::{BlockPlan, BlockStorage, Blocks, Placed, Plan};
use std::ops::Range;
use std::path::Path;

impl Kind for Blocks {
    fn block_len(plan: &BlockPlan) -> u32 {
        plan.block_len
    }

    fn shares_whole(plan: &BlockPlan, storage: BlockStorage, len: u64) -> bool {
        storage == BlockStorage::SharedTail && len < plan.block_len.into()
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
        twins: &Twins,
        options: &PackOptions,
        progress: &dyn Progress,
        output: &Path,
    ) -> Result<Runs> {
        runs::find(context, twins, options, progress, output)
    }

    fn amend(runs: &Runs, plan: &mut Plan<Self>) {
        runs.move_tails(plan);
    }

    fn place(job: &Job<'_, Self>, row: DataRow<'_>, testimony: &mut Testimony) -> Result<Stored<Self>> {
        placer::place(job, row, testimony)
    }

    fn leads(plan: &BlockPlan, placed: &Placed<Self>) -> Vec<Range<u64>> {
        placed.leads(plan.lead).collect()
    }

    fn tell(placed: &Placed<Self>, report: &mut PackReport) {
        let data = &placed.data;
        (report.run_files, report.run_bytes) = (data.run_files, data.run_bytes);
        (report.lent_tails, report.lent_bytes) = (data.lent_tails, data.lent_bytes);
        report.shared_blocks = data.shared.len() as u64;
        let shared = data.shared.iter().map(|(_, block)| block);
        report.shared.stored = shared.clone().map(|block| u64::from(block.stored_len)).sum();
        let plain = data.blocks.iter().chain(shared).filter(|block| !block.compressed);
        report.plain_bytes = plain.map(|block| u64::from(block.stored_len)).sum();
    }
}

impl Context<'_, Blocks> {
    pub(crate) fn block_len(&self) -> u64 {
        self.plan.data.block_len.into()
    }

    /// Length of the part of a file that goes into a shared block; 0: none.
    pub(crate) fn shared_tail_len(&self, job: u32) -> u64 {
        let job = self.plan.files[job as usize];
        match job.storage {
            BlockStorage::Blocks | BlockStorage::Flat => 0,
            BlockStorage::SharedTail => self.len(job.node) % self.block_len(),
        }
    }
}
