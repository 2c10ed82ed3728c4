//! The hash tree of dm-verity and fs-verity: blocks of data are hashed, their hashes fill blocks,
//! which are hashed in turn, until one block is left. Its hash is the root hash.
//!
//! Data is hashed on all CPUs. One block of each level is in memory; a full block is passed to the
//! caller.

use crate::algorithm::Salted;
use crate::ordered;
use packfs_core::{Image, Progress, Result};

/// Bytes that a worker hashes at a time.
const SPAN_LEN: u64 = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Level 0, with the hashes of data, first.
    levels: Vec<u64>,
}

impl Shape {
    pub(crate) fn new(data_blocks: u64, hashes_a_block: u64) -> Self {
        let mut levels = Vec::new();
        let mut count = data_blocks;
        while count > 1 {
            count = count.div_ceil(hashes_a_block);
            levels.push(count);
        }
        Shape { levels }
    }

    pub(crate) fn level_count(&self) -> usize {
        self.levels.len()
    }

    pub(crate) fn block_count(&self) -> u64 {
        self.levels.iter().sum()
    }

    /// Position if levels are stored in order, the one with a single block first.
    pub(crate) fn position(&self, level: usize, index: u64) -> u64 {
        self.levels[level + 1..].iter().sum::<u64>() + index
    }
}

/// Arguments: level, number in that level, bytes of the block.
pub(crate) type Emit<'a> = dyn FnMut(usize, u64, &[u8]) -> Result<()> + 'a;

pub(crate) struct Fold<'a> {
    salted: Salted,
    block_len: usize,
    rows: Vec<Row>,
    root: Vec<u8>,
    emit: &'a mut Emit<'a>,
}

#[derive(Default)]
struct Row {
    bytes: Vec<u8>,
    done: u64,
}

impl<'a> Fold<'a> {
    pub(crate) fn new(salted: Salted, block_len: usize, shape: &Shape, emit: &'a mut Emit<'a>) -> Self {
        let rows = shape.levels.iter().map(|_| Row::default()).collect();
        Fold { salted, block_len, rows, root: Vec::new(), emit }
    }

    /// Level 0 has the hashes of data.
    pub(crate) fn add(&mut self, level: usize, hash: &[u8]) -> Result<()> {
        let mut hash = hash.to_vec();
        for level in level.. {
            let Some(row) = self.rows.get_mut(level) else {
                self.root = hash;
                break;
            };
            row.bytes.extend_from_slice(&hash);
            if row.bytes.len() + hash.len() <= self.block_len {
                break;
            }
            hash = self.complete(level)?;
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<Vec<u8>> {
        for level in 0..self.rows.len() {
            if !self.rows[level].bytes.is_empty() {
                let hash = self.complete(level)?;
                self.add(level + 1, &hash)?;
            }
        }
        Ok(self.root)
    }

    fn complete(&mut self, level: usize) -> Result<Vec<u8>> {
        let row = &mut self.rows[level];
        row.bytes.resize(self.block_len, 0);
        (self.emit)(level, row.done, &row.bytes)?;
        row.done += 1;
        let hash = self.salted.hash(&row.bytes);
        row.bytes.clear();
        Ok(hash)
    }
}

/// The last block is padded with zeros; `take` receives the concatenated hashes of several blocks
/// at a time, in order.
pub(crate) fn hash_blocks(
    image: &dyn Image,
    len: u64,
    block_len: usize,
    salted: &Salted,
    jobs: usize,
    progress: &dyn Progress,
    take: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let span_len = SPAN_LEN.next_multiple_of(block_len as u64);
    let spans = (0..len.div_ceil(span_len)).map(|index| Ok(index * span_len));
    let hash = |buf: &mut Vec<u8>, start: &u64| {
        let part_len = (len - start).min(span_len) as usize;
        buf.clear();
        buf.resize(part_len.next_multiple_of(block_len), 0);
        image.read_exact_at(*start, &mut buf[..part_len])?;
        let mut hashes = Vec::with_capacity(buf.len() / block_len * 64);
        for block in buf.chunks(block_len) {
            salted.hash_into(block, &mut hashes);
        }
        progress.advance(0, part_len as u64, 0);
        Ok(hashes)
    };
    ordered::in_order(jobs, spans, progress, Vec::new, hash, &mut |_, hashes: Vec<u8>| take(&hashes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_shrink_until_one_block_is_left() {
        for (blocks, levels) in
            [(1, vec![]), (2, vec![1]), (128, vec![1]), (129, vec![2, 1]), (16_385, vec![129, 2, 1])]
        {
            assert_eq!(Shape::new(blocks, 128), Shape { levels }, "{blocks}");
        }
        let shape = Shape::new(16_385, 128);
        assert_eq!((shape.position(2, 0), shape.position(1, 1), shape.position(0, 0)), (0, 2, 3));
        assert_eq!(shape.block_count(), 132);
    }
}
