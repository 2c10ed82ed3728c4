//! Copies a finished tree entry by entry, for changes that depend on the whole tree.

use packfs_core::{ImagePath, Meta, NodeId, NodeKind, Result, Tree, TreeBuilder, Xattrs};
use std::collections::HashMap;

/// Copies a tree; the caller decides about each entry. Hard links are preserved.
pub(crate) struct Rewrite<'t> {
    tree: &'t Tree,
    builder: TreeBuilder,
    /// First name kept of each node with several names.
    first_paths: HashMap<NodeId, ImagePath>,
}

impl<'t> Rewrite<'t> {
    pub(crate) fn new(tree: &'t Tree) -> Self {
        Rewrite { tree, builder: TreeBuilder::new(Meta::default()), first_paths: HashMap::new() }
    }

    /// Keeps an entry; `xattrs` is called when its node is kept for the first time.
    pub(crate) fn keep(
        &mut self,
        path: &ImagePath,
        id: NodeId,
        xattrs: impl FnOnce(&'t Xattrs) -> Xattrs,
    ) -> Result<()> {
        self.keep_as(path, id, self.tree.node(id).kind.clone(), xattrs)
    }

    /// Keeps an entry as [`Rewrite::keep`], with another kind.
    pub(crate) fn keep_as(
        &mut self,
        path: &ImagePath,
        id: NodeId,
        kind: NodeKind,
        xattrs: impl FnOnce(&'t Xattrs) -> Xattrs,
    ) -> Result<()> {
        if let Some(first) = self.first_paths.get(&id) {
            return self.builder.link(path, first.clone());
        }
        let node = self.tree.node(id);
        if node.links > 1 && !node.is_dir() {
            self.first_paths.insert(id, path.clone());
        }
        self.add(path, kind, node.meta, xattrs(self.tree.xattrs(node.xattrs)))
    }

    /// Adds a hard link to an entry.
    pub(crate) fn link(&mut self, path: &ImagePath, target: ImagePath) -> Result<()> {
        self.builder.link(path, target)
    }

    /// Adds an entry that the tree does not have.
    pub(crate) fn add(&mut self, path: &ImagePath, kind: NodeKind, meta: Meta, xattrs: Xattrs) -> Result<()> {
        self.builder.add(path, kind, meta, xattrs).map(|_| ())
    }

    pub(crate) fn finish(self) -> Result<Tree> {
        self.builder.finish()
    }
}
