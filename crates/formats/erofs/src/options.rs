//! Options of EROFS images: values, defaults, and the kernel that each needs.

mod typed;
mod values;
mod wants;

pub(crate) use typed::Typed;

use crate::kernel::{self, Version};
use crate::rules::{ByPath, Rules, Storage};
use packfs_codec::CodecSettings;
use packfs_core::{NodeKind, Result, Tree};
use packfs_format::{DataFile, PackSettings, units::*};

/// Data that is stored in the packed inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fragments {
    Off,
    /// The tail of each file; small files entirely.
    Tails,
    All,
}

/// Data shared between files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dedupe {
    Off,
    /// Whole files with the same contents.
    Files,
    /// Parts of clusters, too.
    Ranges,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexForm {
    Auto,
    /// 8 bytes per block.
    Full,
    /// 2 or 4 bytes per block, if the file permits it.
    Compact,
    /// A record per cluster.
    Extents,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uuid {
    Content,
    Is([u8; 16]),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Prefixes {
    Off,
    /// Those that save more than a block.
    Auto,
    List(Vec<Vec<u8>>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Metabox {
    /// Uncompressed length of a cluster.
    pub cluster_len: u32,
    pub codec: CodecSettings,
    /// True to restrict it to trees of small files: for others it saves little, and lookups cost
    /// more.
    pub for_small_files: bool,
}

impl Metabox {
    /// True if the metadata of a tree should be compressed; a root alone cannot be.
    pub(crate) fn serves(&self, tree: &Tree) -> bool {
        let mut count = 0_u64;
        let mut total = 0_u64;
        for (_, node) in tree.nodes() {
            if let NodeKind::File { len, .. } = node.kind {
                count = count.plus(1);
                total = total.plus(len);
            }
        }
        tree.node_count() > 1 && (!self.for_small_files || total / SMALL_FILE_LEN < count)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Options as given; other fields contain the values that result from them.
    pub typed: Typed,
    pub codec_name: String,
    /// True if neither a codec nor a goal was given.
    pub codec_is_default: bool,
    /// Oldest kernel that must mount the image.
    pub kernel: Version,
    pub block_len: u32,
    pub storage: Storage,
    pub rules: Rules,
    /// Storage of files used first that match no rule, if it differs.
    pub first_used: Option<Storage>,
    pub fragments: Fragments,
    pub dedupe: Dedupe,
    pub packed_cluster_len: u32,
    /// Stores tails of compressed files after their inodes.
    pub inline_clusters: bool,
    pub index: IndexForm,
    /// Uses the features that were introduced with 48-bit block numbers.
    pub wide: bool,
    pub metabox: Option<Metabox>,
    pub holes: bool,
    pub made_at: i64,
    pub prefixes: Prefixes,
    pub dot_omitted: bool,
    /// Files for data; empty if it is in the image.
    pub devices: Vec<DataFile>,
    /// First device that a file may use, counted from 0.
    pub device_of: ByPath<u16>,
    /// Codecs of the input images if this image is merged from them.
    pub merged: Option<Vec<CodecSettings>>,
    /// True if the image also contains the data of its devices.
    pub is_flat: bool,
    /// True if the given kernel reads devices above 2^32 blocks.
    pub far_devices: bool,
}

/// Average length below which files count as small: metadata are then a large part of an image.
const SMALL_FILE_LEN: u64 = 4096;

impl Options {
    /// Checks the given options.
    ///
    /// Errors: `Usage` with the value and the permitted ones, or the kernel that permits it.
    pub(crate) fn new(settings: &PackSettings) -> Result<Self> {
        let typed = Typed::read(settings.typed_options())?;
        let block_len = typed.block_len;
        let wants = wants::Wants::new(settings, &typed, block_len)?;
        let kernel = kernel::choose(typed.kernel, &wants.needs)?;
        wants.resolve(settings, typed, kernel, block_len)
    }

    /// Returns the storages of all files: the default, those of rules, and that of files used
    /// first.
    pub(crate) fn storages(&self) -> impl Iterator<Item = &Storage> {
        std::iter::once(&self.storage).chain(self.rules.storages()).chain(&self.first_used)
    }
}

#[cfg(test)]
mod tests;
