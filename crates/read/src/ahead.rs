//! Decodes ahead of readers that read one file in order, or one file after the other.

use crate::block::BLOCKS_AT_ONCE;
use crate::blocks::WantedBlock;
use crate::engine::ReadEngine;
use crate::file::FileReader;
use crate::neighbours::Advice;
use packfs_codec::BlockRef;
use packfs_format::{ExtentFrom, InodeId, units::*};
use std::ops::{ControlFlow, Range};

/// Bytes at the beginning of a file that are decoded for its first read.
const BEGINNING_LEN_MAX: u64 = 128 << 10;
/// Decoded bytes that one thread takes at a time: more would delay a reader that waits for the last
/// block.
const RUN_DECODED_LEN_MAX: u64 = 128 << 10;
/// Most bytes decoded at a time for a beginning, unless one block is longer.
const DECODED_LEN_MAX: u64 = 512 << 10;

impl ReadEngine {
    /// Lookup errors are left to the reader.
    pub(crate) fn read_ahead(&self, id: InodeId, range: Range<u64>) {
        if range.is_empty() || !self.prefetch.is_on() {
            return;
        }
        let mut runs = Runs { engine: self, run: Vec::new(), run_len: 0, count: 0 };
        let _ = self.volume.extents(id, range, &mut |extent| {
            if let ExtentFrom::Block { block, .. } = &extent.from {
                runs.add(block);
            }
            let is_full = runs.count >= BLOCKS_AT_ONCE;
            if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        runs.hand_over();
    }

    /// Records a block that is requested for the first time. If readers walk from file to file,
    /// worker threads decode the blocks that follow.
    pub(crate) fn read_neighbours_ahead(&self, id: InodeId, block: &BlockRef) {
        match self.neighbours.met(id, block, self.window_max()) {
            Advice::Nothing => {}
            Advice::Learn => self.prefetch.learn(&self.neighbours, &self.volume),
            Advice::Decode(blocks) => {
                let mut runs = Runs { engine: self, run: Vec::new(), run_len: 0, count: 0 };
                blocks.iter().for_each(|block| runs.add(block));
                runs.hand_over();
            }
        }
    }

    /// Skips blocks that were requested before.
    fn decode_here(&self, id: InodeId, range: Range<u64>) {
        let (mut wanted, mut len) = (Vec::new(), 0);
        // Lookup errors are left to the reader.
        let _ = self.volume.extents(id, range, &mut |extent| {
            if let ExtentFrom::Block { block, .. } = &extent.from {
                let slot = self.blocks.cache.slot(block);
                if slot.ask_ahead() {
                    wanted.push((*block, slot));
                }
                len += u64::from(block.decoded_len);
            }
            let is_full = wanted.len() >= BLOCKS_AT_ONCE || len >= DECODED_LEN_MAX;
            if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if !wanted.is_empty() {
            self.blocks.decoders.with(|decoders| self.blocks.decode_ahead(&wanted, decoders));
        }
    }

    /// Skips blocks that were requested before.
    pub(crate) fn decode_by_others(&self, wanted: &[WantedBlock]) {
        let mut runs = Runs { engine: self, run: Vec::new(), run_len: 0, count: 0 };
        wanted.iter().for_each(|wanted| runs.push(wanted.clone()));
        runs.hand_over();
    }
}

impl FileReader {
    /// Decodes the beginning of the file for an expected reader. It runs in this thread, so the
    /// caller should be idle. Does nothing if read-ahead is off.
    pub fn prepare(&self) {
        if self.engine.prefetch.is_on() {
            self.engine.decode_here(self.id, 0..self.len.min(BEGINNING_LEN_MAX));
        }
    }
}

struct Runs<'a> {
    engine: &'a ReadEngine,
    run: Vec<WantedBlock>,
    run_len: u64,
    count: usize,
}

impl Runs<'_> {
    fn add(&mut self, block: &BlockRef) {
        let slot = self.engine.blocks.cache.slot(block);
        self.count += 1;
        if slot.ask_ahead() {
            self.push((*block, slot));
        }
    }

    fn push(&mut self, wanted: WantedBlock) {
        let len = u64::from(wanted.0.decoded_len);
        if self.run_len.plus(len) > RUN_DECODED_LEN_MAX {
            self.hand_over();
        }
        self.run_len = self.run_len.plus(len);
        self.run.push(wanted);
    }

    fn hand_over(&mut self) {
        self.run_len = 0;
        self.engine.prefetch.add(std::mem::take(&mut self.run));
    }
}
