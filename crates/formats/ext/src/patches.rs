//! Changes of fast commits that are kept beside the image: they would need blocks of their own.

use crate::run::Run;
use std::collections::{BTreeMap, BTreeSet};

/// Changes by inode.
#[derive(Debug, Default)]
pub(crate) struct Patches {
    /// Places of the blocks of files.
    pub(crate) maps: BTreeMap<u32, Vec<Run>>,
    pub(crate) dirs: BTreeMap<u32, DirPatch>,
}

/// Changes of a directory.
#[derive(Debug, Default)]
pub(crate) struct DirPatch {
    /// Set if it was made by the commit, and has no other entries.
    pub(crate) is_new: bool,
    /// Names of the directory on disk that are gone.
    pub(crate) removed: BTreeSet<Vec<u8>>,
    /// Names that are new.
    pub(crate) added: BTreeMap<Vec<u8>, u32>,
}

impl Patches {
    /// Returns true if there are none.
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
