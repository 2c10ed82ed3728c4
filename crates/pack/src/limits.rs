//! Resources of packing: number of workers, and input in flight. Neither changes the image.
//!
//! By default, processors are those that this process may use, and memory is bounded by its control
//! groups and its limit of address space (`ulimit -v`). The memory of the tree and of the
//! verification afterwards is included.

use crate::PackOptions;
use packfs_core::{Error, Result};
use std::path::Path;

const MIB: u64 = 1 << 20;
/// Memory not accounted in detail: queued output, tables of tails, overhead of the allocator.
const SPARE_LEN: u64 = 8 * MIB;
/// Memory of each thread besides its encoder and its input.
const THREAD_LEN: u64 = MIB;

pub(crate) struct Demand {
    /// One encoder with its scratch buffers, in bytes.
    pub encoder_len: u64,
    /// Least input in flight, in bytes: the longest range that is compressed as one.
    pub window_min: u64,
    /// Nodes of the tree; a place is kept for each.
    pub node_count: u64,
}

const NODE_LEN: u64 = 96;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub worker_count: usize,
    /// Input that is read and not yet written, in bytes.
    pub window_len: u64,
}

impl Limits {
    /// Grants the requested workers and the window that `wanted_len` returns for them, less if
    /// memory is short.
    ///
    /// Errors: `Failed` if the user's limit is too low for one worker. Under a control group's
    /// limit one worker tries anyway, because more memory may be available than it seems.
    pub(crate) fn new(
        options: &PackOptions,
        demand: &Demand,
        wanted_len: impl Fn(usize) -> u64,
    ) -> Result<Self> {
        let allowed = allowed(options);
        let jobs = packfs_core::thread_count(options.jobs);
        let Some(allowed) = allowed else {
            return Ok(Limits { worker_count: jobs, window_len: wanted_len(jobs) });
        };
        let taken = resident() + demand.node_count * NODE_LEN;
        Limits::within(allowed, taken, demand, jobs, wanted_len).or_else(|least| match options.memory {
            None => Ok(Limits { worker_count: 1, window_len: demand.window_min }),
            Some(_) => Err(Error::failed(format!(
                "cannot pack within {} MiB of memory: {} MiB are needed with one thread",
                allowed / MIB,
                least.div_ceil(MIB)
            ))
            .hint("use smaller blocks, a smaller dictionary or a lower level")),
        })
    }

    fn within(
        allowed: u64,
        taken: u64,
        demand: &Demand,
        jobs: usize,
        wanted_len: impl Fn(usize) -> u64,
    ) -> std::result::Result<Self, u64> {
        let worker_len = demand.encoder_len + THREAD_LEN;
        let least = taken + SPARE_LEN + worker_len + demand.window_min;
        let Some(spare) = allowed.checked_sub(least) else { return Err(least) };
        // An idle worker needs input, so each further worker comes with input of its own.
        let further = spare / (worker_len + demand.window_min).max(1);
        let worker_count = jobs.min(usize::try_from(further).unwrap_or(usize::MAX).saturating_add(1));
        let left = spare - (worker_count as u64 - 1) * worker_len;
        let window_len = wanted_len(worker_count).min(demand.window_min + left);
        Ok(Limits { worker_count, window_len })
    }
}

fn allowed(options: &PackOptions) -> Option<u64> {
    // A group also accounts page cache and other processes.
    let said = options.memory.or_else(|| group_memory_limit().map(|limit| limit / 4 * 3));
    let room = address_room().map(|room| resident() + room / 4 * 3);
    said.into_iter().chain(room).min()
}

/// Bytes kept for each node while an image is verified: its inode and its digest.
const VERIFY_NODE_LEN: u64 = 144;
/// Memory for verifying with one thread, whatever the image: lists of blocks, and their bytes.
const VERIFY_LEN: u64 = 24 * MIB;
/// Memory for each verifying thread: stored bytes, a decoded block, a decoder.
const VERIFY_THREAD_LEN: u64 = 5 * MIB;

/// Depends on the memory left.
pub(crate) fn verify_jobs(options: &PackOptions) -> usize {
    let jobs = packfs_core::thread_count(options.jobs);
    let Some(allowed) = allowed(options) else { return jobs };
    let room = allowed.saturating_sub(resident() + VERIFY_LEN) / VERIFY_THREAD_LEN;
    usize::try_from(room).map_or(jobs, |room| jobs.min(room + 1))
}

/// Errors: `Failed` if an image with this number of nodes cannot be verified within the limit of
/// the user or of a control group.
pub(crate) fn check_verify(options: &PackOptions, node_count: u32) -> Result<()> {
    let bound = options.memory.or_else(group_memory_limit);
    let (Some(allowed), Some(_)) = (bound, &options.verify) else { return Ok(()) };
    let least = resident() + u64::from(node_count) * (NODE_LEN + VERIFY_NODE_LEN) + VERIFY_LEN;
    if least <= allowed {
        return Ok(());
    }
    let who = if options.memory.is_some() { "--memory" } else { "the control group" };
    Err(Error::failed(format!(
        "cannot verify the image within {} MiB of memory ({who}): {} MiB are needed",
        allowed / MIB,
        least.div_ceil(MIB)
    ))
    .hint("allow more memory, or use --no-verify"))
}

/// Least memory for samples of blocks, in bytes.
const SAMPLES_LEN_MIN: u64 = MIB;

/// A quarter of the memory left, because encoders and input are allocated later.
pub(crate) fn room_for_samples(options: &PackOptions) -> u64 {
    match allowed(options) {
        None => u64::MAX,
        Some(allowed) => (allowed.saturating_sub(resident()) / 4).max(SAMPLES_LEN_MIN),
    }
}

/// Bytes; 0 if unknown.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
    pages.saturating_mul(rustix::param::page_size() as u64)
}

/// Bytes, if limited.
fn address_room() -> Option<u64> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current?;
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_whitespace().next().and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
    Some(limit.saturating_sub(pages.saturating_mul(rustix::param::page_size() as u64)))
}

/// Returns the limit of memory that control groups (version 2) set for this process, in bytes.
pub fn group_memory_limit() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let top = Path::new("/sys/fs/cgroup");
    let limits = Path::new(group).ancestors().filter_map(|group| {
        let text = std::fs::read_to_string(top.join(group).join("memory.max")).ok()?;
        text.trim().parse().ok()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEMAND: Demand = Demand { encoder_len: 15 * MIB, window_min: 4 * MIB, node_count: 0 };

    fn within(allowed: u64) -> std::result::Result<(usize, u64), u64> {
        let wanted_len = |workers: usize| 24 * MIB * workers as u64;
        let limits = Limits::within(allowed * MIB, 10 * MIB, &DEMAND, 4, wanted_len);
        limits.map(|limits| (limits.worker_count, limits.window_len / MIB)).map_err(|least| least / MIB)
    }

    #[test]
    fn short_memory_costs_workers_and_then_nothing_is_left_to_take() {
        assert_eq!(within(37), Err(38));
        assert_eq!(within(38), Ok((1, 4)));
        assert_eq!(within(57), Ok((1, 23)));
        assert_eq!(within(58), Ok((2, 8)));
        assert_eq!(within(1000), Ok((4, 96)));
    }

    #[test]
    fn samples_get_a_quarter_of_what_is_left() {
        let room = |memory| room_for_samples(&PackOptions { memory, ..PackOptions::default() });
        assert_eq!(room(Some(0)), MIB);
        let (some, more) = (room(Some(8 << 30)), room(Some(16 << 30)));
        assert!(some < 2 << 30 && more > some, "{some} {more}");
    }

    #[test]
    fn this_process_takes_memory_itself() {
        assert!(resident() > MIB);
    }
}
