//! The blocks of a tar archive, read one by one.

use super::header::{BLOCK_LEN, Block};
use crate::archive::input::Input;
use packfs_core::Result;

impl Input<'_> {
    /// `None` at the end of the archive.
    pub(super) fn block(&mut self) -> Result<Option<Block>> {
        let mut block = [0; BLOCK_LEN];
        match self.read(&mut block)? {
            0 => Ok(None),
            BLOCK_LEN => Ok(Some(block)),
            len => Err(self.cut_off(len)),
        }
    }

    pub(super) fn peek_block(&mut self) -> Result<Option<Block>> {
        let ahead = self.peek(BLOCK_LEN)?;
        let (block, len) = (ahead.first_chunk().copied(), ahead.len());
        if block.is_none() && len > 0 { Err(self.cut_off(0)) } else { Ok(block) }
    }

    /// Returns true if a block of zeros was consumed.
    pub(super) fn zeros_follow(&mut self) -> Result<bool> {
        let mut block = [1; BLOCK_LEN];
        Ok(self.read(&mut block)? == BLOCK_LEN && block == [0; BLOCK_LEN])
    }
}
