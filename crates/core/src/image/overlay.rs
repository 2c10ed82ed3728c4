//! An image with some of its blocks replaced, as by the changes in a journal.

use crate::{Fetched, Image, Result, usize_of};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;

/// Image with replaced blocks.
pub struct OverlayImage {
    base: Arc<dyn Image>,
    len: u64,
    block_len: NonZeroU64,
    blocks: BTreeMap<u64, Replacement>,
}

enum Replacement {
    /// Offset in the base.
    At(u64),
    /// Offset in another image.
    Of(Arc<dyn Image>, u64),
    Bytes(Box<[u8]>),
}

impl OverlayImage {
    /// Creates an overlay without replaced blocks. `block_len` is in bytes, at least 1.
    pub fn new(base: Arc<dyn Image>, block_len: u64) -> Self {
        let block_len = NonZeroU64::new(block_len).unwrap_or(NonZeroU64::MIN);
        OverlayImage { len: base.len(), base, block_len, blocks: BTreeMap::new() }
    }

    /// Sets the length in bytes; the default is that of the base. Bytes beyond the base are zeros.
    pub fn set_len(&mut self, len: u64) {
        self.len = len;
    }

    /// Replaces a block by the bytes of the base at offset `from`.
    pub fn move_block(&mut self, block: u64, from: u64) {
        self.blocks.insert(block, Replacement::At(from));
    }

    /// Replaces a block by the bytes of another image at offset `from`.
    pub fn take_block(&mut self, block: u64, image: &Arc<dyn Image>, from: u64) {
        self.blocks.insert(block, Replacement::Of(Arc::clone(image), from));
    }

    /// Replaces a block by `bytes`, padded with zeros.
    pub fn set_block(&mut self, block: u64, bytes: Box<[u8]>) {
        self.blocks.insert(block, Replacement::Bytes(bytes));
    }

    /// Restores the block of the base.
    pub fn unset(&mut self, block: u64) {
        self.blocks.remove(&block);
    }

    /// Returns true if no block is replaced.
    pub fn is_unchanged(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the number of replaced blocks.
    pub fn replaced(&self) -> usize {
        self.blocks.len()
    }

    /// Zeros follow the base.
    fn read_base(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let read = self.base.read_at(offset, buf)?;
        if offset.saturating_add(read as u64) < self.base.len() {
            return Ok(read);
        }
        buf.get_mut(read..).unwrap_or_default().fill(0);
        Ok(buf.len())
    }

    fn read_block(&self, block: u64, skip: u64, buf: &mut [u8]) -> Result<usize> {
        match self.blocks.get(&block) {
            None => self.read_base(block.saturating_mul(self.block_len.get()).saturating_add(skip), buf),
            Some(Replacement::At(from)) => {
                self.base.read_exact_at(from.saturating_add(skip), buf)?;
                Ok(buf.len())
            }
            Some(Replacement::Of(image, from)) => {
                image.read_exact_at(from.saturating_add(skip), buf)?;
                Ok(buf.len())
            }
            Some(Replacement::Bytes(bytes)) => {
                let stored = bytes.get(usize_of(skip)..).unwrap_or_default();
                let len = stored.len().min(buf.len());
                let (start, rest) = buf.split_at_mut(len);
                start.copy_from_slice(stored.get(..len).unwrap_or_default());
                rest.fill(0);
                Ok(buf.len())
            }
        }
    }
}

impl Image for OverlayImage {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let wanted = usize_of(self.len().saturating_sub(offset).min(buf.len() as u64));
        let buf = buf.get_mut(..wanted).unwrap_or_default();
        let first = offset / self.block_len;
        let last = offset.saturating_add(wanted as u64) / self.block_len;
        if self.blocks.range(first..=last).next().is_none() {
            return self.read_base(offset, buf);
        }
        let mut done = 0;
        while done < wanted {
            let at = offset.saturating_add(done as u64);
            let (block, skip) = (at / self.block_len, at % self.block_len);
            let mut len = self.block_len.get().saturating_sub(skip);
            if !self.blocks.contains_key(&block) {
                // Blocks of the base are read together, up to the next replaced one.
                let next = self.blocks.range(block..).next().map_or(u64::MAX, |(next, _)| *next);
                len = next.saturating_mul(self.block_len.get()).saturating_sub(at);
            }
            let end = done.saturating_add(usize_of(len)).min(wanted);
            let part = buf.get_mut(done..end).unwrap_or_default();
            let found = self.read_block(block, skip, part)?;
            done = done.saturating_add(found);
            if found < part.len() {
                break;
            }
        }
        Ok(done)
    }

    fn next_data(&self, offset: u64) -> Result<Option<Range<u64>>> {
        let data = self.base.next_data(offset)?;
        let len = self.len();
        let Some((block, _)) = self.blocks.range(offset / self.block_len..).next() else {
            return Ok(data);
        };
        let start = block.saturating_mul(self.block_len.get()).max(offset).min(len);
        let end = block.saturating_add(1).saturating_mul(self.block_len.get()).min(len);
        Ok(match data {
            Some(data) if data.start <= start => Some(data),
            _ if start < end => Some(start..end),
            data => data,
        })
    }

    /// Ignores that replaced blocks may be elsewhere, because a hint may be wrong.
    fn will_read(&self, ranges: &[Range<u64>]) {
        self.base.will_read(ranges);
    }

    fn fetched(&self) -> Option<Fetched> {
        self.base.fetched()
    }

    fn check_unchanged(&self) -> Result<()> {
        self.base.check_unchanged()
    }

    fn name(&self) -> String {
        self.base.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryImage;

    #[test]
    fn replaced_blocks_are_read_in_place_of_those_of_the_base() {
        let base: Vec<u8> = (0..35).collect();
        let mut overlay = OverlayImage::new(Arc::new(MemoryImage::new("base", base.clone())), 4);
        assert!(overlay.is_unchanged());
        overlay.move_block(1, 20);
        overlay.set_block(3, vec![100, 101].into());
        let other: Arc<dyn Image> = Arc::new(MemoryImage::new("other", (50..70).collect()));
        overlay.take_block(5, &other, 3);
        overlay.set_block(8, vec![200; 4].into());
        overlay.set_block(2, vec![1; 4].into());
        overlay.unset(2);
        assert_eq!(overlay.replaced(), 4);
        let mut wanted = base;
        wanted[4..8].copy_from_slice(&[20, 21, 22, 23]);
        wanted[12..16].copy_from_slice(&[100, 101, 0, 0]);
        wanted[20..24].copy_from_slice(&[53, 54, 55, 56]);
        wanted[32..35].copy_from_slice(&[200; 3]);
        for start in 0..=35 {
            for len in 0..=36 {
                let mut found = vec![9; len];
                let count = overlay.read_at(start as u64, &mut found).unwrap();
                let end = wanted.len().min(start + len);
                assert_eq!(found[..count], wanted[start..end], "{start} {len}");
            }
        }
    }

    #[test]
    fn an_overlay_may_be_longer_than_its_base() {
        let mut overlay = OverlayImage::new(Arc::new(MemoryImage::new("base", vec![1; 10])), 4);
        overlay.set_len(20);
        overlay.set_block(4, vec![5; 4].into());
        let mut found = [9; 30];
        assert_eq!(overlay.read_at(0, &mut found).unwrap(), 20);
        assert_eq!(found[..20], [[1; 10].as_slice(), &[0; 6], &[5; 4]].concat());
        let mut found = [9; 3];
        assert_eq!(overlay.read_at(11, &mut found).unwrap(), 3);
        assert_eq!(found, [0; 3]);
        assert_eq!(overlay.next_data(11).unwrap(), Some(16..20));
    }
}
