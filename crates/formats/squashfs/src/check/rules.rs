//! Checks of the tree that one generation adds.

use crate::raw::RawInode;
use packfs_format::check::{EntryPath, Report};

/// Rules of one generation, asked as the walk meets what they are about. Without a rule of its own
/// a generation has the common ones.
pub(crate) trait TreeRules {
    /// An inode that is met for the first time.
    fn inode(&mut self, _path: &EntryPath<'_>, _raw: &RawInode, _report: &mut Report<'_>) {}

    /// A file that has `holes` blocks without data; all of its size words could be read.
    fn holes(&mut self, _path: &EntryPath<'_>, _holes: u64) {}

    /// A file that names a fragment though it consists of whole blocks. Says whether that is all to
    /// be said of its tail.
    fn whole_tail(&mut self, _path: &EntryPath<'_>) -> bool {
        false
    }

    /// A directory of so many entries that counts `nlink` links, which are not its subdirectories.
    /// Says whether that is all to be said of it.
    fn dir_links(&mut self, _path: &EntryPath<'_>, _nlink: u32, _entries: u32) -> bool {
        false
    }

    /// Tells what was counted, once all has been walked.
    fn finish(&mut self, report: &mut Report<'_>);
}
