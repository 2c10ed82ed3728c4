//! Parts of a loaded image.

use super::trees::Edited;
use packfs::read::{Faults, LoadedVolume};
use packfs::{ImagePath, InodeId, Node, NodeId, Result, TreeBuilder};
use std::collections::{HashMap, HashSet};

/// Rebuilds a loaded image. `change` is called for each name, and leaves it out, with everything
/// below, if it returns false.
///
/// Errors: those of building a tree.
pub fn selected(
    loaded: LoadedVolume,
    change: impl FnMut(&ImagePath, &Node, &mut Edited) -> bool,
) -> Result<LoadedVolume> {
    rebuilt(loaded, true, change)
}

/// Rebuilds a loaded image with a file for each hard link.
///
/// Errors: those of building a tree.
pub fn unlinked(loaded: LoadedVolume) -> Result<LoadedVolume> {
    rebuilt(loaded, false, |_, _, _| true)
}

/// Returns the permissions that the umask leaves.
pub fn kept_by_umask() -> u16 {
    // Nothing else of this process creates files yet.
    let mask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(mask);
    !u16::try_from(mask.bits()).unwrap_or(0)
}

/// Leaves out directories without any file below them.
///
/// Errors: those of building a tree.
pub fn without_empty_dirs(loaded: LoadedVolume) -> Result<LoadedVolume> {
    let (mut walk, mut full) = (loaded.tree.walk(), HashSet::new());
    while let Some((path, id)) = walk.next() {
        let mut above = path.clone();
        let is_file = !loaded.tree.node(id).is_dir();
        while is_file && above.pop() && full.insert(above.clone()) {}
    }
    selected(loaded, |path, node, _| !node.is_dir() || path.is_root() || full.contains(path))
}

fn rebuilt(
    loaded: LoadedVolume,
    links: bool,
    mut change: impl FnMut(&ImagePath, &Node, &mut Edited) -> bool,
) -> Result<LoadedVolume> {
    let tree = &loaded.tree;
    let mut builder = TreeBuilder::new(tree.node(NodeId::ROOT).meta);
    let mut inodes: HashMap<usize, InodeId> = HashMap::new();
    let mut firsts: HashMap<NodeId, ImagePath> = HashMap::new();
    let mut left_out: Option<ImagePath> = None;
    let mut walk = tree.walk();
    while let Some((path, id)) = walk.next() {
        if left_out.as_ref().is_some_and(|above| path.starts_with(above)) {
            continue;
        }
        let node = tree.node(id);
        let mut edit =
            Edited { kind: node.kind.clone(), meta: node.meta, xattrs: tree.xattrs(node.xattrs).clone() };
        if !change(path, node, &mut edit) {
            if node.is_dir() {
                left_out = Some(path.clone());
            }
            continue;
        }
        if let Some(first) = firsts.get(&id) {
            builder.link(path, first.clone())?;
            continue;
        }
        if links && node.links > 1 && !node.is_dir() {
            firsts.insert(id, path.clone());
        }
        let built = builder.add(path, edit.kind, edit.meta, edit.xattrs)?;
        if let Some(inode) = loaded.inodes.get(id.index()) {
            inodes.insert(built.index(), *inode);
        }
    }
    numbered(builder, &inodes, &loaded)
}

/// Returns the part of a loaded image below a path, which becomes its root; of any file but a
/// directory the root holds it alone.
///
/// Errors: `NotFound` for a path without a file; those of building a tree.
pub fn below(loaded: LoadedVolume, top: &ImagePath) -> Result<LoadedVolume> {
    let tree = &loaded.tree;
    let missing = || packfs::Error::not_found(format!("{top:?}: no such file in the image"));
    let id = tree.find(top).ok_or_else(missing)?;
    let (start, is_dir) = (tree.node(id).meta, tree.node(id).is_dir());
    let cut = top.names().count().saturating_sub(usize::from(!is_dir));
    let root = if is_dir { start } else { packfs::Meta { mode: 0o755, ..packfs::Meta::default() } };
    let (mut builder, mut inodes) = (TreeBuilder::new(root), HashMap::new());
    let mut firsts: HashMap<NodeId, ImagePath> = HashMap::new();
    let mut walk = tree.walk();
    while let Some((path, id)) = walk.next() {
        if !path.starts_with(top) {
            continue;
        }
        let mut place = ImagePath::root();
        path.names().skip(cut).for_each(|name| place.push(name));
        if let Some(first) = firsts.get(&id) {
            builder.link(&place, first.clone())?;
            continue;
        }
        let node = tree.node(id);
        if node.links > 1 && !node.is_dir() {
            firsts.insert(id, place.clone());
        }
        let built = builder.add(&place, node.kind.clone(), node.meta, tree.xattrs(node.xattrs).clone())?;
        if let Some(inode) = loaded.inodes.get(id.index()) {
            inodes.insert(built.index(), *inode);
        }
    }
    numbered(builder, &inodes, &loaded)
}

/// Returns a loaded image whose root became the directory `place`.
///
/// Errors: those of building a tree.
pub fn beneath(loaded: LoadedVolume, place: &ImagePath) -> Result<LoadedVolume> {
    let tree = &loaded.tree;
    let (mut builder, mut inodes) = (TreeBuilder::new(tree.node(NodeId::ROOT).meta), HashMap::new());
    let mut firsts: HashMap<NodeId, ImagePath> = HashMap::new();
    let mut walk = tree.walk();
    while let Some((path, id)) = walk.next() {
        let mut at = place.clone();
        path.names().for_each(|name| at.push(name));
        if let Some(first) = firsts.get(&id) {
            builder.link(&at, first.clone())?;
            continue;
        }
        let node = tree.node(id);
        if node.links > 1 && !node.is_dir() {
            firsts.insert(id, at.clone());
        }
        let built = builder.add(&at, node.kind.clone(), node.meta, tree.xattrs(node.xattrs).clone())?;
        if let Some(inode) = loaded.inodes.get(id.index()) {
            inodes.insert(built.index(), *inode);
        }
    }
    numbered(builder, &inodes, &loaded)
}

/// Completes a tree with the inode of each node; nodes without one get the root's.
fn numbered(
    builder: TreeBuilder,
    inodes: &HashMap<usize, InodeId>,
    loaded: &LoadedVolume,
) -> Result<LoadedVolume> {
    let (tree, numbers) = builder.finish_numbered()?;
    let root = loaded.inodes.first().copied().unwrap_or(InodeId(0));
    let inodes = numbers.iter().map(|built| inodes.get(&built.index()).copied().unwrap_or(root)).collect();
    Ok(LoadedVolume { tree, inodes, faults: Faults::default() })
}
