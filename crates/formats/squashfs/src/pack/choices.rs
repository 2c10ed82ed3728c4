//! Options of all versions: tails in fragments, and deduplication.

use packfs_core::{NodeKind, Result, Timestamp, Tree};
use packfs_format::{BlockSharing, BlockStorage, Blocks, FileJob, OptionField, PackSettings, Values, one_of};

/// Small files are moved within this many fragment blocks: as many as Linux keeps decoded.
const REORDER_BLOCKS: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fragments {
    Off,
    SmallFiles,
    /// Every file whose length is not a multiple of the block size.
    Always,
}

impl Fragments {
    pub(crate) const VALUES: Values<Self> =
        one_of!["on" => Self::SmallFiles, "off" => Self::Off, "always" => Self::Always];
    pub(crate) const HELP: &str = "Share blocks between small files (on), and tails of larger files (always)";

    /// Returns all files with data, with the storage of the tail for blocks of `block_len` bytes.
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
    Keep,
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

/// Returns the nearest time that images can store: whole seconds from 1970 to 2106.
pub(crate) fn stored_time(time: Timestamp) -> u32 {
    u32::try_from(time.seconds.max(0)).unwrap_or(u32::MAX)
}

/// Returns the distance, in bytes, over which small files are moved next to similar ones.
pub(crate) fn reorder_len(block_len: u32) -> u64 {
    REORDER_BLOCKS * u64::from(block_len)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uncompressed {
    pub(crate) inodes: bool,
    pub(crate) data: bool,
    pub(crate) fragments: bool,
    pub(crate) xattrs: bool,
    pub(crate) ids: bool,
}

/// Effect of one word of a list.
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
    /// Words of all versions.
    pub(crate) const OLD_VALUES: Values<Vec<Change>> =
        Values::new("LIST of inodes,data,fragments,all", |list| changes(list, &Uncompressed::WORDS[..5]));
    /// All words.
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

/// Returns options as given; images without a codec (`stored`) start with everything uncompressed.
pub(crate) fn typed_options(settings: &PackSettings, stored: bool) -> impl Iterator<Item = (&str, &str)> {
    stored.then_some(("uncompressed", "all")).into_iter().chain(settings.typed_options())
}

/// Alignment of an image's length.
pub(crate) const PADDING: Values<u64> = one_of!["4K" | "4k" | "4096" => 4096, "none" => 1];
