//! Sorts names by how they are created: directories, files with contents, other nodes, hard links.

use super::target::ConflictScan;
use crate::select::{SelectedEntries, WalkEntry, walk};
use packfs_core::{NodeId, NodeKind, Result, Tree};
use std::collections::HashMap;

/// Names to be created.
pub(super) struct Layout<'t> {
    /// Directories, parents before their children, without the root.
    pub dirs: Vec<WalkEntry<'t>>,
    /// Regular files of at least one byte, one name each.
    pub files: Vec<WalkEntry<'t>>,
    /// Nodes without contents: empty files, symlinks, devices, FIFOs, sockets.
    pub bare: Vec<WalkEntry<'t>>,
    /// Hard links: the new name and the first one.
    pub links: Vec<(WalkEntry<'t>, WalkEntry<'t>)>,
    /// Names skipped because existing files are kept.
    pub skipped: u64,
    /// Sum of the lengths of `files`.
    pub bytes: u64,
}

impl<'t> Layout<'t> {
    /// Sorts the selected entries; `survey` checks a target that is not empty.
    pub(super) fn new(
        tree: &'t Tree,
        chosen: &SelectedEntries,
        mut survey: Option<&mut ConflictScan<'_>>,
    ) -> Result<Self> {
        let mut layout = Layout {
            dirs: Vec::new(),
            files: Vec::new(),
            bare: Vec::new(),
            links: Vec::new(),
            skipped: 0,
            bytes: 0,
        };
        let mut first_names: HashMap<NodeId, WalkEntry<'t>> = HashMap::new();
        let mut position = 0;
        let mut outcome = Ok(());
        walk(tree, |_, met| {
            position += 1;
            if outcome.is_err() || !chosen.has(position) {
                return;
            }
            match survey.as_deref_mut().map_or(Ok(true), |survey| survey.wants(&met)) {
                Ok(true) => layout.place(tree, met, &mut first_names),
                Ok(false) => layout.skipped += 1,
                Err(error) => outcome = Err(error),
            }
        });
        outcome.map(|()| layout)
    }

    fn place(&mut self, tree: &Tree, met: WalkEntry<'t>, first_names: &mut HashMap<NodeId, WalkEntry<'t>>) {
        let node = tree.node(met.node);
        if !node.is_dir() && node.links > 1 {
            if let Some(&first) = first_names.get(&met.node) {
                self.links.push((met, first));
                return;
            }
            first_names.insert(met.node, met);
        }
        match node.kind {
            NodeKind::Directory => self.dirs.push(met),
            NodeKind::File { len, .. } if len > 0 => {
                self.files.push(met);
                self.bytes = self.bytes.saturating_add(len);
            }
            _ => self.bare.push(met),
        }
    }
}
