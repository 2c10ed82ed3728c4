//! Extents of an inode, as `dump.erofs -e` prints them: those of the index on disk, not those that
//! are read.

use packfs::{Extent, ExtentFrom, InodeId, Opened, Result};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Layouts of data (`enum` of `erofs_fs.h`).
const PLAIN: u16 = 0;
const INLINE: u16 = 2;
const CHUNKS: u16 = 4;

/// Logarithm of the chunk length in blocks.
const CHUNK_BITS: u32 = 0x1f;

pub struct Index {
    pub layout: u16,
    pub len: u64,
    /// `i_u`: the first block, or the format of chunks.
    pub start: u64,
    pub behind: u64,
    pub block: u64,
}

struct Row {
    from: u64,
    len: u64,
    at: u64,
    stored: u64,
}

pub fn list(opened: &Opened, id: InodeId, index: &Index, name: &str) -> Result<String> {
    let rows = match index.layout {
        PLAIN | INLINE => index.flat(),
        CHUNKS => chunks(opened, id, index)?,
        _ => compressed(opened, id, index)?,
    };
    let mut text = String::from("\n Ext:   logical offset   |  length :     physical offset    |  length\n");
    for (number, Row { from, len, at, stored }) in rows.iter().enumerate() {
        let (to, end) = (from.saturating_add(*len), at.saturating_add(*stored));
        text += &format!("{number:4}: {from:8}..{to:8} | {len:7} : {at:10}..{end:10} | {stored:7}\n");
    }
    Ok(text + &format!("{name}: {} extents found\n", rows.len()))
}

impl Index {
    /// Whole blocks, and a last part that may follow the inode.
    fn flat(&self) -> Vec<Row> {
        let whole = match self.layout {
            INLINE => self.len.saturating_sub(1) / self.block * self.block,
            _ => self.len.div_ceil(self.block).saturating_mul(self.block),
        };
        let tail = self.len.saturating_sub(whole);
        let blocks = Row { from: 0, len: whole, at: self.start.saturating_mul(self.block), stored: whole };
        let tail = Row { from: whole, len: tail, at: self.behind, stored: tail };
        [blocks, tail].into_iter().filter(|row| row.len > 0).collect()
    }
}

/// Chunks have their whole length, also beyond the end of the file.
fn chunks(opened: &Opened, id: InodeId, index: &Index) -> Result<Vec<Row>> {
    let bits = u32::try_from(index.start & u64::from(CHUNK_BITS)).unwrap_or(CHUNK_BITS);
    let chunk = index.block.checked_shl(bits).filter(|len| *len > 0).unwrap_or(u64::MAX);
    let mut rows = Vec::new();
    let mut from = 0_u64;
    while from < index.len {
        let left = (index.len - from).div_ceil(index.block).saturating_mul(index.block);
        let len = chunk.min(left);
        let mut at = None;
        opened.volume().extents(id, from..from.saturating_add(1), &mut |extent: Extent| {
            if let ExtentFrom::Stored(start) = extent.from {
                at = Some(start);
            }
            ControlFlow::Break(())
        })?;
        rows.push(Row { from, len, at: at.unwrap_or(0), stored: len });
        from = from.saturating_add(len);
    }
    Ok(rows)
}

/// Data in the packed inode has no separate location.
fn compressed(opened: &Opened, id: InodeId, index: &Index) -> Result<Vec<Row>> {
    let packed = packed_blocks(opened)?;
    let mut rows: Vec<Row> = Vec::new();
    opened.volume().extents(id, 0..index.len, &mut |extent: Extent| {
        let (from, len) = (extent.offset, extent.len);
        match extent.from {
            ExtentFrom::Stored(at) if packed.contains(&at) => {
                add(&mut rows, Row { from, len, at: 0, stored: 0 })
            }
            ExtentFrom::Block { block, .. } if packed.contains(&block.offset) => {
                add(&mut rows, Row { from, len, at: 0, stored: 0 });
            }
            ExtentFrom::Block { block, .. } => {
                add(&mut rows, Row { from, len, at: block.offset, stored: u64::from(block.stored_len) });
            }
            // Inline data.
            ExtentFrom::Stored(at) if at % index.block != 0 => {
                add(&mut rows, Row { from, len, at, stored: len });
            }
            // One uncompressed cluster per block.
            ExtentFrom::Stored(at) => {
                for done in (0..len).step_by(usize::try_from(index.block).unwrap_or(usize::MAX)) {
                    let len = index.block.min(len - done);
                    let (from, at) = (from.saturating_add(done), at.saturating_add(done));
                    rows.push(Row { from, len, at, stored: index.block });
                }
            }
            ExtentFrom::Hole => add(&mut rows, Row { from, len, at: 0, stored: 0 }),
        }
        ControlFlow::Continue(())
    })?;
    Ok(rows)
}

/// Extends the row of the same cluster.
fn add(rows: &mut Vec<Row>, row: Row) {
    match rows.last_mut().filter(|last| (last.at, last.stored) == (row.at, row.stored)) {
        Some(last) => last.len = last.len.saturating_add(row.len),
        None => rows.push(row),
    }
}

fn packed_blocks(opened: &Opened) -> Result<HashSet<u64>> {
    let mut found = HashSet::new();
    if let Some((id, len)) = opened.volume().packed_stream() {
        opened.volume().extents(id, 0..len, &mut |extent: Extent| {
            match extent.from {
                ExtentFrom::Block { block, .. } => drop(found.insert(block.offset)),
                ExtentFrom::Stored(at) => drop(found.insert(at)),
                ExtentFrom::Hole => {}
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(found)
}
