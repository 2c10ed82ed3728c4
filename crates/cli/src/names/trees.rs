//! Trees of several sources side by side, and changes of every node.

use packfs::source::{JoinedContents, Loaded, Notes, Shape};
use packfs::{
    ContentId, ImagePath, Meta, Node, NodeId, NodeKind, Progress, Result, Source, TreeBuilder, Xattrs,
};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A node of a tree as it is changed.
pub struct Edited {
    /// Type and its details.
    pub kind: NodeKind,
    /// Permissions, owner, time.
    pub meta: Meta,
    /// Extended attributes.
    pub xattrs: Xattrs,
}

/// Rebuilds a tree. `change` is called once for each node, and leaves it out, with everything
/// below, if it returns false.
///
/// Errors: those of building a tree.
pub fn edited(
    loaded: Loaded,
    links: bool,
    mut change: impl FnMut(&ImagePath, &Node, &mut Edited) -> Result<bool>,
) -> Result<Loaded> {
    let tree = &loaded.tree;
    let mut builder = TreeBuilder::new(tree.node(NodeId::ROOT).meta);
    let mut firsts: HashMap<NodeId, Option<ImagePath>> = HashMap::new();
    let mut left_out: Option<ImagePath> = None;
    let mut walk = tree.walk();
    while let Some((path, id)) = walk.next() {
        if left_out.as_ref().is_some_and(|above| path.starts_with(above)) {
            continue;
        }
        let node = tree.node(id);
        let is_linked = links && node.links > 1 && !node.is_dir();
        if is_linked && let Some(Some(first)) = firsts.get(&id) {
            builder.link(path, first.clone())?;
            continue;
        }
        let mut edit =
            Edited { kind: node.kind.clone(), meta: node.meta, xattrs: tree.xattrs(node.xattrs).clone() };
        if change(path, node, &mut edit)? {
            builder.add(path, edit.kind, edit.meta, edit.xattrs)?;
            if is_linked {
                firsts.insert(id, Some(path.clone()));
            }
        } else if node.is_dir() {
            left_out = Some(path.clone());
        }
    }
    Ok(Loaded { tree: builder.finish()?, contents: loaded.contents, notes: loaded.notes })
}

/// Returns an empty tree.
pub fn empty(root: Meta) -> Result<Loaded> {
    let tree = TreeBuilder::new(root).finish()?;
    Ok(Loaded { tree, contents: Arc::new(JoinedContents::default()), notes: Notes::default() })
}

/// A tree, and the path of this machine whose files are at its place.
pub struct Part {
    /// With the directories above the place.
    pub loaded: Loaded,
    /// Place in the whole tree.
    pub place: ImagePath,
    /// The path.
    pub host: PathBuf,
}

/// Puts trees together. Directories that several have come together, and so do the names of one
/// file. Directories above a place get the metadata that `above` returns.
///
/// Errors: those of building a tree.
pub fn joined(root: Meta, parts: Vec<Part>, above: &dyn Fn(&ImagePath) -> Option<Meta>) -> Result<Loaded> {
    let mut builder = TreeBuilder::new(root);
    let (mut contents, mut notes, mut first_id) = (JoinedContents::default(), Notes::default(), 0);
    let mut firsts = HashMap::new();
    for part in parts {
        let mut parent = ImagePath::root();
        let depth = part.place.names().count();
        for name in part.place.names().take(depth.saturating_sub(1)) {
            parent.push(name);
            if builder.find(&parent).is_none() {
                builder.add(&parent, NodeKind::Directory, above(&parent).unwrap_or(root), Xattrs::new())?;
            }
        }
        let behind = graft(&mut builder, &part, first_id, &mut firsts)?;
        contents.push(first_id, part.loaded.contents);
        first_id = behind;
        notes.left_out += part.loaded.notes.left_out;
        notes.unreadable.extend(part.loaded.notes.unreadable);
    }
    Ok(Loaded { tree: builder.finish()?, contents: Arc::new(contents), notes })
}

/// Adds a tree; `firsts` are the first names of files that have several. Returns the first content
/// number behind its own.
fn graft(
    builder: &mut TreeBuilder,
    part: &Part,
    first_id: u64,
    firsts: &mut HashMap<(u64, u64), ImagePath>,
) -> Result<u64> {
    let (mut behind, tree) = (first_id, &part.loaded.tree);
    let mut walk = tree.walk();
    while let Some((path, id)) = walk.next() {
        let node = tree.node(id);
        if !node.is_dir()
            && let Some(identity) = part.identity(path)
        {
            match firsts.get(&identity) {
                Some(first) if first == path => continue,
                Some(first) => {
                    builder.link(path, first.clone())?;
                    continue;
                }
                None => firsts.insert(identity, path.clone()),
            };
        }
        let kind = match node.kind {
            NodeKind::File { len, content } => {
                let id = first_id.saturating_add(content.0);
                behind = behind.max(id.saturating_add(1));
                NodeKind::File { len, content: ContentId(id) }
            }
            ref kind => kind.clone(),
        };
        builder.add(path, kind, node.meta, tree.xattrs(node.xattrs).clone())?;
    }
    Ok(behind)
}

impl Part {
    /// Returns device and inode of a file that has several names.
    fn identity(&self, path: &ImagePath) -> Option<(u64, u64)> {
        let mut host = self.host.clone();
        let below = path.names().skip(self.place.names().count());
        below.for_each(|name| host.push(OsStr::from_bytes(name.as_bytes())));
        let found = host.symlink_metadata().ok().filter(|found| found.nlink() > 1)?;
        Some((found.dev(), found.ino()))
    }
}

/// Loads one file or directory of this machine as the whole of a tree: a directory with all below
/// it, or without; of any other file the tree holds it alone.
///
/// Errors: those of the source.
pub fn load_one(path: &Path, shape: &Shape, progress: &dyn Progress) -> Result<Loaded> {
    Source::Entries(vec![PathBuf::from(path)]).load(shape, progress)
}
