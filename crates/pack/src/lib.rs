//! The pack engine: orders files, reads and deduplicates their data, compresses on all cores, and
//! writes in one fixed order.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! Handles everything between a format's [`packfs_format::Plan`] and its metadata. Invariant: the
//! image depends on the tree, the plan and the contents, never on the number of threads or the
//! order in which they finish. No format is known here: everything around the data comes from
//! [`packfs_format::Layout::lay_out`].
#![forbid(unsafe_code)]

mod base;
mod blocks;
mod by_class;
mod class;
mod clusters;
mod conductor;
mod context;
mod copy;
mod coverage;
mod data_row;
mod destination;
mod digest_log;
mod duplicates;
mod effort;
mod engine;
mod failures;
mod file_comparer;
mod gain;
mod index;
mod limits;
mod losses;
mod noise;
mod order;
mod output;
mod parallel;
mod probe;
mod queue;
mod report;
mod runs;
mod seen;
mod size_limit;
mod spans;
mod spool;
mod stages;
mod survey;
mod verify;

pub use base::{Base, Proof};
pub use by_class::ClassRow;
pub use class::{Class, Machine};
pub use destination::temporary_folder;
pub use effort::Effort;
pub use gain::Gain;
pub use limits::group_memory_limit;
pub use output::Output;
pub use packfs_core::Order;
pub use report::{PackReport, Section, StageTime, Stored, WalkReads};
pub use size_limit::{SizeLimit, unwritten};
pub use survey::{Measured, Survey};
pub use verify::{Verify, Written, WrittenFile};

use packfs_core::{Contents, Error, NodeId, Progress, Result, Tree};
use packfs_format::{AnyLayout, PackFormat};
use stages::Packing;
use std::path::Path;
use std::sync::Arc;

/// Options of packing that do not depend on the format.
#[derive(Clone, Debug)]
pub struct PackOptions {
    /// Worker threads; 0 means one per CPU.
    pub jobs: usize,
    /// Memory limit in bytes, the tree included; `None` means the limit of this process's control
    /// groups. Short memory reduces the number of workers, and never changes the image.
    pub memory: Option<u64>,
    /// Offset of the image in the output file; bytes before it are kept in an existing file and
    /// zeros in a new one.
    pub offset: u64,
    /// Limit of the image's length.
    pub size_limit: SizeLimit,
    /// Survey that records the space that the image takes, even if it is too long.
    pub survey: Option<Arc<Survey>>,
    /// Set to store unreadable files empty and report them, instead of failing.
    pub keep_going: bool,
    /// Set to accept the loss of attributes that the format cannot represent.
    pub lossy: bool,
    /// Set to sync the image to disk before it is renamed into place.
    pub sync: bool,
    /// Order of small files.
    pub order: Order,
    /// Files placed first, in this order: their data and metadata precede all others and share no
    /// block with them.
    pub first_used: Vec<NodeId>,
    /// Priority of each node, instead of `order`: higher ones are placed first, equal ones in tree
    /// order.
    pub priorities: Option<Vec<i16>>,
    /// Least saving for which data is stored compressed.
    pub min_gain: Gain,
    /// Effort spent on compressing a block.
    pub effort: Effort,
    /// Set to end the packed stream of clusters at a whole block, so that every other stream can
    /// follow it when images are merged.
    pub fills_stream: bool,
    /// Set to write an image of metadata alone, whose only device is the file that the tree was
    /// read from. The image followed by this file is an image, too.
    pub index_only: bool,
    /// Earlier image whose compressed blocks are reused for unchanged data.
    pub base: Option<Arc<Base>>,
    /// Verifies the finished image before it is renamed into place. If set, contents are hashed
    /// while they are read.
    pub verify: Option<Arc<dyn Verify>>,
}

impl Default for PackOptions {
    fn default() -> Self {
        PackOptions {
            jobs: 0,
            memory: None,
            offset: 0,
            size_limit: SizeLimit::default(),
            survey: None,
            keep_going: false,
            lossy: false,
            sync: true,
            order: Order::default(),
            first_used: Vec::new(),
            priorities: None,
            min_gain: Gain::default(),
            effort: Effort::default(),
            fills_stream: false,
            index_only: false,
            base: None,
            verify: None,
        }
    }
}

/// Packs a tree into an image file.
///
/// The image is written to a temporary file beside `output` and renamed when it is complete, so a
/// failure leaves an existing file unchanged. A block device is written in place. A FIFO, or
/// standard output if `output` is `-`, gets the image once it is complete; until then it is kept in
/// [`temporary_folder`]. Separate data files of the format ([`AnyLayout::data_files`]) are written
/// in the same way.
///
/// Errors: `Failed` for what the format cannot hold (unless [`PackOptions::lossy`]), `Io` and
/// `Failed` from reading contents and writing the image, `Cancelled`; for an index `Unsupported`
/// without a device, and for files that are not stored in whole blocks.
pub fn pack(
    tree: &Tree,
    contents: &dyn Contents,
    format: &dyn PackFormat,
    output: &Path,
    options: &PackOptions,
    progress: &dyn Progress,
) -> Result<PackReport> {
    let packing = Packing { tree, contents, format, output, options, progress };
    match format.layout() {
        AnyLayout::Clusters { layout, data_files: [device] } if options.index_only => {
            packing.index(layout, device)
        }
        _ if options.index_only => {
            Err(Error::unsupported("request", "an index needs a format with one device"))
        }
        AnyLayout::Blocks(layout) => packing.run(layout, &[]),
        AnyLayout::Clusters { layout, data_files } => packing.run(layout, data_files),
    }
}
