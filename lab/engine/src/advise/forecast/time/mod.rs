//! Time of the kernel to read a workload from an image on a device: its caches, readahead and
//! requests, played through.
//!
//! Formats say which pieces their drivers read, and how these are kept ([`KernelCache`]). Where
//! each block is read when it is needed, reads and decoding add up. Where a window of readahead
//! becomes as few requests as its blocks lie together, the next window is asked for when the reader
//! comes to the first page of this one; so reads and decoding overlap in long files.

mod blocks;
mod pages;

use super::device::{Device, Seconds};
use super::pattern::Pattern;
use packfs::{KernelBlock, KernelCache};
use serde::Serialize;

/// A page, and a block of EROFS.
const PAGE: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scaling {
    /// Encoded data: stored bytes to stored bytes.
    pub(crate) data: f64,
    pub(crate) metadata: f64,
    /// Length of a cluster of tails as stored, in bytes.
    pub(crate) cluster: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Cost {
    /// Seconds for each decoded byte, up to the reader's buffer.
    pub(crate) per_byte: f64,
    /// Seconds to open a file and to close it.
    pub(crate) per_file: f64,
}

/// Time of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ReadTime {
    /// Seconds from beginning to end.
    pub seconds: f64,
    /// Seconds in which the reader waited for the device.
    pub waiting: f64,
    /// Seconds of decoding and copying.
    pub processor: f64,
    /// Requests to the device.
    pub requests: u64,
    /// Bytes that were asked for.
    pub bytes: u64,
    /// Bytes that were decoded, as often as they were.
    pub decoded: u64,
}

pub(crate) fn forecast(
    pattern: &Pattern,
    scaling: &Scaling,
    cost: &Cost,
    device: &mut dyn Device,
) -> ReadTime {
    let mut reading = Reading { scaling, cost, device, now: 0.0, sum: ReadTime::default() };
    match pattern.cache {
        KernelCache::Blocks { .. } => reading.blocks(pattern),
        KernelCache::Pages { .. } => reading.pages(pattern),
    }
    ReadTime { seconds: reading.now, ..reading.sum }
}

struct Reading<'a> {
    scaling: &'a Scaling,
    cost: &'a Cost,
    device: &'a mut dyn Device,
    now: Seconds,
    sum: ReadTime,
}

impl Reading<'_> {
    /// Asks at a time; when it is there.
    fn ask(&mut self, at: Seconds, offset: u64, len: u64) -> Seconds {
        self.sum.requests += 1;
        self.sum.bytes += len;
        self.device.read(at, offset, len)
    }

    fn wait_for(&mut self, offset: u64, len: u64) {
        let there = self.ask(self.now, offset, len);
        self.sum.waiting += there - self.now;
        self.now = there;
    }

    fn decode(&mut self, bytes: u64) -> Seconds {
        let time = bytes as f64 * self.cost.per_byte;
        self.sum.decoded += bytes;
        self.sum.processor += time;
        time
    }

    fn stored(&self, block: &KernelBlock) -> u64 {
        let stored = u64::from(block.read.stored);
        if block.compressed { ((stored as f64 * self.scaling.data).ceil() as u64).max(1) } else { stored }
    }

    fn place(&self, offset: u64) -> u64 {
        (offset as f64 * self.scaling.data) as u64
    }

    fn open_file(&mut self) {
        self.now += self.cost.per_file;
        self.sum.processor += self.cost.per_file;
    }
}

fn floor(offset: u64, unit: u64) -> u64 {
    offset - offset % unit
}

pub(crate) struct Memory;

impl Device for Memory {
    fn read(&mut self, now: Seconds, _offset: u64, _len: u64) -> Seconds {
        now
    }

    fn read_ahead(&self) -> u64 {
        128 << 10
    }
}

pub(crate) fn as_it_is(cluster: u64) -> Scaling {
    Scaling { data: 1.0, metadata: 1.0, cluster }
}

#[cfg(test)]
mod tests;
