//! Chunks of one file, each describing a range of the disk.
//!
//! They have no index, so all headers are read. Invariant: a returned chunk is within the file.

use super::corruption::Corruption;
use super::disk::*;
use super::runs::{Holds, Run, push};
use crate::table::Table;
use crate::unsupported;
use packfs_core::{Image, Result, range_at};
use packfs_format::{read_structure, structure, units::*};
use std::mem::size_of;
use std::ops::Range;
use std::sync::Arc;

/// Longest block that libsparse accepts.
const BLOCK_LEN_MAX: u32 = 64 << 20;
/// Limit of chunks: one for each page of a disk of 8 GiB.
const CHUNKS_MAX: u64 = 2 << 20;

pub(super) struct Part {
    pub(super) runs: Vec<Run>,
    /// Positions of everything except stored blocks.
    pub(super) heads: Vec<Range<u64>>,
    pub(super) disk_len: u64,
    pub(super) block_len: u32,
    pub(super) chunk_count: u32,
    pub(super) end: u64,
}

impl Part {
    /// Reads the headers of all chunks.
    ///
    /// Errors: `Corrupt`, `Unsupported` for another version, `Io`.
    pub(super) fn read(image: &Arc<dyn Image>) -> Result<Part> {
        let len = image.len();
        if len < size_of::<Header>() as u64 {
            return Err(Corruption::Short { len }.into());
        }
        let header: Header = read_structure(&**image, 0)?;
        if header.magic.get() != MAGIC {
            return Err(Corruption::Signature.into());
        }
        let major = header.major_version.get();
        if major != 1 {
            return Err(unsupported("android-sparse image", format!("version {major}, 1 is supported")));
        }
        let block_len = header.block_size.get();
        if block_len == 0 || !block_len.is_multiple_of(4) || block_len > BLOCK_LEN_MAX {
            return Err(Corruption::BlockSize { found: block_len }.into());
        }
        let header_len = header.header_size.get();
        let head_len = header.chunk_header_size.get();
        for (what, found, min) in
            [("header", header_len, size_of::<Header>()), ("chunk header", head_len, size_of::<Chunk>())]
        {
            if usize::from(found) < min {
                return Err(Corruption::HeaderSize { what, found, min: min as u64 }.into());
            }
        }
        let found = u64::from(header.chunk_count.get());
        let room = left(len, header_len.into()).quotient(head_len.into());
        let max = room.min(CHUNKS_MAX);
        if found > max {
            return Err(Corruption::ChunkCount { found, max }.into());
        }
        let mut reader = Reader {
            heads_of: Table::new(Arc::clone(image)),
            limit: len,
            runs: Vec::new(),
            heads: Vec::new(),
            at: header_len.into(),
            block: 0,
            header,
        };
        reader.heads.push(0..header_len.into());
        for index in 0..header.chunk_count.get() {
            reader.chunk(index)?;
        }
        let total = u64::from(header.block_count.get());
        if reader.block != total {
            return Err(Corruption::BlockCount { found: total, blocks: reader.block }.into());
        }
        let disk_len = total.times(block_len.into());
        let Reader { runs, heads, at: end, .. } = reader;
        Ok(Part { runs, heads, disk_len, block_len, chunk_count: header.chunk_count.get(), end })
    }

    /// Returns the range of the disk from the first described byte to the last; `None` if the file
    /// skips all.
    pub(super) fn said(&self) -> Option<Range<u64>> {
        let is_said = |run: &Run| run.holds != Holds::Skipped;
        let first = self.runs.iter().position(is_said)?;
        let start = first.checked_sub(1).and_then(|before| self.runs.get(before)).map_or(0, |run| run.end);
        let last = self.runs.iter().rfind(|run| is_said(run))?;
        Some(start..last.end)
    }
}

struct Reader {
    /// Cache of headers, which are often read together.
    heads_of: Table,
    limit: u64,
    header: Header,
    runs: Vec<Run>,
    heads: Vec<Range<u64>>,
    at: u64,
    /// Disk block where the next chunk starts.
    block: u64,
}

impl Reader {
    fn chunk(&mut self, index: u32) -> Result<()> {
        let (at, limit) = (self.at, self.limit);
        let head_len = u64::from(self.header.chunk_header_size.get());
        if range_at(at, head_len).end > limit {
            return Err(Corruption::ChunkEnd { index, at, len: head_len, limit }.into());
        }
        let chunk: [u8; size_of::<Chunk>()] = self.heads_of.entry(at)?;
        let chunk: Chunk =
            structure(&chunk, 0).ok_or(Corruption::ChunkEnd { index, at, len: head_len, limit })?;
        let (kind, total) = (chunk.kind.get(), u64::from(chunk.total_size.get()));
        let blocks = u64::from(chunk.block_count.get());
        let len = blocks.times(self.header.block_size.get().into());
        let data_at = at.plus(head_len);
        let (data_len, is_mapped) = match kind {
            KIND_RAW => (len, true),
            KIND_FILL => (4, true),
            KIND_DONT_CARE => (0, true),
            KIND_CRC32 => (4, false),
            _ => return Err(Corruption::ChunkKind { index, at, found: kind }.into()),
        };
        let wanted = head_len.plus(data_len);
        if total != wanted {
            return Err(Corruption::ChunkLength { index, at, found: total, wanted }.into());
        }
        let end = at.plus(total);
        if end > limit {
            return Err(Corruption::ChunkEnd { index, at, len: total, limit }.into());
        }
        let holds = match kind {
            KIND_RAW => Holds::Stored(data_at),
            KIND_FILL => {
                let fill: [u8; 4] = self.heads_of.entry(data_at)?;
                if fill == [0; 4] { Holds::Zeros } else { Holds::Fill(fill) }
            }
            _ => Holds::Skipped,
        };
        let head_end = if kind == KIND_RAW { data_at } else { end };
        match self.heads.last_mut() {
            Some(last) if last.end == at => last.end = head_end,
            _ => self.heads.push(at..head_end),
        }
        if is_mapped && blocks > 0 {
            let start = self.runs.last().map_or(0, |last| last.end);
            push(&mut self.runs, start.plus(len), holds);
            self.block = self.block.plus(blocks);
        }
        self.at = end;
        Ok(())
    }
}
