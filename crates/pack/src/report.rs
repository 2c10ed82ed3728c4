//! What came of packing.

use crate::by_class::ClassRow;
use crate::coverage::Coverage;
use packfs_core::{Loss, NodeKind, Stage, Tree};
use packfs_format::{DataKind, Placed, Plan};
use std::path::PathBuf;
use std::time::Duration;

/// What came of packing, in figures.
#[derive(Clone, Debug, Default)]
pub struct PackReport {
    /// Name of the image's format.
    pub format: &'static str,
    /// Name of the Linux driver that mounts the image; `None` if none does.
    pub driver: Option<&'static str>,
    /// Options that would compress the metadata, and the reason; `None` if it is compressed, or
    /// never can be.
    pub metadata_advice: Option<&'static str>,
    /// How the image is compressed, as a user would type it.
    pub codec: String,
    /// Length of the image, padding included, in bytes; without [`PackReport::data_files`].
    pub image_len: u64,
    /// The file that holds the image's data, if that is another one.
    pub data_files: Vec<PathBuf>,
    /// Nodes of every type.
    pub nodes: u64,
    /// Regular files, each once however many names it has.
    pub files: u64,
    /// Length of all files together, in bytes.
    pub bytes_in: u64,
    /// File data in the image, in bytes.
    pub data_len: u64,
    /// Everything else in the image but padding, in bytes.
    pub metadata_len: u64,
    /// Files that share all their data with an earlier one.
    pub duplicate_files: u64,
    /// Their length, in bytes.
    pub duplicate_bytes: u64,
    /// Files whose blocks are some of another file's.
    pub run_files: u64,
    /// How much is in those blocks, in bytes.
    pub run_bytes: u64,
    /// Small files and ends of files that are the beginning of another file's block.
    pub lent_tails: u64,
    /// Their length, in bytes.
    pub lent_bytes: u64,
    /// Bytes that are holes.
    pub hole_bytes: u64,
    /// Blocks that hold tails of several files.
    pub shared_blocks: u64,
    /// What lies in them, or in the packed stream: bytes before and after compression.
    pub shared: Stored,
    /// True if small files lie so far from their neighbours of the tree that the kernel, which
    /// keeps three shared blocks of SquashFS, decodes blocks anew when it reads the tree in its
    /// order.
    pub far_apart: bool,
    /// What lies in blocks and clusters that are stored as they are, in bytes.
    pub plain_bytes: u64,
    /// What each class of files takes, the largest first.
    pub classes: Vec<ClassRow>,
    /// The denser way of packing by which the image fits, if what was asked for did not.
    pub fitted: Option<String>,
    /// How long each stage took, in their order.
    pub stages: Vec<(Stage, Duration)>,
    /// Compressed blocks that were copied from the base, and their bytes in the image.
    pub base_blocks: u64,
    /// See [`PackReport::base_blocks`].
    pub base_bytes: u64,
    /// What the format could not hold.
    pub losses: Vec<Loss>,
    /// Files that could not be read and were stored empty: why.
    pub skipped: Vec<String>,
    /// Length of each structure of the format, in bytes, by name.
    pub sections: Vec<(&'static str, u64)>,
}

/// Bytes before and after they were compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// Before.
    pub bytes: u64,
    /// After.
    pub stored: u64,
}

impl PackReport {
    /// Returns the figures that do not depend on how data is stored.
    pub(crate) fn new<K: DataKind>(
        tree: &Tree,
        plan: Plan<K>,
        placed: &Placed<K>,
        coverage: &Coverage,
    ) -> Self {
        let sections = coverage.by_owner();
        let is_file = |kind: &NodeKind| matches!(kind, NodeKind::File { .. });
        PackReport {
            nodes: u64::from(tree.node_count()),
            files: tree.nodes().filter(|(_, node)| is_file(&node.kind)).count() as u64,
            bytes_in: tree.bytes_total(),
            data_len: placed.data_end - plan.data_start,
            metadata_len: sections.iter().map(|(_, len)| len).sum(),
            duplicate_files: placed.duplicate_files,
            duplicate_bytes: placed.duplicate_bytes,
            hole_bytes: placed.files.iter().map(|place| place.hole_len).fold(0, u64::saturating_add),
            losses: plan.losses,
            sections,
            ..PackReport::default()
        }
    }
}
