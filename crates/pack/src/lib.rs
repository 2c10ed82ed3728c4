//! The pack engine: orders files, reads their data, shares what is the same, compresses on all
//! cores and writes in one fixed order.
//!
//! Owns everything between a format's [`packfs_format::Plan`] and its metadata. Invariant: the
//! image depends on the tree, the plan and the contents alone, never on the number of threads or
//! the order in which they finish. It does not know any format: what lies around the data comes
//! from [`packfs_format::Layout::lay_out`].
#![forbid(unsafe_code)]

mod base;
mod blocks;
mod by_class;
mod class;
mod clusters;
mod conductor;
mod context;
mod coverage;
mod data_row;
mod destination;
mod effort;
mod engine;
mod failures;
mod gain;
mod limits;
mod losses;
mod noise;
mod order;
mod output;
mod parallel;
mod probe;
mod queue;
mod report;
mod room;
mod runs;
mod same;
mod seen;
mod spans;
mod spool;
mod stages;
mod twins;
mod verify;
mod witness;

pub use base::{Base, Proof};
pub use by_class::ClassRow;
pub use class::{Class, Machine};
pub use destination::temporary_folder;
pub use effort::Effort;
pub use gain::Gain;
pub use order::Order;
pub use report::{PackReport, Stored};
pub use room::Room;
pub use verify::{Verify, Written, WrittenFile};

use packfs_core::{Contents, NodeId, Progress, Result, Tree};
use packfs_format::{AnyLayout, PackFormat};
use stages::Packing;
use std::path::Path;
use std::sync::Arc;

/// How to pack, besides what the format decides.
#[derive(Clone, Debug)]
pub struct PackOptions {
    /// Worker threads; 0: one for each processor.
    pub jobs: usize,
    /// Most memory to take, in bytes, the tree included; `None`: what the control groups of this
    /// process allow. Short memory costs workers, never a different image.
    pub memory: Option<u64>,
    /// Bytes before the image in the output file; those of an existing file are kept, others are
    /// zeros.
    pub offset: u64,
    /// Most bytes that the image may have.
    pub room: Room,
    /// Whether a file that cannot be read is stored empty and reported, instead of ending the work.
    pub keep_going: bool,
    /// Whether what the format cannot hold may be lost.
    pub lossy: bool,
    /// Whether the image is on the disk before it gets its name.
    pub sync: bool,
    /// In which order small files are placed.
    pub order: Order,
    /// What is used first, in that order: its data and metadata lie in front, apart from all
    /// others.
    pub first_used: Vec<NodeId>,
    /// One priority a node, instead of that order: higher ones are placed first, equal ones as the
    /// tree goes.
    pub priorities: Option<Vec<i16>>,
    /// What compressing has to save, or data is stored as it is.
    pub min_gain: Gain,
    /// How much work a block is worth.
    pub effort: Effort,
    /// An earlier image whose compressed blocks are copied where they hold what the new one is to
    /// hold.
    pub base: Option<Arc<Base>>,
    /// Who looks at the image before it gets its name. Then hashes of contents are taken as they
    /// are read.
    pub verify: Option<Arc<dyn Verify>>,
}

impl Default for PackOptions {
    fn default() -> Self {
        PackOptions {
            jobs: 0,
            memory: None,
            offset: 0,
            room: Room::default(),
            keep_going: false,
            lossy: false,
            sync: true,
            order: Order::default(),
            first_used: Vec::new(),
            priorities: None,
            min_gain: Gain::default(),
            effort: Effort::default(),
            base: None,
            verify: None,
        }
    }
}

/// Packs a tree into an image file.
///
/// The image is written beside `output` and renamed when it is complete, so a failure leaves what
/// was there before. A block device is written in place. A fifo, or standard output if `output` is
/// `-`, gets the image once it is complete; until then it is kept in [`temporary_folder`]. Where
/// the format keeps data in files of their own ([`AnyLayout::data_files`]), those are written in
/// the same way.
///
/// Errors: `Failed` for what the format cannot hold (unless [`PackOptions::lossy`]), `Io` and
/// `Failed` from reading contents and writing the image, `Cancelled`.
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
        AnyLayout::Blocks(layout) => packing.run(layout, &[]),
        AnyLayout::Clusters { layout, data_files } => packing.run(layout, data_files),
    }
}
