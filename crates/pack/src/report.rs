use crate::by_class::ClassRow;
use crate::coverage::Coverage;
use packfs_core::{Loss, NodeKind, Stage, Tree};
use packfs_format::{DataKind, Placed, Plan};
use std::path::PathBuf;
use std::time::Duration;

/// Results of packing.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PackReport {
    /// Name of the format.
    pub format: &'static str,
    /// Codec, as a value of `--codec`.
    pub codec: String,
    /// Length of the image, padding included, without files of data beside it.
    #[cfg_attr(feature = "serde", serde(rename = "image_size"))]
    pub image_len: u64,
    /// Inodes of all types.
    pub nodes: u64,
    /// Regular files; hard links count once.
    pub files: u64,
    /// Length of all files.
    #[cfg_attr(feature = "serde", serde(rename = "file_bytes"))]
    pub bytes_in: u64,
    /// File data in the image.
    #[cfg_attr(feature = "serde", serde(rename = "data_bytes"))]
    pub data_len: u64,
    /// Everything else in the image but padding.
    #[cfg_attr(feature = "serde", serde(rename = "metadata_bytes"))]
    pub metadata_len: u64,
    /// Files that share all their data with an earlier one.
    pub duplicate_files: u64,
    /// Length of `duplicate_files`.
    pub duplicate_bytes: u64,
    /// Files that share some blocks with another one.
    pub run_files: u64,
    /// Length of the shared blocks.
    pub run_bytes: u64,
    /// Small files and tails that equal the beginning of another file's block.
    pub duplicate_tails: u64,
    /// Length of `duplicate_tails`.
    pub duplicate_tail_bytes: u64,
    /// Holes.
    pub hole_bytes: u64,
    /// Compressed blocks copied from an earlier image.
    pub base_blocks: u64,
    /// Length of `base_blocks` in the image.
    pub base_bytes: u64,
    /// Fragment blocks, which hold tails of several files.
    pub fragment_blocks: u64,
    /// Cost of reading the image in tree order.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub walk: WalkReads,
    /// Bytes in fragment blocks or the packed stream, before and after compression.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub fragments: Stored,
    /// Data stored uncompressed, because compression gains less than `--min-gain`.
    pub plain_bytes: u64,
    /// Structures of the image.
    pub sections: Vec<Section>,
    /// Classes of files, the largest first; empty if files were copied unread.
    pub classes: Vec<ClassRow>,
    /// Stages, in their order.
    pub stages: Vec<StageTime>,
    /// Denser settings by which the image fits (`--fit`); null if the requested ones do.
    pub fitted: Option<String>,
    /// Attributes that the format cannot represent.
    pub losses: Vec<Loss>,
    /// With `--keep-going`: a message for each file or directory that could not be read.
    pub skipped: Vec<String>,
    /// Linux driver that mounts the image; null without any.
    pub driver: Option<&'static str>,
    /// Files that hold the image's data, if they are not the image. Not serialized, like the path
    /// of the image: the caller names both.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub data_files: Vec<PathBuf>,
    /// Options that would compress the metadata, and the reason; `None` if it is compressed or
    /// cannot be.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub metadata_advice: Option<&'static str>,
    /// Option that chooses otherwise than a default that costs something, and what it costs.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub default_advice: Option<&'static str>,
    /// True if small files lie so far from their neighbors in the tree that the kernel, which keeps
    /// three SquashFS fragment blocks, decodes blocks again when it reads the tree in order.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub far_apart: bool,
}

/// Bytes before and after compression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stored {
    /// Small files and tails in fragment blocks or the packed inode.
    #[cfg_attr(feature = "serde", serde(rename = "fragment_bytes"))]
    pub bytes: u64,
    /// Length of `fragment_bytes` after compression.
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
#[non_exhaustive]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct WalkReads {
    /// Fragment blocks that Linux decodes in a walk along the tree; a block counts each time.
    #[cfg_attr(feature = "serde", serde(rename = "fragment_decodes"))]
    pub decodes: u64,
    /// Length of the blocks in `fragment_decodes` in the image.
    #[cfg_attr(feature = "serde", serde(rename = "fragment_read_bytes"))]
    pub read_bytes: u64,
    /// The value of `fragment_decodes` with `--order path`, estimated.
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
