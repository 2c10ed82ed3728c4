//! The frame that every format is built in.
//!
//! Traits: [`Format`] (finds and opens images), [`Volume`] (an opened image), [`PackFormat`] (makes
//! one), [`Container`] (an image that holds other images). Between a format and the pack engine:
//! [`Plan`] and [`Placed`]. Parts that formats share: [`check`], [`Extents`], [`space_owners`],
//! [`NameOrder`], [`BlockCache`], [`NameIndex`], [`options!`], [`faults!`]. No format, no thread,
//! no unsafe code.
#![forbid(unsafe_code)]
// Figures of images come through here: what is computed from them must not overflow.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod block_cache;
mod blocks;
mod capabilities;
pub mod check;
mod clusters;
mod coding;
mod contained;
mod container;
mod crc32c;
mod extents;
mod facts;
mod faults;
mod format;
mod hierarchy;
mod kernel_reads;
mod name_index;
mod name_order;
mod opening;
mod options;
mod plan;
mod space;
mod stored;
mod volume;

pub use block_cache::BlockCache;
pub use blocks::{
    BlockForm, BlockPlan, BlockSharing, BlockStorage, Blocks, BlocksPlaced, Incompressible, Lead, SharedTail,
    StoredBlock,
};
pub use capabilities::{Capabilities, Links, NO_XATTRS, Times, XattrLoss};
pub use clusters::{
    Cluster, ClusterForm, ClusterPlan, ClusterRecipe, ClusterStorage, Clusters, ClustersPlaced, FileForm,
    InlineTail, InlineTails, PlacedFile, Recipe, SparsePlan, Tail, TailPlace,
};
pub use coding::Coding;
pub use contained::ContainedFiles;
pub use container::Container;
pub use crc32c::crc32c;
pub use extents::Extents;
pub use facts::{Fact, FactValue, Facts, Finding, Severity, SpaceOwner};
pub use faults::{FaultPlace, TRUNCATED};
pub use format::{
    AnyLayout, DataFile, Format, FormatInfo, Layout, LinuxDriver, Magic, Makes, Merging, PackFormat,
    PackSettings, Rung, Wrapping,
};
pub use hierarchy::{DirNames, node_kind};
pub use kernel_reads::{KernelBlock, KernelCache, KernelRead, KernelReads};
pub use name_index::NameIndex;
pub use name_order::{NameOrder, SortedDirs};
pub use opening::{Object, Objects, OpenOption, Opening, PartitionTable};
pub use options::{OptionField, OptionRow, SWITCH, Values, lacks_in_kernel, unknown_option};
pub use plan::{DataKind, FileJob, FilePlace, Placed, Plan, Section};
pub use space::{Claims, space_owners};
pub use stored::{AnyStored, StoredBlocks, StoredClusters};
pub use volume::{
    DirCursor, DirEntry, Extent, ExtentFrom, InnerImage, Inode, InodeId, InodeKind, StoredExtent, Volume,
};
