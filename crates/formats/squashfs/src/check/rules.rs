//! Checks of the tree that differ by version.

use crate::raw::RawInode;
use packfs_format::check::{EntryPath, Report};

/// Rules of a version, called during the walk. The default is the common rule.
pub(crate) trait TreeRules {
    fn inode(&mut self, _path: &EntryPath<'_>, _raw: &RawInode, _report: &mut Report<'_>) {}

    /// A file that has `holes` blocks without data, and readable size words.
    fn holes(&mut self, _path: &EntryPath<'_>, _holes: u64) {}

    /// A file of whole blocks that names a fragment. True if the common finding is superfluous.
    fn whole_tail(&mut self, _path: &EntryPath<'_>) -> bool {
        false
    }

    /// A directory with `entries` whose link count `nlink` does not match its subdirectories. True
    /// if the common finding is superfluous.
    fn dir_links(&mut self, _path: &EntryPath<'_>, _nlink: u32, _entries: u32) -> bool {
        false
    }

    /// Reports counts after the walk.
    fn finish(&mut self, report: &mut Report<'_>);
}
