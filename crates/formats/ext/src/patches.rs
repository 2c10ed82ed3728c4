//! Changes of fast commits that are not in the overlay because they would need new blocks.

use crate::run::Run;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(crate) struct Patches {
    pub(crate) maps: BTreeMap<u32, Vec<Run>>,
    pub(crate) dirs: BTreeMap<u32, DirPatch>,
}

#[derive(Debug, Default)]
pub(crate) struct DirPatch {
    /// Set if a commit created the directory, so that it has no other entries.
    pub(crate) is_new: bool,
    /// Names on disk that were removed.
    pub(crate) removed: BTreeSet<Vec<u8>>,
    /// New names.
    pub(crate) added: BTreeMap<Vec<u8>, u32>,
}

impl Patches {
    pub(crate) fn is_empty(&self) -> bool {
        self.maps.is_empty() && self.dirs.is_empty()
    }

    pub(crate) fn runs(&self, inode: u32) -> Option<&[Run]> {
        self.maps.get(&inode).map(Vec::as_slice)
    }

    pub(crate) fn dir(&self, inode: u32) -> Option<&DirPatch> {
        self.dirs.get(&inode)
    }
}
