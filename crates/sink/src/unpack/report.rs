use super::layout::Layout;
use super::losses::NotRestored;
use packfs_core::{Error, NodeKind, Result, Tree};

/// Result of unpacking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct UnpackReport {
    /// Regular files; hard links count once.
    pub files: u64,
    /// Length of all files, holes included, in bytes.
    pub file_bytes: u64,
    /// Directories, the target itself not counted.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Devices, fifos and sockets.
    pub special_files: u64,
    /// Further names of files.
    pub hard_links: u64,
    /// Names left out because existing files are kept.
    pub skipped: u64,
    /// Files that could not be created, such as devices without privileges; the counts above
    /// include them.
    pub not_created: u64,
    /// Attributes that could not be restored, by kind.
    pub not_restored: Vec<NotRestored>,
}

impl UnpackReport {
    pub(super) fn of(tree: &Tree, layout: &Layout<'_>) -> Self {
        let mut report = UnpackReport {
            files: layout.files.len() as u64,
            directories: layout.dirs.len() as u64,
            hard_links: layout.links.len() as u64,
            file_bytes: layout.bytes,
            skipped: layout.skipped,
            ..UnpackReport::default()
        };
        for entry in &layout.bare {
            match tree.node(entry.node).kind {
                NodeKind::File { .. } => report.files += 1,
                NodeKind::Symlink(_) => report.symlinks += 1,
                _ => report.special_files += 1,
            }
        }
        report
    }

    /// `strict` turns losses into an error.
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
