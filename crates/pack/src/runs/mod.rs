//! Finds files whose blocks are a run of another file's blocks, before any of them is compressed:
//! beginnings, ends and middles that start at a block, and copies with more data before or after
//! them. Also finds tails that equal the beginning of another file's block (`host_blocks.rs`).
//!
//! Blocks of a file are contiguous, so a file can use those of another only if all of its blocks
//! are a run there. A few bytes of each block are hashed (`samples.rs`). If a file's first block
//! has the sample of a longer file's block, both are compared byte by byte. The longest file is
//! stored.

mod host_blocks;
mod samples;
mod spilled;

pub(crate) use host_blocks::{BorrowedTails, HostBlock};

use crate::PackOptions;
use crate::context::Context;
use crate::digest_log::DigestLog;
use crate::duplicates::Duplicates;
use crate::failures::Failures;
use crate::parallel::read_in_parallel;
use host_blocks::HostBlocks;
use packfs_core::{
    ContentDigest, ContentHash, ContentHasher, ContentReader, NodeId, Progress, Result, Stage,
};
use packfs_format::{BlockSharing, BlockStorage, Blocks, FilePlace, Placed, Plan};
use samples::{Long, SAMPLE_LEN, Samples};
use spilled::Sample;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Most positions compared with a file: common beginnings are not significant.
const TRIED_MAX: usize = 8;
/// Most positions of which only the lengths are compared.
const LOOKED_MAX: usize = 1024;
/// Bytes compared first, and then at a time.
const FIRST_LEN: u64 = 16 << 10;
const READ_LEN: u64 = 256 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    host: NodeId,
    first_block: u64,
    blocks: u64,
    /// True if the rest that fills no block is not part of the run and goes to a fragment block.
    leaves_tail: bool,
}

impl Run {
    fn place(&self, placed: &Placed<Blocks>) -> FilePlace<Blocks> {
        let host = placed.files[self.host.index()];
        let before = &placed.blocks_of(&host)[..self.first_block as usize];
        FilePlace {
            start: host.start + before.iter().map(|block| u64::from(block.stored_len)).sum::<u64>(),
            first: host.first + self.first_block,
            count: self.blocks as u32,
            ..host
        }
    }
}

#[derive(Default)]
pub(crate) struct Runs {
    of: HashMap<NodeId, Run>,
    /// Hash of each file's part that lies in another's blocks, taken when it was compared.
    hashes: HashMap<NodeId, ContentHash>,
    block_len: u64,
    /// Files whose tails go to fragment blocks only because of that: indexes in the plan.
    moved_tails: Vec<u32>,
    host_blocks: HostBlocks,
}

impl Runs {
    pub(crate) fn stored_from(&self, node: NodeId, len: u64) -> u64 {
        match self.of.get(&node) {
            None => 0,
            Some(run) if run.leaves_tail => run.blocks * self.block_len,
            Some(_) => len,
        }
    }

    pub(crate) fn move_tails(&self, plan: &mut Plan<Blocks>) {
        for &job in &self.moved_tails {
            plan.files[job as usize].storage = BlockStorage::SharedTail;
        }
    }

    pub(crate) fn log_digests(&self, digests: &mut DigestLog) {
        for (&node, &hash) in &self.hashes {
            digests.add(node, ContentDigest::Hash(hash));
        }
    }

    /// Requires the places of all other files.
    pub(crate) fn place(
        &self,
        context: &Context<'_, Blocks>,
        failures: &mut Failures,
        progress: &dyn Progress,
        placed: &mut Placed<Blocks>,
    ) {
        let failed: HashSet<NodeId> = failures.nodes.iter().copied().collect();
        for job in &context.plan.files {
            let Some(run) = self.of.get(&job.node) else { continue };
            let len = context.len(job.node);
            let shared_len = len.min(run.blocks * self.block_len);
            progress.advance(u64::from(!run.leaves_tail), shared_len, 0);
            if failed.contains(&job.node) {
                continue;
            }
            if failed.contains(&run.host) {
                failures.nodes.push(job.node);
                continue;
            }
            placed.data.run_files += 1;
            placed.data.run_bytes = placed.data.run_bytes.saturating_add(shared_len);
            let tail = placed.files[job.node.index()].tail;
            placed.files[job.node.index()] = FilePlace { tail, ..run.place(placed) };
        }
    }
}

/// Samples that exceed memory are spooled beside `output`. An unreadable file equals no other, if
/// unreadable files are skipped.
pub(crate) fn find(
    context: &Context<'_, Blocks>,
    duplicates: &Duplicates,
    options: &PackOptions,
    progress: &dyn Progress,
    output: &Path,
) -> Result<Runs> {
    if context.plan.data.sharing == BlockSharing::Files {
        return Ok(Runs::default());
    }
    let files = long_files(context, duplicates);
    progress.begin(Stage::Dedupe, files.len() as u64, 0);
    let room = crate::limits::room_for_samples(options);
    let samples = Samples::take(context, &files, options, progress, (output, room))?;
    let finder = Finder { context, files: &files, samples: &samples };
    let indexes: Vec<u32> = (0..files.len() as u32).collect();
    let found = read_in_parallel(options, progress, &indexes, |&index| finder.find(index))?;
    let mut runs = Runs { block_len: context.block_len(), ..Runs::default() };
    // Longer files come first, so a host is known to be stored or a run itself.
    for (file, run) in files.iter().zip(found) {
        let Some((run, hash)) = run.flatten() else { continue };
        runs.hashes.insert(file.node, hash);
        let run = runs.resolve(run, file, context.block_len());
        if run.leaves_tail && context.plan.files[file.job as usize].storage == BlockStorage::Blocks {
            runs.moved_tails.push(file.job);
        }
        runs.of.insert(file.node, run);
    }
    if context.plan.data.sharing == BlockSharing::RunsAndTails {
        runs.host_blocks = HostBlocks { files, samples, may_be_left_out: options.keep_going };
    }
    Ok(runs)
}

impl Runs {
    /// `run` may be in a file that is a run itself.
    fn resolve(&self, run: Run, file: &Long, block_len: u64) -> Run {
        let Some(host) = self.of.get(&run.host) else { return run };
        let full = file.len / block_len;
        let reaches_tail = run.blocks > full && host.leaves_tail;
        Run {
            host: host.host,
            first_block: host.first_block + run.first_block,
            blocks: if reaches_tail { full } else { run.blocks },
            leaves_tail: run.leaves_tail || reaches_tail,
        }
    }
}

fn long_files(context: &Context<'_, Blocks>, duplicates: &Duplicates) -> Vec<Long> {
    let block_len = context.block_len();
    let rows = (0..).zip(&context.plan.files).filter(|(_, job)| duplicates.original(job.node).is_none());
    let mut files: Vec<Long> = rows
        .map(|(index, job)| {
            let len = context.len(job.node);
            let blocks = (len - context.shared_tail_len(index)).div_ceil(block_len);
            Long { node: job.node, job: index, len, blocks }
        })
        .filter(|file| file.blocks > 0)
        .collect();
    files.sort_by_key(|file| (Reverse(file.len), file.job));
    files
}

struct Finder<'a> {
    context: &'a Context<'a, Blocks>,
    files: &'a [Long],
    samples: &'a Samples,
}

impl Finder<'_> {
    /// Returns the run in the first longer file that has all blocks of this one.
    fn find(&self, index: u32) -> Result<Option<(Run, ContentHash)>> {
        let Some(first) = self.samples.first_of(index) else { return Ok(None) };
        let file = &self.files[index as usize];
        let hosts = self.samples.with_hash(first.hash, LOOKED_MAX)?;
        let longer = hosts.iter().take_while(|host| host.file < index);
        let runs = longer.filter_map(|host| self.likely(file, first, host));
        for run in runs.take(TRIED_MAX) {
            if let Some(hash) = self.same(file, &run)? {
                return Ok(Some((run, hash)));
            }
        }
        Ok(None)
    }

    fn likely(&self, file: &Long, first: Sample, host: &Sample) -> Option<Run> {
        let plan = &self.context.plan.data;
        let first_used = self.context.boundaries.first_used;
        let block_len = self.context.block_len();
        let first_block = u64::from(host.block).checked_sub(first.block.into())?;
        let host = &self.files[host.file as usize];
        // First-used data must not refer to other data.
        if file.job < first_used && host.job >= first_used {
            return None;
        }
        let full = file.len / block_len;
        let end = first_block * block_len + file.len;
        let run = |blocks, leaves_tail| Some(Run { host: host.node, first_block, blocks, leaves_tail });
        if end == host.len && first_block + file.blocks == host.blocks {
            // Its last block is the host's last block, or its tail is a fragment anyway.
            return run(file.blocks, file.blocks == full && !file.len.is_multiple_of(block_len));
        }
        let fits = full > 0 && first_block + full <= host.len / block_len;
        match file.len.is_multiple_of(block_len) {
            true if fits => run(full, false),
            false if fits && plan.sharing == BlockSharing::RunsAndTails => run(full, true),
            _ => None,
        }
    }

    /// Compares all bytes, those at the end and in the middle first; returns their hash if they are
    /// equal.
    fn same(&self, file: &Long, run: &Run) -> Result<Option<ContentHash>> {
        let block_len = self.context.block_len();
        let len = file.len.min(run.blocks * block_len);
        let host = self.context.open(run.host)?;
        let mut both = Both {
            file: self.context.open(file.node)?,
            host,
            shift: run.first_block * block_len,
            bufs: Default::default(),
        };
        let probes = [len.saturating_sub(SAMPLE_LEN), len / 2];
        for at in probes {
            if !both.is_same(at, (len - at).min(SAMPLE_LEN))? {
                return Ok(None);
            }
        }
        let mut hasher = ContentHasher::new(0);
        let mut at = 0;
        while let Some(offset) = both.next_data(at)?.filter(|&offset| offset < len) {
            let part_len = (len - offset).min(if at == 0 { FIRST_LEN } else { READ_LEN });
            if !both.is_same(offset, part_len)? {
                return Ok(None);
            }
            hasher.zeros(offset - at);
            hasher.bytes(&both.bufs[0]);
            at = offset + part_len;
        }
        both.file.check_unchanged()?;
        Ok(Some(hasher.finish()))
    }
}

struct Both<'a> {
    file: Box<dyn ContentReader + 'a>,
    host: Box<dyn ContentReader + 'a>,
    /// Offset in the second file minus that in the first.
    shift: u64,
    bufs: [Vec<u8>; 2],
}

impl Both<'_> {
    fn is_same(&mut self, offset: u64, len: u64) -> Result<bool> {
        for buf in &mut self.bufs {
            buf.resize(len as usize, 0);
        }
        let [a, b] = &mut self.bufs;
        self.file.read_exact_at(offset, a)?;
        self.host.read_exact_at(self.shift + offset, b)?;
        Ok(a == b)
    }

    fn next_data(&mut self, offset: u64) -> Result<Option<u64>> {
        let a = self.file.next_data(offset)?.map(|data| data.start);
        let b = self.host.next_data(self.shift + offset)?.map(|data| data.start.saturating_sub(self.shift));
        Ok(a.into_iter().chain(b).min().map(|start| start.max(offset)))
    }
}

#[cfg(test)]
mod tests;
