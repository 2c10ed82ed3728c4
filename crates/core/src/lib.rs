//! The words of packfs: what is packed, read, moved and reported, and nothing that does it.
//!
//! Owns the types that every other crate speaks in: [`Tree`] (a whole file hierarchy in memory), [`Volume`] (an opened
//! image), [`Image`] (bytes at an offset), [`Plan`] and [`Placed`] (what the pack engine is asked for and what it
//! answers), [`Format`], [`Error`], [`Progress`]. No format, no codec, no thread, no operating-system call, no unsafe.
#![forbid(unsafe_code)]

pub mod check;
pub mod codec;
mod coding;
mod contained;
mod container;
mod content;
mod content_hash;
mod error;
mod escape;
mod extents;
mod facts;
mod format;
mod goal;
mod image;
mod limits;
mod loss;
mod meta;
mod name_order;
mod path;
mod plan;
mod progress;
mod similar;
mod space;
mod tree;
mod tree_builder;
mod volume;

pub use coding::Coding;
pub use contained::ContainedFiles;
pub use container::Container;
pub use content::{ContentId, ContentReader, Contents, Held};
pub use content_hash::{ContentHash, ContentHasher, Witnessed};
pub use error::{Error, ErrorKind, Result, ResultExt};
pub use escape::{acts_on_terminals, escaped, printable};
pub use extents::Extents;
pub use facts::{Fact, FactValue, Facts, Finding, Severity, SpaceOwner};
pub use format::{DataFile, Format, Magic, OptionRow, PackFormat, PackSettings, Rung, Wrapping};
pub use goal::Goal;
pub use image::Image;
pub use limits::{LIMITS, Limit, LimitRow, Limits, Meter, RATIO_FLOOR};
pub use loss::{Loss, Losses};
pub use meta::{DeviceNumber, FileType, Meta, Owner, Timestamp, Xattrs};
pub use name_order::{NameOrder, SortedDirs};
pub use path::{ImagePath, IntoImagePath, Name};
pub use plan::{
    BlockSharing, Cluster, ClusterCut, ClusterForm, Cut, FileForm, FileJob, FilePlace, Incompressible,
    InlineTail, InlineTails, Lead, Placed, PlacedFile, Plan, Recipe, Section, SparseCut, StoredBlock, Tail,
    TailPlace,
};
pub use progress::{Progress, Silent, Stage, WithoutWarnings};
pub use similar::MostSimilar;
pub use space::space_owners;
pub use tree::{Entry, Node, NodeId, NodeKind, Tree, Walk, XattrsId};
pub use tree_builder::{BuildId, TreeBuilder};
pub use volume::{
    DirCursor, DirEntry, Extent, ExtentFrom, InnerImage, Inode, InodeId, InodeKind, Volume,
    block_ref::BlockRef, block_ref::DecodedLen,
};
