//! Modified copies of a complete tree.

use crate::{BuildId, ImagePath, Meta, NodeId, NodeKind, Result, Tree, TreeBuilder, Xattrs};
use std::collections::HashMap;

/// Name of a tree and its node, before or after a change.
#[derive(Clone, Debug)]
pub struct Edited {
    /// Path in the new tree.
    pub path: ImagePath,
    /// Type and its details.
    pub kind: NodeKind,
    /// Permissions, owner, time.
    pub meta: Meta,
    /// Extended attributes.
    pub xattrs: Xattrs,
    /// True for a further name of a node that is kept; only its path is used.
    pub is_link: bool,
}

/// Marks a node that the original tree does not contain.
const NEW: NodeId = NodeId(u32::MAX);

/// Copies a tree name by name, as the caller decides. Hard links are preserved.
pub struct TreeEdit<'t> {
    tree: &'t Tree,
    builder: TreeBuilder,
    /// New path of the first kept name of each node with several; `None` if each becomes a separate
    /// file.
    firsts: Option<HashMap<NodeId, ImagePath>>,
    /// Index: build id; [`NEW`] for others.
    origins: Vec<NodeId>,
}

impl Tree {
    /// Returns a copy with the changes of [`TreeEdit::change`].
    ///
    /// Errors: as for that method.
    pub fn edit(&self, change: impl FnMut(&ImagePath, NodeId, &mut Edited) -> Result<bool>) -> Result<Tree> {
        TreeEdit::new(self, self.node(NodeId::ROOT).meta).change(change)?.finish()
    }
}

impl<'t> TreeEdit<'t> {
    /// Creates an edit without names; missing directories above kept paths get `implied`.
    pub fn new(tree: &'t Tree, implied: Meta) -> Self {
        let (builder, firsts) = (TreeBuilder::new(implied), Some(HashMap::new()));
        TreeEdit { tree, builder, firsts, origins: Vec::new() }
    }

    /// Converts each name of a file with several to a separate file.
    #[must_use]
    pub fn unlinked(self) -> Self {
        TreeEdit { firsts: None, ..self }
    }

    /// Keeps all names for which `change` returns true. A directory that is dropped is dropped with
    /// everything below.
    ///
    /// Errors: those of `change` and of building a tree.
    pub fn change(
        mut self,
        mut change: impl FnMut(&ImagePath, NodeId, &mut Edited) -> Result<bool>,
    ) -> Result<Self> {
        let mut left_out: Option<ImagePath> = None;
        let mut walk = self.tree.walk();
        while let Some((path, id)) = walk.next() {
            if left_out.as_ref().is_some_and(|above| path.starts_with(above)) {
                continue;
            }
            let mut edited = self.edited(path, id);
            if change(path, id, &mut edited)? {
                self.keep(id, edited)?;
            } else if self.tree.node(id).is_dir() {
                left_out = Some(path.clone());
            }
        }
        Ok(self)
    }

    /// Returns a name unchanged.
    pub fn edited(&self, path: &ImagePath, id: NodeId) -> Edited {
        let node = self.tree.node(id);
        let is_link = self.firsts.as_ref().is_some_and(|firsts| firsts.contains_key(&id));
        let xattrs = self.tree.xattrs(node.xattrs).clone();
        Edited { path: path.clone(), kind: node.kind.clone(), meta: node.meta, xattrs, is_link }
    }

    /// Keeps a name of a node.
    ///
    /// Errors: as [`TreeBuilder::add`] and [`TreeBuilder::link`].
    pub fn keep(&mut self, id: NodeId, edited: Edited) -> Result<()> {
        let node = self.tree.node(id);
        if let Some(firsts) = self.firsts.as_mut().filter(|_| node.links > 1 && !node.is_dir()) {
            if let Some(first) = firsts.get(&id) {
                return self.builder.link(&edited.path, first.clone());
            }
            firsts.insert(id, edited.path.clone());
        }
        let built = self.builder.add(&edited.path, edited.kind, edited.meta, edited.xattrs)?;
        if self.origins.len() <= built.index() {
            self.origins.resize(built.index() + 1, NEW);
        }
        self.origins[built.index()] = id;
        Ok(())
    }

    /// Returns the builder, for nodes that the original tree does not contain.
    pub fn builder(&mut self) -> &mut TreeBuilder {
        &mut self.builder
    }

    /// Completes the new tree.
    ///
    /// Errors: as [`TreeBuilder::finish`].
    pub fn finish(self) -> Result<Tree> {
        self.builder.finish()
    }

    /// Completes the new tree; also returns the original node of each node, if it had one.
    ///
    /// Errors: as [`TreeBuilder::finish`].
    pub fn finish_numbered(self) -> Result<(Tree, Vec<Option<NodeId>>)> {
        let (tree, numbers) = self.builder.finish_numbered()?;
        let origin = |built: &BuildId| self.origins.get(built.index()).copied().filter(|id| *id != NEW);
        Ok((tree, numbers.iter().map(origin).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ContentId, Name};

    fn path(text: &str) -> ImagePath {
        ImagePath::parse(text.as_bytes()).unwrap()
    }

    /// Returns a tree with the file `a`, which has the further names `b` and `d/c`.
    fn tree() -> Tree {
        let mut builder = TreeBuilder::new(Meta::default());
        let file = NodeKind::File { len: 1, content: ContentId(7) };
        builder.add(&path("a"), file, Meta::default(), Xattrs::new()).unwrap();
        builder.add(&path("d/x"), NodeKind::Fifo, Meta::default(), Xattrs::new()).unwrap();
        ["b", "d/c"].iter().for_each(|name| builder.link(&path(name), path("a")).unwrap());
        builder.finish().unwrap()
    }

    /// Returns paths with their link counts.
    fn listed(tree: &Tree) -> Vec<String> {
        let (mut walk, mut lines) = (tree.walk(), Vec::new());
        while let Some((path, id)) = walk.next() {
            lines.push(format!("{path} {}", tree.node(id).links));
        }
        lines
    }

    #[test]
    fn names_are_kept_moved_and_left_out_one_by_one() {
        let tree = tree();
        assert_eq!(listed(&tree.edit(|_, _, _| Ok(true)).unwrap()), listed(&tree));
        let mut links = Vec::new();
        let edited = tree.edit(|at, _, edited| {
            links.extend(edited.is_link.then(|| at.to_string()));
            if *at == path("d/c") {
                edited.path = path("c");
            }
            Ok(*at != path("b"))
        });
        assert_eq!(listed(&edited.unwrap()), ["/ 3", "a 2", "c 2", "d 2", "d/x 1"]);
        assert_eq!(links, ["b", "d/c"]);
        // The next name of a file is its first one where that is left out.
        let edited = tree.edit(|at, _, _| Ok(*at != path("a") && *at != path("d"))).unwrap();
        assert_eq!(listed(&edited), ["/ 2", "b 1"]);
    }

    #[test]
    fn nodes_say_which_they_were() {
        let tree = tree();
        let edit = TreeEdit::new(&tree, Meta::default()).unlinked().change(|at, _, edited| {
            edited.path = path("z").join(at.file_name().unwrap_or(Name::new(b"r").unwrap()));
            Ok(*at != path("d"))
        });
        let (edited, origins) = edit.unwrap().finish_numbered().unwrap();
        assert_eq!(listed(&edited), ["/ 3", "z 3", "z/a 1", "z/b 1", "z/r 2"]);
        let found: Vec<Option<String>> =
            origins.iter().map(|origin| origin.map(|id| tree.path(id).to_string())).collect();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(found, [None, None, some("a"), some("a"), some("/")]);
    }
}
