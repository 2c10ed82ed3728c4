//! Android sparse images: chunks that are stored, filled with four bytes, or left out.
//!
//! Owns the chunks of an image: they have no index, so all of their heads are read when it opens.
//! Invariant: a chunk that is handed out lies within the file.

mod corruption;
mod disk;

use crate::table::Table;
use crate::volume::{DiskVolume, Map, Place, Visit};
use crate::{not_written, unsupported};
use corruption::Corruption;
use disk::*;
use packfs_core::{Image, Result, len_of, range_at, usize_of};
use packfs_format::check::Report;
use packfs_format::{FactValue, Facts, Format, FormatInfo, Magic, PackFormat, PackSettings, Volume};
use std::mem::size_of;
use std::ops::Range;
use std::sync::Arc;
use zerocopy::{FromZeros, IntoBytes};

/// Longest block, as libsparse takes.
const BLOCK_LEN_MAX: u32 = 64 << 20;
/// Most chunks: one for each page of a disk of 8 GiB.
const CHUNKS_MAX: u64 = 2 << 20;

static MAGICS: [Magic; 1] = [Magic { bytes: &[0x3a, 0xff, 0x26, 0xed, 1, 0], at: 0 }];

/// Android sparse images.
#[derive(Clone, Copy, Debug, Default)]
pub struct AndroidSparse;

static INFO: FormatInfo =
    FormatInfo { name: "android-sparse", extensions: &["simg"], magics: &MAGICS, ..FormatInfo::EMPTY };

impl Format for AndroidSparse {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, image: &dyn Image) -> Result<bool> {
        let mut magic = [0; 4];
        Ok(image.read_at(0, &mut magic)? == magic.len() && u32::from_le_bytes(magic) == MAGIC)
    }

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        let name = image.name();
        let map = Chunks::read(&image).map_err(|error| error.at(name))?;
        Ok(Box::new(DiskVolume::new(image, map)))
    }

    fn packer(&self, _settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
        not_written("android-sparse", "img2simg")
    }
}

/// Contents of a stretch of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Stored(u64),
    Fill([u8; 4]),
    Nothing,
}

/// Chunks that hold the same, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// Its end on the disk.
    end: u64,
    holds: Holds,
}

/// All chunks of an image.
struct Chunks {
    runs: Arc<Vec<Run>>,
    /// The file, and after it all that chunks are filled with.
    data: Option<Arc<Filled>>,
    heads: Vec<Range<u64>>,
    disk_len: u64,
    block_len: u32,
    chunk_count: u32,
    /// End of the last chunk in the file.
    end: u64,
    image_len: u64,
}

impl Chunks {
    /// Reads the heads of all chunks.
    ///
    /// Errors: `Corrupt`, `Unsupported` for another version, `Io`.
    fn read(image: &Arc<dyn Image>) -> Result<Chunks> {
        let len = image.len();
        let mut header = Header::new_zeroed();
        if len < size_of::<Header>() as u64 {
            return Err(Corruption::Short { len }.into());
        }
        image.read_exact_at(0, header.as_mut_bytes())?;
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
        let (header_len, head_len) = (header.header_size.get(), header.chunk_header_size.get());
        for (what, found, min) in
            [("header", header_len, size_of::<Header>()), ("chunk header", head_len, size_of::<Chunk>())]
        {
            if usize::from(found) < min {
                return Err(Corruption::HeaderSize { what, found, min: min as u64 }.into());
            }
        }
        let found = u64::from(header.chunk_count.get());
        let room = len.saturating_sub(header_len.into()).checked_div(head_len.into()).unwrap_or(0);
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
        let disk_len = total.saturating_mul(block_len.into());
        let runs = Arc::new(reader.runs);
        let has_fills = runs.iter().any(|run| matches!(run.holds, Holds::Fill(_)));
        let data = has_fills
            .then(|| Arc::new(Filled { file: Arc::clone(image), runs: Arc::clone(&runs), disk_len }));
        let (heads, end) = (reader.heads, reader.at);
        let chunk_count = header.chunk_count.get();
        Ok(Chunks { runs, data, heads, disk_len, block_len, chunk_count, end, image_len: len })
    }
}

/// Reading of chunks, one after the other.
struct Reader {
    /// Heads, some of which are mostly read together.
    heads_of: Table,
    /// Length of the file.
    limit: u64,
    header: Header,
    runs: Vec<Run>,
    heads: Vec<Range<u64>>,
    /// Offset of the next chunk in the file.
    at: u64,
    /// First block of the disk that it describes.
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
        let chunk: Chunk = zerocopy::transmute!(chunk);
        let (kind, total) = (chunk.kind.get(), u64::from(chunk.total_size.get()));
        let blocks = u64::from(chunk.block_count.get());
        let len = blocks.saturating_mul(self.header.block_size.get().into());
        let data_at = at.saturating_add(head_len);
        let (data_len, is_mapped) = match kind {
            KIND_RAW => (len, true),
            KIND_FILL => (4, true),
            KIND_DONT_CARE => (0, true),
            KIND_CRC32 => (4, false),
            _ => return Err(Corruption::ChunkKind { index, at, found: kind }.into()),
        };
        let wanted = head_len.saturating_add(data_len);
        if total != wanted {
            return Err(Corruption::ChunkLength { index, at, found: total, wanted }.into());
        }
        let end = at.saturating_add(total);
        if end > limit {
            return Err(Corruption::ChunkEnd { index, at, len: total, limit }.into());
        }
        let holds = match kind {
            KIND_RAW => Holds::Stored(data_at),
            KIND_FILL => {
                let fill: [u8; 4] = self.heads_of.entry(data_at)?;
                if fill == [0; 4] { Holds::Nothing } else { Holds::Fill(fill) }
            }
            _ => Holds::Nothing,
        };
        let head_end = if kind == KIND_RAW { data_at } else { end };
        match self.heads.last_mut() {
            Some(last) if last.end == at => last.end = head_end,
            _ => self.heads.push(at..head_end),
        }
        if is_mapped && blocks > 0 {
            self.push(len, holds);
            self.block = self.block.saturating_add(blocks);
        }
        self.at = end;
        Ok(())
    }

    /// Adds a stretch of the disk. Those that are stored have a head between them.
    fn push(&mut self, len: u64, holds: Holds) {
        let end = self.runs.last().map_or(0, |last| last.end).saturating_add(len);
        match self.runs.last_mut() {
            Some(last) if last.holds == holds && !matches!(holds, Holds::Stored(_)) => last.end = end,
            _ => self.runs.push(Run { end, holds }),
        }
    }
}

/// Calls `visit` for the runs in a range of the disk.
fn each_run(
    runs: &[Run],
    range: Range<u64>,
    visit: &mut dyn FnMut(Range<u64>, u64, Holds) -> Result<bool>,
) -> Result<()> {
    let first = runs.partition_point(|run| run.end <= range.start);
    let mut start = first.checked_sub(1).and_then(|before| runs.get(before)).map_or(0, |run| run.end);
    for run in runs.iter().skip(first) {
        if start >= range.end {
            break;
        }
        let part = start.max(range.start)..run.end.min(range.end);
        if !visit(part, start, run.holds)? {
            break;
        }
        start = run.end;
    }
    Ok(())
}

/// The file, and after it a disk of nothing but what chunks are filled with.
struct Filled {
    file: Arc<dyn Image>,
    runs: Arc<Vec<Run>>,
    disk_len: u64,
}

impl Filled {
    /// Returns the offset of the first byte of that disk.
    fn start(&self) -> u64 {
        self.file.len()
    }
}

impl Image for Filled {
    fn len(&self) -> u64 {
        self.start().saturating_add(self.disk_len)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        if offset < self.start() {
            return self.file.read_at(offset, buf);
        }
        let at = offset.saturating_sub(self.start());
        let len = usize_of(self.disk_len.saturating_sub(at)).min(buf.len());
        let Some(buf) = buf.get_mut(..len) else { return Ok(0) };
        buf.fill(0);
        each_run(&self.runs, range_at(at, len as u64), &mut |part, _, holds| {
            if let Holds::Fill(fill) = holds {
                let start = usize_of(part.start.saturating_sub(at));
                let end = start.saturating_add(usize_of(len_of(&part)));
                // Blocks are multiples of four bytes.
                let bytes = fill.iter().cycle().skip(usize_of(part.start % 4));
                for (to, byte) in buf.get_mut(start..end).unwrap_or_default().iter_mut().zip(bytes) {
                    *to = *byte;
                }
            }
            Ok(true)
        })?;
        Ok(len)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.file.check_unchanged()
    }

    fn name(&self) -> String {
        self.file.name()
    }
}

impl Map for Chunks {
    fn format(&self) -> &'static FormatInfo {
        &INFO
    }

    fn disk_len(&self) -> u64 {
        self.disk_len
    }

    fn each(&self, range: Range<u64>, visit: &mut Visit<'_>) -> Result<()> {
        each_run(&self.runs, range, &mut |part, start, holds| {
            let place = match holds {
                Holds::Stored(at) => Place::Stored(at.saturating_add(part.start.saturating_sub(start))),
                Holds::Fill(_) => Place::Stored(self.image_len.saturating_add(part.start)),
                Holds::Nothing => Place::Hole,
            };
            visit(part, place)
        })
    }

    fn add_facts(&self, facts: &mut Facts) {
        facts.push("block_len", "Block size", FactValue::Bytes(self.block_len.into()));
        facts.push("chunks", "Chunks", FactValue::Count(self.chunk_count.into()));
    }

    fn structures(&self) -> Vec<(Range<u64>, &'static str)> {
        self.heads.iter().map(|head| (head.clone(), "chunk headers")).collect()
    }

    fn data_image(&self) -> Option<Arc<dyn Image>> {
        self.data.clone().map(|data| data as Arc<dyn Image>)
    }

    fn check(&self, report: &mut Report<'_>) -> Result<()> {
        if self.image_len > self.end {
            let len = self.image_len.saturating_sub(self.end);
            report.note("image", format_args!("{len} bytes after the last chunk"));
        }
        Ok(())
    }
}
