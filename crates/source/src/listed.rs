//! Entries of a directory as listed earlier, and their changes since.

use packfs_core::{FileType, ImagePath, Meta};

/// Entry of a directory at the time it was listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEntry {
    /// Path below the directory; empty for the directory itself.
    pub path: ImagePath,
    /// Type of the entry.
    pub file_type: FileType,
    /// Permissions, owner, and time.
    pub meta: Meta,
    /// Length of a file or of a link's target, in bytes; 0 for other types.
    pub len: u64,
}

/// Entry found by [`crate::survey_dir`], with the identity of its inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surveyed {
    /// Path and metadata.
    pub entry: ListedEntry,
    /// Device and inode number.
    pub identity: (u64, u64),
    /// Names of the inode; more than one for hard links.
    pub links: u64,
}

/// Difference between a list and the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeKind {
    /// The entry does not exist.
    Missing,
    /// It has another type.
    Type,
    /// It has another length.
    Size,
    /// It has another modification time; in a directory, names were added or removed.
    Time,
    /// It has other permissions, or another owner.
    Owner,
}

impl ChangeKind {
    /// Returns the word for reports.
    pub fn word(self) -> &'static str {
        match self {
            ChangeKind::Missing => "missing",
            ChangeKind::Type => "type",
            ChangeKind::Size => "size",
            ChangeKind::Time => "time",
            ChangeKind::Owner => "owner",
        }
    }
}

/// Entry that differs from the list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedChange {
    /// Path below the directory.
    pub path: ImagePath,
    /// First difference.
    pub kind: ChangeKind,
}

impl ListedEntry {
    /// `now` is the current state of the entry.
    pub(crate) fn difference(&self, now: &ListedEntry) -> Option<ChangeKind> {
        let (listed, found) = (&self.meta, &now.meta);
        if self.file_type != now.file_type {
            Some(ChangeKind::Type)
        } else if self.len != now.len {
            Some(ChangeKind::Size)
        } else if listed.mtime != found.mtime {
            Some(ChangeKind::Time)
        } else if (listed.mode, listed.owner) != (found.mode, found.owner) {
            Some(ChangeKind::Owner)
        } else {
            None
        }
    }
}
