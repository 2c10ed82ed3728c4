//! Parts of a loaded image.

use packfs::read::{Faults, LoadedVolume};
use packfs::{Edited, ImagePath, Node, NodeId, Result, TreeEdit};
use std::collections::HashSet;

/// Drops names, with everything below, for which `change` returns false.
pub fn selected(
    loaded: LoadedVolume,
    mut change: impl FnMut(&ImagePath, &Node, &mut Edited) -> bool,
) -> Result<LoadedVolume> {
    let tree = &loaded.tree;
    let edit = edit_of(&loaded).change(|path, id, edited| Ok(change(path, tree.node(id), edited)))?;
    numbered(&loaded, edit)
}

/// Converts each hard link to a separate file.
pub fn unlinked(loaded: LoadedVolume) -> Result<LoadedVolume> {
    numbered(&loaded, edit_of(&loaded).unlinked().change(|_, _, _| Ok(true))?)
}

pub fn kept_by_umask() -> u16 {
    // No other thread creates files yet.
    let mask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(mask);
    !u16::try_from(mask.bits()).unwrap_or(0)
}

/// Drops directories without any file below them.
pub fn without_empty_dirs(loaded: LoadedVolume) -> Result<LoadedVolume> {
    let (mut walk, mut full) = (loaded.tree.walk(), HashSet::new());
    while let Some((path, id)) = walk.next() {
        let mut above = path.clone();
        let is_file = !loaded.tree.node(id).is_dir();
        while is_file && above.pop() && full.insert(above.clone()) {}
    }
    selected(loaded, |path, node, _| !node.is_dir() || path.is_root() || full.contains(path))
}

/// The path becomes the root; a file other than a directory becomes the only entry of the root.
///
/// Errors: `NotFound` for a missing path.
pub fn below(loaded: LoadedVolume, top: &ImagePath) -> Result<LoadedVolume> {
    let tree = &loaded.tree;
    let missing = || packfs::Error::not_found(format!("{top:?}: no such file in the image"));
    let id = tree.find(top).ok_or_else(missing)?;
    let (start, is_dir) = (tree.node(id).meta, tree.node(id).is_dir());
    let cut = top.names().count().saturating_sub(usize::from(!is_dir));
    let root = if is_dir { start } else { packfs::Meta { mode: 0o755, ..packfs::Meta::default() } };
    let mut edit = TreeEdit::new(tree, root);
    let mut walk = tree.walk();
    while let Some((path, id)) = walk.next() {
        if path.starts_with(top) {
            let mut edited = edit.edited(path, id);
            edited.path = ImagePath::root();
            path.names().skip(cut).for_each(|name| edited.path.push(name));
            edit.keep(id, edited)?;
        }
    }
    numbered(&loaded, edit)
}

/// Moves the root to the directory `place`.
pub fn beneath(loaded: LoadedVolume, place: &ImagePath) -> Result<LoadedVolume> {
    let edit = edit_of(&loaded).change(|path, _, edited| {
        edited.path = place.clone();
        path.names().for_each(|name| edited.path.push(name));
        Ok(true)
    })?;
    numbered(&loaded, edit)
}

fn edit_of(loaded: &LoadedVolume) -> TreeEdit<'_> {
    TreeEdit::new(&loaded.tree, loaded.tree.node(NodeId::ROOT).meta)
}

/// Nodes without an inode get the root's.
fn numbered(loaded: &LoadedVolume, edit: TreeEdit<'_>) -> Result<LoadedVolume> {
    let (tree, origins) = edit.finish_numbered()?;
    let inode = |origin: &Option<NodeId>| loaded.inodes[origin.unwrap_or(NodeId::ROOT).index()];
    Ok(LoadedVolume { tree, inodes: origins.iter().map(inode).collect(), faults: Faults::default() })
}
