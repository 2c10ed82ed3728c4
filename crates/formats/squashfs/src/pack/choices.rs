//! Options of all generations: tails in shared blocks, and deduplication.

use packfs_core::{NodeKind, Result, Timestamp, Tree};
use packfs_format::{BlockSharing, BlockStorage, Blocks, FileJob, OptionField, PackSettings, Values, one_of};

/// Small files are moved within so many fragment blocks: as many as Linux keeps decoded.
const REORDER_BLOCKS: u64 = 3;

/// Files whose tails go into fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fragments {
    /// None.
    Off,
    /// Files shorter than a block.
    SmallFiles,
    /// Every file whose length is no multiple of the block size.
    Always,
}

impl Fragments {
    pub(crate) const VALUES: Values<Self> =
        one_of!["on" => Self::SmallFiles, "off" => Self::Off, "always" => Self::Always];
    pub(crate) const HELP: &str = "Share blocks between small files (on), and tails of larger files (always)";

    /// All files that have data, each with what becomes of its tail where blocks are `block_len`
    /// bytes long.
    pub(crate) fn jobs(self, tree: &Tree, block_len: u32) -> Vec<FileJob<Blocks>> {
        let storage = |len: u64| match self {
            Fragments::Off => BlockStorage::Blocks,
            Fragments::SmallFiles if len >= u64::from(block_len) => BlockStorage::Blocks,
            Fragments::SmallFiles | Fragments::Always => BlockStorage::SharedTail,
        };
        let jobs = tree.nodes().filter_map(|(id, node)| match node.kind {
            NodeKind::File { len, .. } if len > 0 => Some(FileJob { node: id, storage: storage(len) }),
            _ => None,
        });
        jobs.collect()
    }
}

/// Data that is deduplicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duplicates {
    /// Nothing.
    Keep,
    /// Whole files with the same contents.
    Files,
    /// Also files that are a part of another.
    Share,
}

impl Duplicates {
    pub(crate) const VALUES: Values<Self> =
        one_of!["share" => Self::Share, "files" => Self::Files, "keep" => Self::Keep];
    pub(crate) const HELP: &str = "Store equal files once (files), and equal runs of blocks (share)";

    /// Returns the parts of a file that may be shared with others.
    pub(crate) fn sharing(self, fragments: Fragments) -> BlockSharing {
        match (self, fragments) {
            (Duplicates::Keep | Duplicates::Files, _) => BlockSharing::Files,
            (Duplicates::Share, Fragments::Off) => BlockSharing::Runs,
            (Duplicates::Share, Fragments::SmallFiles | Fragments::Always) => BlockSharing::RunsAndTails,
        }
    }
}

/// Returns the nearest time that images can hold: whole seconds from 1970 to 2106.
pub(crate) fn stored_time(time: Timestamp) -> u32 {
    u32::try_from(time.seconds.max(0)).unwrap_or(u32::MAX)
}

/// Returns the distance, in bytes, over which small files are moved next to similar ones.
pub(crate) fn reorder_len(block_len: u32) -> u64 {
    REORDER_BLOCKS * u64::from(block_len)
}

/// Parts that are stored uncompressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uncompressed {
    pub(crate) inodes: bool,
    pub(crate) data: bool,
    pub(crate) fragments: bool,
    pub(crate) xattrs: bool,
    pub(crate) ids: bool,
}

/// Changes what is stored uncompressed, as one word of a list says.
type Change = fn(&mut Uncompressed);

impl Uncompressed {
    const ALL: Self = Uncompressed { inodes: true, data: true, fragments: true, xattrs: true, ids: true };
    const WORDS: [(&str, Change); 7] = [
        ("inodes", |set| set.inodes = true),
        ("data", |set| set.data = true),
        ("fragments", |set| set.fragments = true),
        ("all", |set| *set = Uncompressed::ALL),
        ("none", |set| *set = Uncompressed::default()),
        ("xattrs", |set| set.xattrs = true),
        ("ids", |set| set.ids = true),
    ];
    /// Lists of parts that all generations have.
    pub(crate) const OLD_VALUES: Values<Vec<Change>> =
        Values::new("LIST of inodes,data,fragments,all", |list| changes(list, &Uncompressed::WORDS[..5]));
    /// Lists of all parts.
    pub(crate) const VALUES: Values<Vec<Change>> =
        Values::new("LIST of inodes,data,fragments,xattrs,ids,all", |list| {
            changes(list, &Uncompressed::WORDS)
        });
}

fn changes(list: &str, known: &[(&str, Change)]) -> Option<Vec<Change>> {
    let change = |word| known.iter().find(|row| row.0 == word).map(|row| row.1);
    list.split(',').map(change).collect()
}

impl OptionField<Vec<Change>> for Uncompressed {
    fn start(_default: impl FnOnce() -> Result<Vec<Change>>) -> Result<Self> {
        Ok(Uncompressed::default())
    }

    fn put(&mut self, changes: Vec<Change>) {
        changes.into_iter().for_each(|change| change(self));
    }
}

/// Returns options as typed; images without a codec (`stored`) begin with all stored uncompressed.
pub(crate) fn typed_options(settings: &PackSettings, stored: bool) -> impl Iterator<Item = (&str, &str)> {
    stored.then_some(("uncompressed", "all")).into_iter().chain(settings.typed_options())
}

/// Multiples of bytes that an image is filled up to.
pub(crate) const PADDING: Values<u64> = one_of!["4K" | "4k" | "4096" => 4096, "none" => 1];
