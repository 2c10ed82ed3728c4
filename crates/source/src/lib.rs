//! Whatever yields a tree to pack: a directory, a tar archive, a manifest, another tree; and how it
//! is shaped on the way.
//!
//! Every source feeds one [`Shaper`], so that filters, prefixes, owners, modes and times mean the
//! same for all of them. A source yields names and metadata at once, and contents when they are
//! asked for.
#![forbid(unsafe_code)]

mod decimal;
mod dir;
mod dir_contents;
mod file_contexts;
mod manifest;
mod manifest_tree;
mod mode;
mod order;
mod rewrite;
mod rules;
mod shape;
mod shaper;
mod tar;
mod tops;
mod trace;
mod whiteouts;

pub use dir::{load_dir, load_entries, load_merged};
pub use file_contexts::FileContexts;
pub use manifest::{
    Additions, looks_like_entries, looks_like_manifest, write_manifest, write_manifest_below,
};
pub use manifest_tree::{load_manifest, load_manifest_within};
pub use mode::ModeChange;
pub use order::OrderFile;
pub use shape::{IdMap, Shape};
pub use shaper::{Shaper, shape_tree};
pub use tar::{
    Compression, TarInput, compression_of, is_empty_tar, load_tar, load_tar_within, looks_like_tar,
};
pub use trace::Trace;
pub use whiteouts::Whiteouts;

use packfs_core::{Contents, Tree};
use std::sync::Arc;

/// A source that was looked through.
pub struct Loaded {
    /// Names and metadata, shaped.
    pub tree: Tree,
    /// Where the tree's contents come from.
    pub contents: Arc<dyn Contents>,
    /// What the user should know.
    pub notes: Notes,
}

/// What came up while a source was looked through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Names that filters left out; of a directory that was left out only itself.
    pub left_out: u64,
    /// What could not be read and was left out, with [`Shape::keep_going`]: why.
    pub unreadable: Vec<String>,
    /// Globs of the shape that decided of nothing.
    pub unused_globs: Vec<String>,
    /// Marks of what layers below hold, in the spelling of AUFS, that were kept as files although
    /// nobody asked for that.
    pub kept_marks: u64,
}
