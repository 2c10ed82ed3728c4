//! What may be chosen for images of all generations alike: which tails share blocks, and what is stored once.

use packfs_core::{NodeKind, Tree};
use packfs_format::{BlockSharing, FileJob, OptionRow, Tail};

/// Small files are moved within so many fragment blocks: as many as Linux keeps decoded.
const REORDER_BLOCKS: u64 = 3;

/// Which files put their tails into shared blocks.
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
    /// What `--help` prints.
    pub(crate) const ROW: OptionRow = OptionRow {
        name: "fragments",
        values: "on|off|always",
        default: "on",
        help: "share blocks between small files (on), also between the tails of larger ones (always), or never (off)",
    };

    /// What a value of the option means.
    pub(crate) fn named(value: &str) -> Option<Self> {
        match value {
            "off" => Some(Fragments::Off),
            "on" => Some(Fragments::SmallFiles),
            "always" => Some(Fragments::Always),
            _ => None,
        }
    }

    /// All files that have data, each with what becomes of its tail where blocks are `block_len` bytes long.
    pub(crate) fn jobs(self, tree: &Tree, block_len: u32) -> Vec<FileJob> {
        let tail = |len: u64| match self {
            Fragments::Off => Tail::Own,
            Fragments::SmallFiles if len >= u64::from(block_len) => Tail::Own,
            Fragments::SmallFiles | Fragments::Always => Tail::Shared,
        };
        let jobs = tree.nodes().filter_map(|(id, node)| match node.kind {
            NodeKind::File { len, .. } if len > 0 => {
                Some(FileJob { node: id, tail: tail(len), recipe: 0, data_file: 0 })
            }
            _ => None,
        });
        jobs.collect()
    }
}

/// What is stored once.
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
    /// What `--help` prints.
    pub(crate) const ROW: OptionRow = OptionRow {
        name: "duplicates",
        values: "share|files|keep",
        default: "share",
        help: "store the data of files with the same contents once (files), also what is a part of another file by whole blocks (share), or as often as they occur (keep)",
    };

    /// What a value of the option means.
    pub(crate) fn named(value: &str) -> Option<Self> {
        match value {
            "share" => Some(Duplicates::Share),
            "files" => Some(Duplicates::Files),
            "keep" => Some(Duplicates::Keep),
            _ => None,
        }
    }

    /// What of a file may be another's, too.
    pub(crate) fn sharing(self, fragments: Fragments) -> BlockSharing {
        match (self, fragments) {
            (Duplicates::Keep | Duplicates::Files, _) => BlockSharing::Files,
            (Duplicates::Share, Fragments::Off) => BlockSharing::Runs,
            (Duplicates::Share, Fragments::SmallFiles | Fragments::Always) => BlockSharing::RunsAndTails,
        }
    }
}

/// How far small files are moved to where they have most in common with their neighbours, in bytes.
pub(crate) fn reorder_len(block_len: u32) -> u64 {
    REORDER_BLOCKS * u64::from(block_len)
}

/// What a value means of an option that is on or off.
pub(crate) fn switch_named(value: &str) -> Option<bool> {
    match value {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// What a value of the option `padding` means: the image is filled up to a multiple of so many bytes.
pub(crate) fn padding_named(value: &str) -> Option<u64> {
    match value {
        "4K" | "4k" | "4096" => Some(4096),
        "none" => Some(1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_that_help_names_is_one() {
        for value in Fragments::ROW.values.split('|') {
            assert!(Fragments::named(value).is_some(), "{value}");
        }
        for value in Duplicates::ROW.values.split('|') {
            assert!(Duplicates::named(value).is_some(), "{value}");
        }
        assert_eq!(Fragments::named(Fragments::ROW.default), Some(Fragments::SmallFiles));
        assert_eq!(Duplicates::named(Duplicates::ROW.default), Some(Duplicates::Share));
        assert_eq!((Fragments::named("maybe"), Duplicates::named("most")), (None, None));
    }
}
