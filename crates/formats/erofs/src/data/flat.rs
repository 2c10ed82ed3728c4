//! Files in one run of blocks, with or without an inline tail.

use super::{RunFrom, Runs};
use crate::figures::low_bits;
use crate::raw::{Layout, RawInode};
use crate::reader::Reader;
use packfs_core::Result;
use packfs_format::units::*;

impl Reader {
    /// Returns the length of a flat file without its inline tail.
    pub(super) fn flat_blocks_len(&self, raw: &RawInode) -> u64 {
        match raw.layout {
            Layout::FlatInline => left(raw.size, 1) & !low_bits(self.geometry.block_bits),
            _ => raw.size,
        }
    }

    /// See [`Reader::runs`].
    pub(super) fn flat_runs(&self, raw: &RawInode, runs: &mut Runs<'_>) -> Result<()> {
        let Some(start_block) = raw.start_block else {
            let _ = runs.push(0, raw.size, RunFrom::Hole);
            return Ok(());
        };
        let blocks_len = self.flat_blocks_len(raw);
        if runs.range.start < blocks_len {
            let address = self.geometry.bytes_of(start_block).unwrap_or(u64::MAX);
            let at = self.joined.locate(&self.geometry, 0, address, blocks_len, raw.place)?;
            if runs.push(0, blocks_len, RunFrom::Stored(at)).is_break() {
                return Ok(());
            }
        }
        if blocks_len < raw.size {
            let len = raw.size.minus(blocks_len);
            self.check_inline(raw.place, raw.tail_at(), len)?;
            let _ = runs.push(blocks_len, len, RunFrom::Stored(raw.tail_at()));
        }
        Ok(())
    }
}
