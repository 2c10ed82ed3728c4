//! Which parts of an image a workload needs, file by file: the blocks with its bytes, and the metadata on the way to it.
//!
//! Blocks come from the volume's extents. Where metadata lies is told by the numbers of inodes, which in SquashFS and EROFS are
//! places, and by the order in which packfs writes what has none.

mod erofs;
mod listing;
mod paths;
mod shared;
mod squashfs;
mod stream;
mod tables;

use packfs::{ImagePath, Opened, Result};
use paths::Paths;
use stream::Stream;
use tables::Tables;

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
    /// Metadata that mounting has read, in the order it was.
    pub(crate) mounted: Vec<Place>,
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
        let mounted = tables.inode(volume.root(), 0, &[]);
        let mut walked = Paths::new(volume, &tables, &stream);
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            files.extend(walked.file(path)?);
        }
        let packed = (stream.decoded, stream.stored);
        Ok(Pattern { format: volume.format().name.into(), mounted, files, packed })
    }
}
