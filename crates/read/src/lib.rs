//! The read engine: turns the extents that a volume maps into bytes, on all cores.
//!
//! One engine serves every format, because formats only say which block of the image holds which
//! bytes of which file. It offers three ways to read, each decoding a block as seldom as it can: at
//! random ([`ReadEngine::open_file`], through a cache), files in a given order
//! ([`ReadEngine::in_file_order`], decoding ahead), and everything in the order of the disk
//! ([`ReadEngine::in_disk_order`], each block once). Memory is bounded in all of them. It writes
//! nothing and knows no format.
#![forbid(unsafe_code)]

mod ahead;
mod as_image;
mod beside;
mod block;
mod blocks;
mod buffers;
mod cache;
mod counters;
mod disk_order;
mod engine;
mod file;
mod file_order;
mod load;
mod measure;
mod neighbours;
mod piece_sink;
mod prefetch;
mod rows;
mod sequence;
mod slot;

pub use as_image::FileAsImage;
pub use beside::Beside;
pub use block::SharedBytes;
pub use counters::{CountedImage, Counters};
pub use engine::{ReadEngine, ReadOptions};
pub use file::FileReader;
pub use file_order::Piece;
pub use load::{Faults, LoadedVolume};
pub use piece_sink::PieceSink;

use packfs_format::InodeId;

/// A file whose contents are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The file.
    pub id: InodeId,
    /// Its length in bytes.
    pub len: u64,
}
