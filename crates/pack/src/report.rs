//! What came of packing.

use crate::coverage::Coverage;
use packfs_core::{Loss, NodeKind, Placed, Plan, Tree};
use std::path::PathBuf;

/// What came of packing, in figures.
#[derive(Clone, Debug, Default)]
pub struct PackReport {
    /// Name of the image's format.
    pub format: &'static str,
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
    /// Bytes that are holes.
    pub hole_bytes: u64,
    /// Blocks that hold tails of several files.
    pub shared_blocks: u64,
    /// What the format could not hold.
    pub losses: Vec<Loss>,
    /// Files that could not be read and were stored empty: why.
    pub skipped: Vec<String>,
    /// Length of each structure of the format, in bytes, by name.
    pub sections: Vec<(&'static str, u64)>,
}

impl PackReport {
    pub(crate) fn new(
        tree: &Tree,
        plan: Plan,
        placed: &Placed,
        coverage: &Coverage,
        skipped: Vec<String>,
        image_len: u64,
    ) -> Self {
        let sections = coverage.by_owner();
        let is_file = |kind: &NodeKind| matches!(kind, NodeKind::File { .. });
        PackReport {
            format: "",
            codec: String::new(),
            image_len,
            data_files: Vec::new(),
            nodes: u64::from(tree.node_count()),
            files: tree.nodes().filter(|(_, node)| is_file(&node.kind)).count() as u64,
            bytes_in: tree.bytes_total(),
            data_len: placed.data_end - plan.data_start,
            metadata_len: sections.iter().map(|(_, len)| len).sum(),
            duplicate_files: placed.duplicate_files,
            duplicate_bytes: placed.duplicate_bytes,
            hole_bytes: placed.files.iter().map(|place| place.hole_len).sum(),
            shared_blocks: placed.shared.len() as u64,
            losses: plan.losses,
            skipped,
            sections,
        }
    }
}
