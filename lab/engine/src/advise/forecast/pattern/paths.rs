//! The way to a file, name by name; what was looked up once is known, as the kernel knows it.

use super::stream::Stream;
use super::tables::{Dir, Tables};
use super::{FilePattern, Touch};
use packfs::{ExtentFrom, ImagePath, InodeId, InodeKind, Result, Volume};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// What was looked up.
pub(super) struct Paths<'a> {
    volume: &'a dyn Volume,
    tables: &'a Tables,
    stream: &'a Stream,
    dirs: HashMap<ImagePath, Option<(InodeId, Dir)>>,
}

impl<'a> Paths<'a> {
    /// Nothing yet.
    pub(super) fn new(volume: &'a dyn Volume, tables: &'a Tables, stream: &'a Stream) -> Self {
        Paths { volume, tables, stream, dirs: HashMap::new() }
    }

    /// What a file needs; none if there is no such file.
    ///
    /// Errors: those of reading the image.
    pub(super) fn file(&mut self, path: &ImagePath) -> Result<Option<FilePattern>> {
        let mut pattern = FilePattern::default();
        let mut at = ImagePath::root();
        let names: Vec<_> = path.names().collect();
        let Some((last, parents)) = names.split_last() else { return Ok(None) };
        if !self.enter(&at, None, &mut pattern)? {
            return Ok(None);
        }
        for name in parents {
            let above = at.clone();
            at.push(*name);
            if !self.enter(&at, Some((&above, name.as_bytes())), &mut pattern)? {
                return Ok(None);
            }
        }
        let Some(id) = self.look_up(&at, last.as_bytes(), &mut pattern)? else { return Ok(None) };
        let InodeKind::File { len } = self.volume.inode(id)?.kind else { return Ok(None) };
        pattern.touches = self.touches(id, len)?;
        pattern.metadata.extend(self.tables.inode(id, len, &pattern.touches));
        Ok(Some(pattern))
    }

    /// Looks a directory up, which costs something the first time, but for the root; whether it is there.
    fn enter(
        &mut self,
        path: &ImagePath,
        within: Option<(&ImagePath, &[u8])>,
        pattern: &mut FilePattern,
    ) -> Result<bool> {
        if let Some(known) = self.dirs.get(path) {
            return Ok(known.is_some());
        }
        let id = match within {
            None => Some(self.volume.root()),
            Some((above, name)) => self.look_up(above, name, pattern)?,
        };
        let found = match id {
            Some(id) if matches!(self.volume.inode(id)?.kind, InodeKind::Directory) => {
                if within.is_some() {
                    pattern.metadata.extend(self.tables.inode(id, 0, &[]));
                }
                Some((id, self.tables.dir(self.volume, id)?))
            }
            _ => None,
        };
        let there = found.is_some();
        self.dirs.insert(path.clone(), found);
        Ok(there)
    }

    /// Finds a name in a directory that was entered.
    fn look_up(&self, above: &ImagePath, name: &[u8], pattern: &mut FilePattern) -> Result<Option<InodeId>> {
        let Some(Some((id, dir))) = self.dirs.get(above) else { return Ok(None) };
        pattern.metadata.extend(self.tables.name(*id, dir, name));
        self.volume.lookup(*id, name)
    }

    fn touches(&self, id: InodeId, len: u64) -> Result<Vec<Touch>> {
        let mut touches = Vec::new();
        let short = |len: u64| len.min(u64::from(u32::MAX)) as u32;
        self.volume.extents(id, 0..len, &mut |extent| {
            let (from, len) = (extent.offset, extent.len);
            match extent.from {
                ExtentFrom::Hole => {}
                ExtentFrom::Stored(offset) => {
                    if let Some(blocks) = self.tables.stored(offset, from, len) {
                        touches.extend(blocks);
                        return ControlFlow::Continue(());
                    }
                    let packed = self.stream.find(offset, 0);
                    touches.push(Touch {
                        offset,
                        stored: short(len),
                        decoded: short(len),
                        from,
                        len,
                        shared: packed.is_some(),
                        encoded: false,
                        packed_at: packed.map(|(at, _)| at),
                    });
                }
                ExtentFrom::Block { block, start } => {
                    let packed = self.stream.find(block.offset, start);
                    let whole = start == 0 && len >= u64::from(block.decoded_len);
                    touches.push(Touch {
                        offset: block.offset,
                        stored: block.stored_len,
                        decoded: packed.map_or(block.decoded_len, |(_, len)| len),
                        from,
                        len,
                        shared: packed.is_some() || !whole,
                        encoded: block.algorithm.is_some(),
                        packed_at: packed.map(|(at, _)| at),
                    });
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(touches)
    }
}
