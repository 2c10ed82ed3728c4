//! Random access to one file, through the cache of decoded blocks.

use crate::block;
use crate::engine::ReadEngine;
use packfs_core::{
    ContentId, ContentReader, Contents, Error, Extent, ExtentFrom, InodeId, InodeKind, Result,
};
use std::io;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Longest run of data that is reported at a time, so that asking costs the same in small and large files.
const RUN_LEN_MAX: u64 = 64 << 20;

impl ReadEngine {
    /// Opens a regular file.
    ///
    /// Errors: `Failed` for anything else, `Corrupt` for a damaged inode.
    pub fn open_file(self: &Arc<Self>, id: InodeId) -> Result<FileReader> {
        let len = self.file_len(id)?;
        Ok(FileReader { engine: Arc::clone(self), id, len, position: 0 })
    }

    fn file_len(&self, id: InodeId) -> Result<u64> {
        match self.volume.inode(id)?.kind {
            InodeKind::File { len } => Ok(len),
            other => Err(Error::failed(format!("is a {}, not a file", other.file_type().word()))),
        }
    }

    /// Fills `buf` from `offset` of a file; the file is at least that long.
    pub(crate) fn fill(&self, id: InodeId, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut outcome = Ok(());
        let end = offset.saturating_add(buf.len() as u64);
        let mut filled = 0;
        self.volume.extents(id, offset..end, &mut |extent| {
            let part = usize::try_from(extent.len).ok().and_then(|len| buf.get_mut(filled..)?.get_mut(..len));
            outcome = match part {
                Some(part) if extent.offset == offset + filled as u64 => {
                    filled += part.len();
                    self.fill_extent(&extent, part)
                }
                _ => Err(Error::failed("internal: an extent outside of the range asked for")),
            };
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if outcome.is_ok() && filled < buf.len() {
            let at = offset + filled as u64;
            return Err(Error::failed(format!("internal: no extent covers byte {at} of a file")));
        }
        outcome
    }

    fn fill_extent(&self, extent: &Extent, part: &mut [u8]) -> Result<()> {
        match &extent.from {
            ExtentFrom::Hole => part.fill(0),
            ExtentFrom::Stored(offset) => self.image.read_exact_at(*offset, part)?,
            ExtentFrom::Block { block, start } => {
                let slot = self.cache.slot(block);
                let bytes = self.decoders.with(|decoders| slot.get(&*self.image, decoders, &self.buffers))?;
                part.copy_from_slice(block::slice(block, &bytes, *start, extent.len)?);
            }
        }
        Ok(())
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
                (Some(run), _) => run.end = extent.offset.saturating_add(extent.len),
                (None, _) => found = Some(extent.offset..extent.offset.saturating_add(extent.len)),
            }
            let long = found.as_ref().is_some_and(|run| run.end - run.start >= RUN_LEN_MAX);
            if long { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(found)
    }
}

/// One file, read by position from any thread, or in order through `std::io::Read` and `Seek`.
#[derive(Clone)]
pub struct FileReader {
    engine: Arc<ReadEngine>,
    id: InodeId,
    len: u64,
    position: u64,
}

impl FileReader {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads up to `buf.len()` bytes from `offset`; fewer only at the end of the file.
    pub fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let len = self.len.saturating_sub(offset).min(buf.len() as u64) as usize;
        if len > 0 {
            self.engine.fill(self.id, offset, &mut buf[..len])?;
        }
        Ok(len)
    }
}

impl io::Read for FileReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = self.read_at(self.position, buf).map_err(io::Error::other)?;
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

/// Content ids are inode ids, as [`ReadEngine::load_tree`] gives them out.
impl Contents for ReadEngine {
    fn open(&self, id: ContentId) -> Result<Box<dyn ContentReader + '_>> {
        let id = InodeId(id.0);
        Ok(Box::new(EngineReader { engine: self, id, len: self.file_len(id)? }))
    }
}

struct EngineReader<'a> {
    engine: &'a ReadEngine,
    id: InodeId,
    len: u64,
}

impl ContentReader for EngineReader<'_> {
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if offset.saturating_add(buf.len() as u64) > self.len {
            return Err(Error::failed(format!(
                "wanted {} bytes at {offset} of a file of {}",
                buf.len(),
                self.len
            )));
        }
        self.engine.fill(self.id, offset, buf)
    }

    fn next_data(&mut self, offset: u64) -> Result<Option<Range<u64>>> {
        self.engine.next_data(self.id, self.len, offset)
    }
}
