//! What an extraction has done.

use super::layout::Layout;
use super::losses::NotRestored;
use packfs_core::{Error, NodeKind, Result, Tree};

/// What was unpacked, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnpackReport {
    /// Regular files, each once however many names it has.
    pub files: u64,
    /// Directories, the target itself not counted.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Devices, fifos and sockets.
    pub special_files: u64,
    /// Further names of files.
    pub hard_links: u64,
    /// Bytes of all files, holes included.
    pub bytes: u64,
    /// Names left out because what was there is kept.
    pub skipped: u64,
    /// Of those counted above, how many could not be made: devices without privileges, mostly.
    pub not_made: u64,
    /// Of those counted above, how many files were left out because their contents could not be
    /// read.
    pub failed: u64,
    /// What could not be restored, one row a kind.
    pub not_restored: Vec<NotRestored>,
}

impl UnpackReport {
    /// What is going to be made.
    pub(super) fn of(tree: &Tree, layout: &Layout<'_>) -> Self {
        let mut report = UnpackReport {
            files: layout.files.len() as u64,
            directories: layout.dirs.len() as u64,
            hard_links: layout.links.len() as u64,
            bytes: layout.bytes,
            skipped: layout.skipped,
            ..UnpackReport::default()
        };
        for met in &layout.bare {
            match tree.node(met.node).kind {
                NodeKind::File { .. } => report.files += 1,
                NodeKind::Symlink(_) => report.symlinks += 1,
                _ => report.special_files += 1,
            }
        }
        report
    }

    /// Adds what could not be restored; `strict` makes that an error.
    pub(super) fn finish(mut self, not_restored: Vec<NotRestored>, strict: bool) -> Result<Self> {
        if let (true, [first, ..]) = (strict, &not_restored[..]) {
            let mut error = Error::failed(first);
            for row in &not_restored[1..] {
                error = error.hint(format!("also: {row}"));
            }
            return Err(error);
        }
        self.not_restored = not_restored;
        Ok(self)
    }
}
