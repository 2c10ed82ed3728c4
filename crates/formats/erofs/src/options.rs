//! The options of EROFS images: what may be asked for, what holds otherwise, and what a kernel must
//! have for it.

mod typed;
mod values;
mod wants;

pub(crate) use typed::Typed;

use crate::kernel::{self, Version};
use crate::rules::{ByPath, Rules, Storage};
use packfs_codec::CodecSettings;
use packfs_core::{NodeKind, Result, Tree};
use packfs_format::{DataFile, PackSettings};

/// Files whose data goes into the packed inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fragments {
    /// None.
    Off,
    /// The last part of each file, small files whole.
    Tails,
    /// All files whole.
    All,
}

/// Data that files share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dedupe {
    /// Nothing.
    Off,
    /// Whole files with the same contents.
    Files,
    /// Parts of clusters too.
    Ranges,
}

/// Form of a compressed file's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexForm {
    /// Whatever is shortest.
    Auto,
    /// 8 bytes a block.
    Full,
    /// 2 or 4 bytes a block, where the file allows it.
    Compact,
    /// A record a cluster.
    Extents,
}

/// The image's own id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uuid {
    /// A hash of everything in it.
    Content,
    /// These bytes.
    Is([u8; 16]),
}

/// Prefixes of xattrs' names that the image defines for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Prefixes {
    /// None.
    Off,
    /// Those that save more than a block.
    Auto,
    /// These.
    List(Vec<Vec<u8>>),
}

/// Compressed metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Metabox {
    /// Bytes of input of a cluster.
    pub cluster_len: u32,
    pub codec: CodecSettings,
    /// True if it is for trees of small files only: in others it saves little, and lookups cost
    /// more.
    pub for_small_files: bool,
}

impl Metabox {
    /// True if the metadata of a tree are to be compressed; the root alone cannot be.
    pub(crate) fn serves(&self, tree: &Tree) -> bool {
        let lens = tree.nodes().filter_map(|(_, node)| match node.kind {
            NodeKind::File { len, .. } => Some(len),
            _ => None,
        });
        let (count, total) = lens
            .fold((0_u64, 0_u64), |(count, total), len| (count.saturating_add(1), total.saturating_add(len)));
        tree.node_count() > 1 && (!self.for_small_files || total / SMALL_FILE_LEN < count)
    }
}

/// Everything that shapes an image, checked.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Options that nothing else decides; of those named here, too, this holds what was typed.
    pub typed: Typed,
    pub codec_name: String,
    /// True if neither a codec nor a goal was named.
    pub codec_is_default: bool,
    /// The oldest kernel that is to mount the image.
    pub kernel: Version,
    pub block_len: u32,
    /// Storage of files that no rule matches.
    pub storage: Storage,
    pub rules: Rules,
    /// Storage of files used first that no rule matches, if it differs.
    pub first_used: Option<Storage>,
    pub fragments: Fragments,
    pub dedupe: Dedupe,
    pub packed_cluster_len: u32,
    /// Stores last clusters beside their inodes.
    pub inline_clusters: bool,
    pub index: IndexForm,
    /// Uses the features that came with 48-bit block numbers.
    pub wide: bool,
    pub metabox: Option<Metabox>,
    pub holes: bool,
    pub made_at: i64,
    pub prefixes: Prefixes,
    pub dot_omitted: bool,
    /// The files that hold the data, if that is not the image.
    pub devices: Vec<DataFile>,
    /// The first of them that a file may lie on, counted from 0.
    pub device_of: ByPath<u16>,
    /// Codecs of data that other images stored, if the image is merged from them.
    pub merged: Option<Vec<CodecSettings>>,
    /// True if the image holds the files of its devices, too, at their places.
    pub is_flat: bool,
    /// True if the kernel that was named reads devices above 2^32 blocks.
    pub far_devices: bool,
}

/// Files are small if they are shorter than this on average: their metadata are a good part of an
/// image then.
const SMALL_FILE_LEN: u64 = 4096;

impl Options {
    /// Checks what the user asked for.
    ///
    /// Errors: `Usage`, naming what was found and what is allowed, or which kernel allows it.
    pub(crate) fn new(settings: &PackSettings) -> Result<Self> {
        let typed = Typed::read(settings.typed_options())?;
        let block_len = typed.block_len;
        let wants = wants::Wants::new(settings, &typed, block_len)?;
        let kernel = kernel::choose(typed.kernel, &wants.needs)?;
        wants.resolve(settings, typed, kernel, block_len)
    }

    /// Every way in which files are stored: the usual one, then those of the rules, then that of
    /// files used first.
    pub(crate) fn storages(&self) -> impl Iterator<Item = &Storage> {
        std::iter::once(&self.storage).chain(self.rules.storages()).chain(&self.first_used)
    }
}

#[cfg(test)]
mod tests;
