//! Which parts of an image a workload needs, file by file: the blocks with its bytes, and the metadata on the way to it.
//!
//! Blocks come from the volume's extents. Where metadata lies is known from the numbers of inodes, which in SquashFS and EROFS are
//! places; where a directory's list lies is taken from where its inode lies, since both are written in one order.

use packfs::{ExtentFrom, ImagePath, InodeId, InodeKind, Opened, Result, SpaceOwner, Volume};
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

/// What SquashFS's metadata blocks of 8 KiB compress to, about; only where lists of directories lie follows from it.
const LIST_BLOCK_LEN: u64 = 3 << 10;
/// An inode and its attributes in EROFS, about.
const EROFS_INODE_LEN: u64 = 64;
/// Bytes of file that a row of EROFS's compact index stands for, and its bytes.
const EROFS_ROW: (u64, u64) = (4096, 2);
/// A block of EROFS.
const PAGE: u64 = 4096;

/// A piece of metadata by place; equal ones are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place {
    /// In bytes from the start of the image.
    pub(crate) offset: u64,
    /// How much is read for it, in bytes.
    pub(crate) len: u32,
}

/// A block, or some of it, that a file's bytes are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Touch {
    /// Where it is stored.
    pub(crate) offset: u64,
    /// How much is stored.
    pub(crate) stored: u32,
    /// How much it decodes to.
    pub(crate) decoded: u32,
    /// Which of the file's bytes it has.
    pub(crate) from: u64,
    /// How many of them.
    pub(crate) len: u64,
    /// Whether it has bytes of other files, too.
    pub(crate) shared: bool,
    /// Whether it is encoded.
    pub(crate) encoded: bool,
    /// Where in the stream of tails its bytes are, decoded.
    pub(crate) packed_at: Option<u64>,
}

/// What one file needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilePattern {
    /// Metadata in the order it is needed.
    pub(crate) metadata: Vec<Place>,
    /// Blocks in the order of the file.
    pub(crate) touches: Vec<Touch>,
}

/// What a workload needs of an image.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pattern {
    /// Name of the format.
    pub(crate) format: String,
    /// File by file.
    pub(crate) files: Vec<FilePattern>,
    /// Length of the stream of tails, decoded, and stored; 0 without one.
    pub(crate) packed: (u64, u64),
}

impl Pattern {
    /// Looks up what files need. Files that the image does not have are passed over.
    ///
    /// Errors: those of reading the image.
    pub(crate) fn of(opened: &Opened, paths: &[ImagePath]) -> Result<Pattern> {
        let volume = &**opened.volume();
        let stream = Stream::of(volume)?;
        let tables = Tables::of(volume)?;
        let mut seen = Seen { volume, tables, dirs: HashMap::new() };
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            files.extend(seen.file(path, &stream)?);
        }
        let packed = (stream.decoded, stream.stored);
        Ok(Pattern { format: volume.format_name().into(), files, packed })
    }
}

/// Tails of all files, one behind the other.
#[derive(Default)]
struct Stream {
    /// By place in the image: where in the stream a cluster begins, and how much it decodes to.
    clusters: BTreeMap<u64, (u64, u32)>,
    decoded: u64,
    stored: u64,
}

impl Stream {
    fn of(volume: &dyn Volume) -> Result<Stream> {
        let Some((id, len)) = volume.packed_stream() else { return Ok(Stream::default()) };
        let mut stream = Stream { decoded: len, ..Stream::default() };
        volume.extents(id, 0..len, &mut |extent| {
            let at = match extent.from {
                ExtentFrom::Block { block, start } => {
                    stream.stored += u64::from(block.stored_len);
                    Some((block.offset, extent.offset.saturating_sub(u64::from(start))))
                }
                ExtentFrom::Stored(offset) => {
                    stream.stored += extent.len;
                    Some((offset, extent.offset))
                }
                ExtentFrom::Hole => None,
            };
            if let Some((offset, begins)) = at {
                stream.clusters.insert(offset, (begins, extent.len.min(u64::from(u32::MAX)) as u32));
            }
            ControlFlow::Continue(())
        })?;
        Ok(stream)
    }

    /// Where in the stream the byte at `start` of what is stored at `offset` is, and how long its cluster is.
    fn find(&self, offset: u64, start: u32) -> Option<(u64, u32)> {
        let (_, &(begins, len)) = self.clusters.range(..=offset).next_back()?;
        self.clusters.contains_key(&offset).then_some((begins + u64::from(start), len))
    }
}

/// Where metadata lies.
struct Tables {
    format: &'static str,
    inodes: (u64, u64),
    lists: (u64, u64),
}

impl Tables {
    fn of(volume: &dyn Volume) -> Result<Tables> {
        let space = volume.space()?;
        let of = |word: &str| {
            let owned: Vec<&SpaceOwner> = space.iter().filter(|row| row.owner.starts_with(word)).collect();
            let start = owned.iter().map(|row| row.offset).min().unwrap_or(0);
            let end = owned.iter().map(|row| row.offset + row.len).max().unwrap_or(0);
            (start, end - start)
        };
        Ok(Tables { format: volume.format_name(), inodes: of("inode"), lists: of("director") })
    }

    /// What is read for an inode of a file of so many bytes.
    fn inode(&self, id: InodeId, len: u64) -> Vec<Place> {
        match self.format {
            "squashfs" => {
                let offset = self.inodes.0 + (id.0 >> 16);
                vec![Place { offset, len: LIST_BLOCK_LEN as u32 }]
            }
            _ => {
                let start = id.0.saturating_mul(32);
                let rows = len.div_ceil(EROFS_ROW.0) * EROFS_ROW.1;
                let pages = start / PAGE..=(start + EROFS_INODE_LEN + rows) / PAGE;
                pages.take(64).map(|page| Place { offset: page * PAGE, len: PAGE as u32 }).collect()
            }
        }
    }

    /// What is read to find the name that stands so far into a list of so many bytes.
    fn list(&self, dir: InodeId, listed: u64, fraction: f64) -> Option<Place> {
        match self.format {
            "squashfs" => {
                let (start, len) = self.inodes;
                let part = ((id_offset(dir)) as f64 / len.max(1) as f64).min(1.0);
                let at = part * self.lists.1 as f64 + fraction * listed as f64 * 0.3;
                let block = at as u64 / LIST_BLOCK_LEN;
                let _ = start;
                Some(Place { offset: self.lists.0 + block * LIST_BLOCK_LEN, len: LIST_BLOCK_LEN as u32 })
            }
            // A short one lies beside the inode.
            _ if listed < PAGE => None,
            _ => {
                let page = (listed as f64 * fraction) as u64 / PAGE;
                let inode = dir.0.saturating_mul(32) / PAGE;
                Some(Place { offset: (inode + 1 + page) * PAGE, len: PAGE as u32 })
            }
        }
    }
}

/// Where the metadata block of an inode of SquashFS begins in its table.
fn id_offset(id: InodeId) -> u64 {
    id.0 >> 16
}

/// A directory on the way to some file.
struct DirSeen {
    id: InodeId,
    /// Bytes of its list, about.
    listed: u64,
}

/// What was looked up.
struct Seen<'a> {
    volume: &'a dyn Volume,
    tables: Tables,
    dirs: HashMap<ImagePath, Option<DirSeen>>,
}

impl Seen<'_> {
    fn file(&mut self, path: &ImagePath, stream: &Stream) -> Result<Option<FilePattern>> {
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
        let Some(Some(dir)) = self.dirs.get(&at) else { return Ok(None) };
        pattern.metadata.extend(self.tables.list(dir.id, dir.listed, fraction_of(last.as_bytes())));
        let Some(id) = self.volume.lookup(dir.id, last.as_bytes())? else { return Ok(None) };
        let InodeKind::File { len } = self.volume.inode(id)?.kind else { return Ok(None) };
        pattern.metadata.extend(self.tables.inode(id, len));
        self.touches(id, len, stream, &mut pattern)?;
        Ok(Some(pattern))
    }

    /// Looks a directory up, which costs something the first time; whether it is there.
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
            Some((above, name)) => match self.dirs.get(above) {
                Some(Some(dir)) => {
                    pattern.metadata.extend(self.tables.list(dir.id, dir.listed, fraction_of(name)));
                    self.volume.lookup(dir.id, name)?
                }
                _ => None,
            },
        };
        let seen = match id {
            Some(id) if matches!(self.volume.inode(id)?.kind, InodeKind::Directory) => {
                pattern.metadata.extend(self.tables.inode(id, 0));
                let mut listed = 0;
                self.volume.read_dir(id, packfs::DirCursor::default(), &mut |entry, _| {
                    listed += 12 + entry.name.len() as u64;
                    ControlFlow::Continue(())
                })?;
                Some(DirSeen { id, listed })
            }
            _ => None,
        };
        let found = seen.is_some();
        self.dirs.insert(path.clone(), seen);
        Ok(found)
    }

    fn touches(&self, id: InodeId, len: u64, stream: &Stream, pattern: &mut FilePattern) -> Result<()> {
        self.volume.extents(id, 0..len, &mut |extent| {
            match extent.from {
                ExtentFrom::Hole => {}
                ExtentFrom::Stored(offset) => {
                    let packed = stream.find(offset, 0);
                    pattern.touches.push(Touch {
                        offset,
                        stored: extent.len.min(u64::from(u32::MAX)) as u32,
                        decoded: extent.len.min(u64::from(u32::MAX)) as u32,
                        from: extent.offset,
                        len: extent.len,
                        shared: packed.is_some(),
                        encoded: false,
                        packed_at: packed.map(|(at, _)| at),
                    });
                }
                ExtentFrom::Block { block, start } => {
                    let packed = stream.find(block.offset, start);
                    let decoded = packed.map_or(block.decoded_len, |(_, len)| len);
                    let whole = start == 0 && extent.len >= u64::from(block.decoded_len);
                    pattern.touches.push(Touch {
                        offset: block.offset,
                        stored: block.stored_len,
                        decoded,
                        from: extent.offset,
                        len: extent.len,
                        shared: packed.is_some() || !whole,
                        encoded: block.algorithm.is_some(),
                        packed_at: packed.map(|(at, _)| at),
                    });
                }
            }
            ControlFlow::Continue(())
        })
    }
}

/// How far into a sorted list a name stands, about.
fn fraction_of(name: &[u8]) -> f64 {
    let first = name.first().copied().unwrap_or_default();
    (f64::from(first) - 32.0).clamp(0.0, 96.0) / 97.0
}
