//! Results of packing.

use crate::by_class::ClassRow;
use crate::coverage::Coverage;
use packfs_core::{Loss, NodeKind, Stage, Tree};
use packfs_format::{DataKind, Placed, Plan};
use std::path::PathBuf;
use std::time::Duration;

/// Results of packing.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PackReport {
    /// Name of the image's format.
    pub format: &'static str,
    /// Name of the Linux driver that mounts the image; `None` if none does.
    pub driver: Option<&'static str>,
    /// Options that would compress the metadata, and the reason; `None` if it is compressed or
    /// cannot be.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub metadata_advice: Option<&'static str>,
    /// Option that chooses otherwise than a default that costs something, and what it costs.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub default_advice: Option<&'static str>,
    /// Compression, in the syntax of the options.
    pub codec: String,
    /// Length of the image, padding included, in bytes; without [`PackReport::data_files`].
    #[cfg_attr(feature = "serde", serde(rename = "image_size"))]
    pub image_len: u64,
    /// Files that hold the image's data, if they are not the image. Not serialized, like the path
    /// of the image: the caller names both.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub data_files: Vec<PathBuf>,
    /// Nodes of every type.
    pub nodes: u64,
    /// Regular files; hard links count once.
    pub files: u64,
    /// Total length of the files, in bytes.
    #[cfg_attr(feature = "serde", serde(rename = "file_bytes"))]
    pub bytes_in: u64,
    /// File data in the image, in bytes.
    #[cfg_attr(feature = "serde", serde(rename = "data_bytes"))]
    pub data_len: u64,
    /// Everything else in the image but padding, in bytes.
    #[cfg_attr(feature = "serde", serde(rename = "metadata_bytes"))]
    pub metadata_len: u64,
    /// Files that share all their data with an earlier one.
    pub duplicate_files: u64,
    /// Their length, in bytes.
    pub duplicate_bytes: u64,
    /// Files whose blocks are some of another file's.
    pub run_files: u64,
    /// Bytes in those blocks.
    pub run_bytes: u64,
    /// Small files and tails that equal the beginning of another file's block.
    pub duplicate_tails: u64,
    /// Their length, in bytes.
    pub duplicate_tail_bytes: u64,
    /// Bytes that are holes.
    pub hole_bytes: u64,
    /// Fragment blocks.
    pub fragment_blocks: u64,
    /// Cost of reading the image in tree order.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub walk: WalkReads,
    /// Bytes in fragment blocks or the packed stream, before and after compression.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub fragments: Stored,
    /// True if small files lie so far from their neighbors in the tree that the kernel, which keeps
    /// three SquashFS fragment blocks, decodes blocks again when it reads the tree in order.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub far_apart: bool,
    /// Bytes in blocks and clusters that are stored uncompressed.
    pub plain_bytes: u64,
    /// Space of each class of files, in descending order; empty if files were copied unread.
    pub classes: Vec<ClassRow>,
    /// Denser way of packing by which the image fits, if the requested one did not.
    pub fitted: Option<String>,
    /// Duration of each stage, in order.
    pub stages: Vec<StageTime>,
    /// Compressed blocks that were copied from the base.
    pub base_blocks: u64,
    /// Their bytes in the image.
    pub base_bytes: u64,
    /// Attributes that the format could not represent.
    pub losses: Vec<Loss>,
    /// Error messages of files that were stored empty.
    pub skipped: Vec<String>,
    /// Length of each structure of the format, in bytes, by name.
    pub sections: Vec<Section>,
}

/// Bytes before and after compression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Stored {
    /// Before compression.
    #[cfg_attr(feature = "serde", serde(rename = "fragment_bytes"))]
    pub bytes: u64,
    /// After compression.
    #[cfg_attr(feature = "serde", serde(rename = "fragment_stored_bytes"))]
    pub stored: u64,
}

/// Structure of the image.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Section {
    /// Name of the structure.
    pub owner: &'static str,
    /// Length in the image.
    #[cfg_attr(feature = "serde", serde(rename = "size"))]
    pub len: u64,
}

/// Time of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageTime {
    /// Name of the stage.
    pub stage: Stage,
    /// Time that it took.
    #[cfg_attr(feature = "serde", serde(rename = "seconds", serialize_with = "serialize_seconds"))]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub took: Duration,
}

#[cfg(feature = "serde")]
fn serialize_seconds<S: serde::Serializer>(took: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(took.as_secs_f64())
}

/// Cost of a walk along the tree for Linux's SquashFS driver, by a model of its cache of three
/// fragment blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct WalkReads {
    /// Fragment blocks decoded; a block counts each time.
    #[cfg_attr(feature = "serde", serde(rename = "fragment_decodes"))]
    pub decodes: u64,
    /// Stored bytes of those blocks, each time.
    #[cfg_attr(feature = "serde", serde(rename = "fragment_read_bytes"))]
    pub read_bytes: u64,
    /// The same decodes if files were placed in tree order.
    #[cfg_attr(feature = "serde", serde(rename = "path_order_decodes"))]
    pub path_decodes: u64,
    /// Blocks that belong to one file.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub other_blocks: u64,
}

impl WalkReads {
    /// Returns the number of blocks read, relative to tree order: 1.03 is 3 % more.
    #[expect(clippy::cast_precision_loss, reason = "digits beyond those that are shown")]
    pub fn ratio(&self) -> f64 {
        let blocks = |decodes: u64| (decodes + self.other_blocks).max(1) as f64;
        blocks(self.decodes) / blocks(self.path_decodes)
    }
}

impl PackReport {
    /// Creates a report with the figures that do not depend on how data is stored.
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
            losses: plan.losses,
            sections: sections.into_iter().map(|(owner, len)| Section { owner, len }).collect(),
            ..PackReport::default()
        }
    }
}
