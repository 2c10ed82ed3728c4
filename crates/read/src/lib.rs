//! The read engine: turns the extents that a volume maps into bytes, on all cores.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! One engine serves every format, because formats only map bytes of files to blocks of the image.
//! It offers three ways to read, each of which decodes a block as seldom as possible: random access
//! ([`ReadEngine::open_file`], through a cache), files in a given order
//! ([`ReadEngine::in_file_order`], decoding ahead), and everything in disk order
//! ([`ReadEngine::in_disk_order`], each block once). Memory is bounded in all of them. The engine
//! writes nothing, and no format is known here.
#![forbid(unsafe_code)]

mod ahead;
mod as_image;
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
mod load_ahead;
mod measure;
mod neighbours;
mod page_neighbours;
mod piece_sink;
mod prefetch;
mod rows;
mod sequence;
mod slot;

pub use as_image::FileAsImage;
pub use block::SharedBytes;
pub use counters::{CountedImage, Counters};
pub use engine::{ReadEngine, ReadOptions};
pub use file::FileReader;
pub use file_order::Piece;
pub use load::{Faults, LoadedVolume};
pub use page_neighbours::PageNeighbours;
pub use piece_sink::PieceSink;

use packfs_format::InodeId;

/// A file to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The file.
    pub id: InodeId,
    /// Its length in bytes.
    pub len: u64,
}
