//! Sources of a tree to pack (a directory, a tar archive, a manifest, another tree), and their
//! shaping.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! Filters, prefixes, owners, modes and times ([`Shape`]) work the same for all sources. A source
//! provides names and metadata first, and contents on request.
#![forbid(unsafe_code)]

mod any_archive;
mod archive;
mod archive_kind;
mod cpio;
mod decimal;
mod dir;
mod dir_contents;
mod file_contexts;
mod followed;
mod joined_contents;
mod listed;
mod manifest;
mod manifest_tree;
mod mode;
mod order;
mod rules;
mod selection;
mod shape;
mod shaper;
mod stack;
mod tar;
mod tops;
mod trace;
mod whiteouts;
mod zip;

pub use any_archive::{archive_kind, load_archive, looks_like_archive};
pub use archive::{Compression, TarInput, compression_of, decoded_beginning, decoded_file, decoded_stream};
pub use archive_kind::ArchiveKind;
pub use dir::{Listed, Prober, load_dir, load_entries, load_listed, load_merged, survey_dir};
pub use file_contexts::FileContexts;
pub use joined_contents::JoinedContents;
pub use listed::{ChangeKind, ListedChange, ListedEntry, Surveyed};
pub use manifest::{
    Additions, looks_like_entries, looks_like_manifest, write_manifest, write_manifest_below,
};
pub use manifest_tree::{load_manifest, load_manifest_within};
pub use mode::ModeChange;
pub use order::OrderFile;
pub use selection::Selection;
pub use shape::{IdMap, Shape, TarReading};
pub use shaper::shape_tree;
pub use stack::{LowerDirs, OF_LOWER_LAYER, has_links_below, stack, with_linked_files};
pub use tar::{holds_container_image, is_empty_tar, load_tar, load_tar_within, looks_like_tar};
pub use trace::Trace;
pub use whiteouts::{Whiteouts, with_origins};

use packfs_core::{Contents, ImagePath, Tree};
use std::sync::Arc;

/// A source that was scanned.
pub struct Loaded {
    /// Names and metadata, shaped.
    pub tree: Tree,
    /// Contents of the tree's files.
    pub contents: Arc<dyn Contents>,
    /// Findings for the user.
    pub notes: Notes,
}

/// Findings of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notes {
    /// Names excluded by filters; an excluded directory counts once.
    pub left_out: u64,
    /// Error messages of files that were skipped because of [`Shape::keep_going`].
    pub unreadable: Vec<String>,
    /// Globs of the shape without effect.
    pub unused_globs: Vec<String>,
    /// AUFS whiteouts kept as files without being requested.
    pub kept_marks: u64,
    /// Directories below the root that nothing in the archive or layers describes.
    pub implied: u64,
    /// Symbolic links of lower layers that a directory replaces.
    pub replaced_links: Vec<ImagePath>,
}
