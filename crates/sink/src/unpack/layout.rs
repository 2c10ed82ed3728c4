//! Sorts names by how they are created: directories, files with contents, other nodes, hard links.

use super::target::ConflictScan;
use crate::select::{SelectedEntries, WalkEntry, walk};
use packfs_core::{NodeId, NodeKind, Result, Tree};
use std::collections::HashMap;

pub(super) struct Layout<'t> {
    /// Parents before their children, without the root.
    pub dirs: Vec<WalkEntry<'t>>,
    /// Files of at least one byte, one name each.
    pub files: Vec<WalkEntry<'t>>,
    /// Nodes without contents: empty files, symlinks, devices, FIFOs, sockets.
    pub bare: Vec<WalkEntry<'t>>,
    /// The new name and the first one.
    pub links: Vec<(WalkEntry<'t>, WalkEntry<'t>)>,
    pub skipped: u64,
    pub bytes: u64,
}

impl<'t> Layout<'t> {
    /// `conflicts` checks a target that is not empty.
    pub(super) fn new(
        tree: &'t Tree,
        chosen: &SelectedEntries,
        mut conflicts: Option<&mut ConflictScan<'_>>,
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
        walk(tree, |_, entry| {
            position += 1;
            if outcome.is_err() || !chosen.has(position) {
                return;
            }
            match conflicts.as_deref_mut().map_or(Ok(true), |conflicts| conflicts.wants(&entry)) {
                Ok(true) => layout.place(tree, entry, &mut first_names),
                Ok(false) => layout.skipped += 1,
                Err(error) => outcome = Err(error),
            }
        });
        outcome.map(|()| layout)
    }

    fn place(&mut self, tree: &Tree, entry: WalkEntry<'t>, first_names: &mut HashMap<NodeId, WalkEntry<'t>>) {
        let node = tree.node(entry.node);
        if !node.is_dir() && node.links > 1 {
            if let Some(&first) = first_names.get(&entry.node) {
                self.links.push((entry, first));
                return;
            }
            first_names.insert(entry.node, entry);
        }
        match node.kind {
            NodeKind::Directory => self.dirs.push(entry),
            NodeKind::File { len, .. } if len > 0 => {
                self.files.push(entry);
                self.bytes = self.bytes.saturating_add(len);
            }
            _ => self.bare.push(entry),
        }
    }
}
