//! Random access to one file, through the cache of decoded blocks.

use crate::block::{self, BLOCKS_AT_ONCE, Decoded};
use crate::blocks::WantedBlock;
use crate::engine::ReadEngine;
use crate::sequence::Sequence;
use crate::slot::Slot;
use packfs_codec::{Algorithm, BlockRef, DecodedLen, Decoders};
use packfs_core::{ContentId, ContentReader, Contents, Error, Result, range_at};
use packfs_format::{Extent, ExtentFrom, InodeId, InodeKind, units::*};
use std::io;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex, PoisonError};

/// Longest run of data reported at a time, so that a query costs the same in small and large files.
const RUN_LEN_MAX: u64 = 64 << 20;
/// Decoded bytes that one reader holds at a time, unless one block is longer.
const DECODED_LEN_AT_ONCE: u64 = 2 << 20;
/// Reads that decode less than this are not split among threads.
const HELP_LEN_MIN: u64 = 256 << 10;

/// Most ranges of one hint.
const HINTS_MAX: usize = 1024;

struct Part {
    offset: u64,
    len: u64,
    data: PartData,
}

enum PartData {
    Hole,
    Stored(u64),
    Block(BlockPart),
}

struct BlockPart {
    block: BlockRef,
    slot: Arc<Slot>,
    start: u32,
    len: u64,
    is_new: bool,
}

impl Part {
    fn block(&self) -> Option<&BlockPart> {
        match &self.data {
            PartData::Block(part) => Some(part),
            PartData::Hole | PartData::Stored(_) => None,
        }
    }
}

impl BlockPart {
    /// `None` unless decoding only the sufficient prefix pays.
    fn prefix(&self) -> Option<BlockRef> {
        block::prefix(&self.block, u64::from(self.start).plus(self.len))
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ReadPattern {
    /// Nothing is decoded ahead of an empty range.
    ahead: Option<Range<u64>>,
    /// Other threads help with long reads.
    others_help: bool,
    /// Random access: little of each block is wanted.
    jumps: bool,
    /// Sequential access by a caller that caches: data is not requested again.
    uses_up: bool,
}

impl ReadEngine {
    /// Opens a regular file.
    ///
    /// Errors: `Failed` for other types, `Corrupt` for a damaged inode.
    pub fn open_file(self: &Arc<Self>, id: InodeId) -> Result<FileReader> {
        let len = self.file_len(id)?;
        let sequence = Mutex::default();
        Ok(FileReader { engine: Arc::clone(self), id, len, position: 0, sequence })
    }

    /// Reads up to `buf.len()` bytes from `offset` of a file, fewer only at its end. Decodes
    /// nothing ahead: for callers that know their next read.
    ///
    /// Errors: as [`ReadEngine::open_file`] and [`FileReader::read_at`].
    pub fn read_at(&self, id: InodeId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let file_len = self.file_len(id)?;
        let len = left(file_len, offset).min(buf.len() as u64) as usize;
        let mut sequence = Sequence::default();
        sequence.read(offset, len as u64, file_len, 0);
        let pattern = ReadPattern { others_help: true, jumps: sequence.jumps(), ..ReadPattern::default() };
        self.fill(id, offset, &mut buf[..len], pattern)?;
        Ok(len)
    }

    fn file_len(&self, id: InodeId) -> Result<u64> {
        match self.volume.inode(id)?.kind {
            InodeKind::File { len } => Ok(len),
            other => Err(Error::failed(format!("is a {}, not a file", other.file_type().word()))),
        }
    }

    /// The file must be long enough.
    pub(crate) fn fill(&self, id: InodeId, offset: u64, buf: &mut [u8], pattern: ReadPattern) -> Result<()> {
        let others_help = pattern.others_help && self.prefetch.is_on();
        let predicts = pattern.ahead.is_some() && self.prefetch.is_on();
        let mut ahead = pattern.ahead.unwrap_or_default();
        let end = end_of(offset, buf.len() as u64);
        let mut filled = 0;
        while filled < buf.len() {
            let from = offset + filled as u64;
            let (parts, new) = self.look_up(id, from..end)?;
            // Only now, when the blocks of this read are known.
            self.read_ahead(id, std::mem::take(&mut ahead));
            if predicts {
                new.iter().for_each(|block| self.read_neighbours_ahead(id, block));
            }
            self.announce(&parts);
            let before = filled;
            let mut decode = self.decoder(&parts, others_help, pattern.jumps);
            for Part { offset: start, len, data } in &parts {
                let len = usize::try_from(*len).ok();
                let part = len.and_then(|len| buf.get_mut(filled..)?.get_mut(..len));
                let Some(part) = part.filter(|_| *start == offset + filled as u64) else {
                    return Err(self.not_mapped(id, offset + filled as u64));
                };
                filled += part.len();
                match data {
                    PartData::Hole => part.fill(0),
                    PartData::Stored(at) => self.blocks.read_image(*at, part)?,
                    PartData::Block(wanted) => {
                        let decoded = decode(wanted)?;
                        let BlockPart { block, slot, start, len, .. } = wanted;
                        part.copy_from_slice(block::slice(block, &decoded, *start, *len)?);
                        if pattern.uses_up {
                            self.blocks.cache.use_up(slot, *len, decoded.len() as u64);
                        }
                    }
                }
            }
            if filled == before {
                return Err(self.not_mapped(id, from));
            }
        }
        Ok(())
    }

    /// Hints at the next reads of the image, if there are several ranges.
    fn announce(&self, parts: &[Part]) {
        let stored = |part: &Part| match &part.data {
            PartData::Hole => None,
            PartData::Stored(at) => Some(range_at(*at, part.len)),
            PartData::Block(wanted) if wanted.slot.is_decoded() => None,
            PartData::Block(BlockPart { block, .. }) => Some(block::stored_range(block)),
        };
        if parts.len() > 1 {
            let ranges: Vec<Range<u64>> = parts.iter().filter_map(stored).collect();
            self.blocks.image.will_read(&ranges);
        }
    }

    pub(crate) fn not_mapped(&self, id: InodeId, offset: u64) -> Error {
        Error::corrupt(self.image().name(), format!("byte {offset} of inode {} is not mapped", id.0))
    }

    /// Returns the first parts of a range, and the blocks that were never requested before.
    fn look_up(&self, id: InodeId, range: Range<u64>) -> Result<(Vec<Part>, Vec<BlockRef>)> {
        let (mut parts, mut new) = (Vec::new(), Vec::new());
        let mut decoded_len = 0;
        self.volume.extents(id, range, &mut |extent| {
            let Extent { offset, len, from } = extent;
            let data = match from {
                ExtentFrom::Hole => PartData::Hole,
                ExtentFrom::Stored(at) => PartData::Stored(at),
                ExtentFrom::Block { block, start } => {
                    let slot = self.blocks.cache.slot(&block);
                    let is_new = slot.want(&self.blocks.tally);
                    if is_new {
                        new.push(block);
                    }
                    decoded_len += u64::from(block.decoded_len);
                    PartData::Block(BlockPart { block, slot, start, len, is_new })
                }
            };
            parts.push(Part { offset, len, data });
            let is_enough = parts.len() >= BLOCKS_AT_ONCE || decoded_len >= DECODED_LEN_AT_ONCE;
            if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok((parts, new))
    }

    /// Call the function for each of `parts` in order.
    fn decoder<'a>(
        &'a self,
        parts: &[Part],
        others_help: bool,
        jumps: bool,
    ) -> impl FnMut(&BlockPart) -> Result<Arc<Decoded>> + 'a {
        let blocks = || parts.iter().filter_map(Part::block);
        let wanted: Vec<WantedBlock> = blocks().map(|part| (part.block, Arc::clone(&part.slot))).collect();
        let many = wanted.len() > 1 && others_help && self.are_worth_help(&wanted);
        // A small read hardly needs the second of two blocks it spans: merging reads does not pay.
        let by_beginnings = jumps && wanted.len() <= 2 && blocks().any(|part| part.prefix().is_some());
        let mut at_once = match wanted.len() {
            0 | 1 => Vec::new(),
            _ if by_beginnings => Vec::new(),
            _ if many => {
                self.decode_by_others(&wanted[1..]);
                Vec::new()
            }
            _ => self.blocks.get_all(&wanted),
        }
        .into_iter();
        move |part| {
            let BlockPart { block, slot, is_new, .. } = part;
            let prefix = if jumps { part.prefix() } else { None };
            let one = |decoders: &mut Decoders| match &prefix {
                Some(prefix) if *is_new => self.blocks.get_no_more(slot, prefix, decoders),
                // A block requested again is likely to be requested a third time.
                Some(prefix) => self.blocks.get_whole_for(slot, prefix, block, decoders),
                None => self.blocks.get(slot, block, decoders),
            };
            at_once.next().unwrap_or_else(|| self.blocks.decoders.with(one))
        }
    }

    fn are_worth_help(&self, wanted: &[WantedBlock]) -> bool {
        let missing = wanted.iter().filter(|(_, slot)| !slot.is_decoded());
        missing.map(|(block, _)| u64::from(block.decoded_len)).sum::<u64>() >= HELP_LEN_MIN
    }

    fn next_data(&self, id: InodeId, len: u64, offset: u64) -> Result<Option<Range<u64>>> {
        let mut found: Option<Range<u64>> = None;
        if offset >= len {
            return Ok(None);
        }
        self.volume.extents(id, offset..len, &mut |extent| {
            match (&mut found, extent.from) {
                (None, ExtentFrom::Hole) => return ControlFlow::Continue(()),
                (Some(_), ExtentFrom::Hole) => return ControlFlow::Break(()),
                (Some(run), _) => run.end = extent.range().end,
                (None, _) => found = Some(extent.range()),
            }
            let long = found.as_ref().is_some_and(|run| run.end - run.start >= RUN_LEN_MAX);
            if long { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(found)
    }
}

/// Open file, read by position from any thread, or in order through `std::io::Read` and `Seek`.
///
/// Each reader tracks its access pattern for read-ahead, so every user of a file should open a
/// separate one.
pub struct FileReader {
    pub(crate) engine: Arc<ReadEngine>,
    pub(crate) id: InodeId,
    pub(crate) len: u64,
    position: u64,
    sequence: Mutex<Sequence>,
}

impl FileReader {
    /// Returns the file's inode.
    pub fn id(&self) -> InodeId {
        self.id
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns true if the file is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads up to `buf.len()` bytes from `offset`; fewer only at the end of the file.
    ///
    /// Errors: `Corrupt`, `Io`, for this read only: other reads of the file may succeed.
    pub fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let len = left(self.len, offset).min(buf.len() as u64) as usize;
        if len > 0 {
            let pattern = self.pattern(offset, len as u64);
            self.engine.fill(self.id, offset, &mut buf[..len], pattern)?;
        }
        Ok(len)
    }

    /// Returns the next run of data at or after `offset`; `None` if only holes follow. Long runs
    /// are reported in parts.
    ///
    /// Errors: `Corrupt`, `Io`.
    pub fn next_data(&self, offset: u64) -> Result<Option<Range<u64>>> {
        self.engine.next_data(self.id, self.len, offset)
    }

    pub(crate) fn will_read(&self, ranges: &[Range<u64>]) {
        let mut stored = Vec::new();
        for range in ranges {
            let range = range.start..range.end.min(self.len);
            // A hint reports no errors: the read does.
            let _ = self.engine.volume.extents(self.id, range, &mut |extent| {
                match extent.from {
                    ExtentFrom::Hole => {}
                    ExtentFrom::Stored(at) => stored.push(range_at(at, extent.len)),
                    ExtentFrom::Block { block, .. } => stored.push(block::stored_range(&block)),
                }
                if stored.len() < HINTS_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
        }
        self.engine.blocks.image.will_read(&stored);
    }

    fn pattern(&self, offset: u64, len: u64) -> ReadPattern {
        let mut sequence = self.sequence();
        let ahead = sequence.read(offset, len, self.len, self.engine.window_max());
        let jumps = sequence.jumps();
        let uses_up = self.engine.options.is_kept_by_readers && !jumps;
        ReadPattern { ahead: Some(ahead), others_help: true, jumps, uses_up }
    }

    pub(crate) fn sequence(&self) -> std::sync::MutexGuard<'_, Sequence> {
        self.sequence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens another reader of the same file at the same position, with a separate access pattern.
impl Clone for FileReader {
    fn clone(&self) -> Self {
        let sequence = Mutex::new(*self.sequence());
        FileReader { engine: Arc::clone(&self.engine), sequence, ..*self }
    }
}

impl io::Read for FileReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = self.read_at(self.position, buf)?;
        self.position += len as u64;
        Ok(len)
    }
}

impl io::Seek for FileReader {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        let target = match to {
            io::SeekFrom::Start(offset) => Some(offset),
            io::SeekFrom::End(distance) => self.len.checked_add_signed(distance),
            io::SeekFrom::Current(distance) => self.position.checked_add_signed(distance),
        };
        self.position = target.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.position)
    }
}

/// Content ids are the inode ids that [`ReadEngine::load_tree`] assigns.
impl Contents for ReadEngine {
    fn open(&self, id: ContentId) -> Result<Box<dyn ContentReader + '_>> {
        let id = InodeId(id.0);
        Ok(Box::new(EngineReader { engine: self, id, len: self.file_len(id)? }))
    }

    fn names_files(&self) -> bool {
        false
    }

    fn check_unchanged(&self) -> Result<()> {
        self.image().check_unchanged()
    }

    /// `None` for a file that cannot be read: reading it reports the error.
    fn place(&self, id: ContentId) -> Option<Box<[u64]>> {
        let (id, mut words, mut is_long) = (InodeId(id.0), Vec::new(), false);
        let len = self.file_len(id).ok()?;
        let extents = self.volume.extents(id, 0..len, &mut |extent| {
            let from = match extent.from {
                ExtentFrom::Hole => [0; 4],
                ExtentFrom::Stored(at) => [1, at, 0, 0],
                ExtentFrom::Block { block, start } => [
                    2,
                    block.offset,
                    u64::from(block.stored_len) << 32 | u64::from(start),
                    coding_word(&block),
                ],
            };
            words.extend([extent.offset, extent.len]);
            words.extend(from);
            is_long = words.len() > PLACE_WORDS_MAX;
            if is_long { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        extents.ok().filter(|()| !is_long).map(|()| words.into())
    }
}

/// Longest description of a file's location, in words of eight bytes.
const PLACE_WORDS_MAX: usize = 6 << 10;

fn coding_word(block: &BlockRef) -> u64 {
    let algorithm = Algorithm::ALL.iter().position(|&other| Some(other) == block.algorithm);
    let algorithm = algorithm.map_or(0, |index| index as u64 + 1);
    let is_exact = u64::from(block.decodes_to == DecodedLen::Exactly);
    algorithm << 34 | is_exact << 33 | u64::from(block.zero_padded) << 32 | u64::from(block.decoded_len)
}

struct EngineReader<'a> {
    engine: &'a ReadEngine,
    id: InodeId,
    len: u64,
}

impl ContentReader for EngineReader<'_> {
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if end_of(offset, buf.len() as u64) > self.len {
            return Err(Error::failed(format!(
                "wanted {} bytes at {offset} of a file of {}",
                buf.len(),
                self.len
            )));
        }
        self.engine.fill(self.id, offset, buf, ReadPattern::default())
    }

    fn next_data(&mut self, offset: u64) -> Result<Option<Range<u64>>> {
        self.engine.next_data(self.id, self.len, offset)
    }
}
