//! The frame that every format is built in.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! Traits: [`Format`] (finds and opens images), [`Volume`] (an opened image), [`PackFormat`] (makes
//! one), [`Container`] (an image that holds other images). Between a format and the pack engine:
//! [`Plan`] and [`Placed`]. Parts that formats share: [`check`], [`Extents`], [`space_owners`],
//! [`NameOrder`], [`BlockCache`], [`NameIndex`], [`Budget`], [`units`], [`disk!`], [`options!`],
//! [`faults!`].
//! No format, no thread, no unsafe code.
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
mod disk;
mod extent;
mod extents;
mod facets;
mod facts;
mod faults;
mod format;
mod hierarchy;
mod info;
mod inode;
mod kernel_reads;
mod layers;
mod name_index;
mod name_order;
mod on_disk;
mod opening;
mod options;
mod pack_format;
mod plan;
mod space;
mod stored;
pub mod units;
mod volume;
#[cfg(feature = "watch")]
pub mod watch;

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
pub use disk::{Budget, filled, read_structure, split_structure, structure, structures};
pub use extent::{Extent, ExtentFrom, StoredExtent};
pub use extents::Extents;
pub use facets::{
    Caching, Check, Directories, FileDigests, Health, InnerImage, Inside, ObjectFiles, Space, Storage,
};
pub use facts::{Fact, FactValue, Facts, Finding, Severity, SpaceOwner};
pub use faults::{FaultPlace, TRUNCATED};
pub use format::{Format, Merging};
pub use hierarchy::{
    DirNames, SeenDirs, check_claims, corrupt, entry_name, image_words, node_kind, read_entries,
};
pub use info::{FormatInfo, LinuxDriver, Magic, Makes, PackSettings, Rung};
pub use inode::{DirCursor, DirEntry, Inode, InodeId, InodeKind};
pub use kernel_reads::{KernelBlock, KernelCache, KernelRead, KernelReads};
pub use layers::{Layer, Layered};
pub use name_index::NameIndex;
pub use name_order::{NameOrder, SortedDirs};
pub use on_disk::{DiskField, OnDisk};
pub use opening::{Object, Objects, OpenOption, Opening, PartitionTable, not_given, too_many_given};
pub use options::{OptionField, OptionRow, SWITCH, Values, lacks_in_kernel, unknown_option};
pub use pack_format::{AnyLayout, DataFile, Layout, PackFormat, Wrapping};
pub use plan::{DataKind, FileJob, FilePlace, Placed, Plan, Section};
pub use space::{Claims, space_owners};
pub use stored::{AnyStored, StoredBlocks, StoredClusters};
pub use volume::Volume;
