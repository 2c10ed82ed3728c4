//! Whiteouts, the marks of files that an upper layer hides in lower ones, converted between the
//! formats of AUFS and overlayfs.

use packfs_core::overlay::{self, AUFS_OPAQUE, AUFS_RESERVED, Effect};
use packfs_core::{
    ContentId, Edited, Entry, Error, ImagePath, Meta, Name, NodeId, NodeKind, Result, Tree, TreeEdit, Xattrs,
    words,
};
use std::collections::HashSet;

/// Format of whiteouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Whiteouts {
    /// Unchanged: files like others.
    #[default]
    Keep,
    /// The format of overlayfs.
    Overlayfs,
    /// The format of AUFS and container layers.
    Aufs,
}

words!(Whiteouts: "form of whiteouts", { Overlayfs: "overlayfs", Aufs: "aufs", Keep: "keep" });

pub(crate) const WHITEOUT_DEVICE: NodeKind = NodeKind::CharDevice(overlay::WHITEOUT_DEVICE);
/// An empty file, whose contents are never read.
const EMPTY_FILE: NodeKind = NodeKind::File { len: 0, content: ContentId(0) };

/// Errors: `Failed` for a whiteout with too long a name.
pub(crate) fn respell(tree: Tree, whiteouts: Whiteouts) -> Result<Tree> {
    match whiteouts {
        Whiteouts::Keep => Ok(tree),
        Whiteouts::Overlayfs => with_origins(to_overlayfs(&tree)?),
        Whiteouts::Aufs => to_aufs(&tree),
    }
}

pub(crate) fn count_marks(tree: &Tree) -> u64 {
    let entries = tree.nodes().filter(|(_, node)| node.is_dir()).flat_map(|(id, _)| tree.entries(id));
    let is_mark = |entry: &Entry<'_>| {
        let name = entry.name;
        name == AUFS_OPAQUE || hidden_name(tree, entry.node, name).is_some()
    };
    entries.filter(is_mark).count() as u64
}

/// `None` for any other file.
fn hidden_name<'n>(tree: &Tree, id: NodeId, name: &'n [u8]) -> Option<&'n [u8]> {
    let is_file = matches!(tree.node(id).kind, NodeKind::File { .. });
    overlay::hidden_by_aufs(name).filter(|_| is_file)
}

fn to_overlayfs(tree: &Tree) -> Result<Tree> {
    let mut edit = TreeEdit::new(tree, Meta::default());
    let mut left_out: Option<ImagePath> = None;
    let mut walk = tree.walk();
    while let Some((path, id)) = walk.next() {
        if left_out.as_ref().is_some_and(|dir| path.starts_with(dir)) {
            continue;
        }
        let name = path.file_name().map_or(&b""[..], |name| name.as_bytes());
        if name.starts_with(AUFS_RESERVED) {
            left_out = Some(path.clone());
            continue;
        }
        match hidden_name(tree, id, name) {
            Some(hidden) => add_device(&mut edit, tree, path, id, hidden)?,
            None if tree.node(id).is_dir() && is_opaque(tree, path, id, name) => {
                let mut edited = edit.edited(path, id);
                edited.xattrs.insert(overlay::OPAQUE[0].to_vec(), b"y".to_vec());
                edit.keep(id, edited)?;
            }
            None => edit.keep(id, edit.edited(path, id))?,
        }
    }
    edit.finish()
}

/// True if marked opaque, or if the directory replaces a hidden name.
fn is_opaque(tree: &Tree, path: &ImagePath, id: NodeId, name: &[u8]) -> bool {
    let replaces = !path.is_root() && {
        let mark = overlay::aufs_mark_of(name);
        let parent = tree.node(id).parent();
        tree.lookup(parent, &mark).is_some_and(|mark_id| hidden_name(tree, mark_id, &mark).is_some())
    };
    replaces || tree.lookup(id, AUFS_OPAQUE).is_some()
}

/// Keeps an entry of the layer with that name, which hides the lower one anyway.
fn add_device(
    edit: &mut TreeEdit<'_>,
    tree: &Tree,
    mark: &ImagePath,
    id: NodeId,
    hidden: &[u8],
) -> Result<()> {
    let mut path = mark.clone();
    path.pop();
    let has_own = tree.find(&path).is_some_and(|dir| tree.lookup(dir, hidden).is_some());
    if let (false, Ok(name)) = (has_own, Name::new(hidden)) {
        path.push(name);
        let node = tree.node(id);
        edit.builder().add(&path, WHITEOUT_DEVICE, node.meta, tree.xattrs(node.xattrs).clone())?;
    }
    Ok(())
}

fn to_aufs(tree: &Tree) -> Result<Tree> {
    let mut edit = TreeEdit::new(tree, Meta::default());
    let mut walk = tree.walk();
    while let Some((path, id)) = walk.next() {
        let node = tree.node(id);
        let xattrs = tree.xattrs(node.xattrs);
        if Effect::of(&node.kind, xattrs) == Effect::Hides && !path.is_root() {
            let name = path.file_name().map_or(&b""[..], |name| name.as_bytes());
            let mark = overlay::aufs_mark_of(name);
            let mut at = path.clone();
            at.pop();
            at.push(
                Name::new(&mark)
                    .map_err(|why| Error::failed(format!("cannot create a whiteout for {path:?}: {why}")))?,
            );
            edit.builder().add(&at, EMPTY_FILE, node.meta, without(xattrs, overlay::WHITEOUT))?;
            continue;
        }
        if !node.is_dir() {
            edit.keep(id, edit.edited(path, id))?;
            continue;
        }
        edit.keep(id, Edited { xattrs: overlay::without_marks(xattrs.clone()), ..edit.edited(path, id) })?;
        if overlay::is_opaque(xattrs) {
            let name = Name::new(AUFS_OPAQUE).map_err(Error::failed)?;
            let meta = Meta { mode: node.meta.mode & 0o666, ..node.meta };
            edit.builder().add(&path.join(name), EMPTY_FILE, meta, Xattrs::new())?;
        }
    }
    edit.finish()
}

/// Marks the directories that have whiteouts of overlayfs, as mkfs.erofs does; see
/// [`overlay::mark_origin`].
///
/// Errors: those of building a tree.
pub fn with_origins(tree: Tree) -> Result<Tree> {
    let is_whiteout = |entry: Entry<'_>| tree.node(entry.node).kind == WHITEOUT_DEVICE;
    let dirs = tree.nodes().filter(|(_, node)| node.is_dir()).map(|(id, _)| id);
    let marked: HashSet<NodeId> = dirs.filter(|id| tree.entries(*id).any(is_whiteout)).collect();
    if marked.is_empty() {
        return Ok(tree);
    }
    tree.edit(|_, id, edited| {
        if marked.contains(&id) {
            overlay::mark_origin(&mut edited.xattrs);
        }
        Ok(true)
    })
}

fn without(xattrs: &Xattrs, names: [&[u8]; 2]) -> Xattrs {
    let kept = xattrs.iter().filter(|(name, _)| !names.contains(&name.as_slice()));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::{FileType, Meta, TreeBuilder};

    /// Returns a tree of paths; a final slash marks directories, `=` character devices 0/0.
    fn tree(paths: &[&str]) -> Tree {
        let mut builder = TreeBuilder::new(Meta { mode: 0o755, ..Meta::default() });
        for path in paths {
            let kind = match path.as_bytes().last() {
                Some(b'/') => NodeKind::Directory,
                Some(b'=') => WHITEOUT_DEVICE,
                _ => EMPTY_FILE,
            };
            let path = ImagePath::parse(path.trim_end_matches(['/', '=']).as_bytes()).unwrap();
            builder.add(&path, kind, Meta { mode: 0o640, ..Meta::default() }, Xattrs::new()).unwrap();
        }
        builder.finish().unwrap()
    }

    /// Returns paths as [`tree`] takes them; `!` marks an opaque directory.
    fn paths(tree: &Tree) -> Vec<String> {
        let mut paths = Vec::new();
        let mut walk = tree.walk();
        while let Some((path, id)) = walk.next() {
            let node = tree.node(id);
            let mut text = String::from_utf8(path.as_bytes().to_vec()).unwrap();
            match node.kind.file_type() {
                FileType::Directory => text.push('/'),
                FileType::CharDevice => text.push('='),
                _ => {}
            }
            if tree.xattrs(node.xattrs).contains_key(overlay::OPAQUE[0]) {
                text.push('!');
            }
            paths.push(text);
        }
        paths
    }

    fn overlayfs(given: &[&str]) -> Vec<String> {
        paths(&respell(tree(given), Whiteouts::Overlayfs).unwrap())
    }

    #[test]
    fn marks_become_devices_and_opaque_directories() {
        let layer = ["a/", "a/.wh.gone", "a/kept", "b/", "b/.wh..wh..opq", "b/new", ".wh.c"];
        assert_eq!(overlayfs(&layer), ["/", "a/", "a/gone=", "a/kept", "b/!", "b/new", "c="]);
    }

    #[test]
    fn directories_of_whiteouts_are_marked_for_linux() {
        let origins = |layer: &[&str]| -> Vec<String> {
            let tree = respell(tree(layer), Whiteouts::Overlayfs).unwrap();
            let is_marked = |id: NodeId| overlay::has_any(tree.xattrs(tree.node(id).xattrs), overlay::ORIGIN);
            tree.nodes().filter(|(id, _)| is_marked(*id)).map(|(id, _)| tree.path(id).to_string()).collect()
        };
        let layer = ["a/", "a/.wh.x", "b/", "b/.wh..wh..opq", "b/.wh.x", "c/", "c/.wh..wh..opq", "d/x="];
        assert_eq!(origins(&layer), ["a", "b", "d"]);
        assert_eq!(origins(&[".wh.x"]), ["/"]);
        let there = respell(tree(&layer), Whiteouts::Overlayfs).unwrap();
        let back = respell(there, Whiteouts::Aufs).unwrap();
        assert!(back.nodes().all(|(_, node)| back.xattrs(node.xattrs).is_empty()));
    }

    #[test]
    fn a_whole_layer_can_be_opaque() {
        assert_eq!(overlayfs(&[".wh..wh..opq", "a"]), ["/!", "a"]);
    }

    #[test]
    fn a_replacement_stays_and_a_directory_hides_everything_below() {
        assert_eq!(
            overlayfs(&[".wh.file", "file", ".wh.dir", "dir/", "dir/x"]),
            ["/", "dir/!", "dir/x", "file"]
        );
    }

    #[test]
    fn drops_names_reserved_by_aufs() {
        let layer = [".wh..wh.plnk/", ".wh..wh.plnk/1.2", ".wh..wh.aufs", "a"];
        assert_eq!(overlayfs(&layer), ["/", "a"]);
    }

    #[test]
    fn keeps_files_that_resemble_whiteouts() {
        let layer = [".wh.", ".wh...", ".wh.dir/", ".wh.dir/x", "wh.a"];
        assert_eq!(overlayfs(&layer), ["/", ".wh.", ".wh...", ".wh.dir/", ".wh.dir/x", "wh.a"]);
        assert_eq!(paths(&respell(tree(&[".wh.a"]), Whiteouts::Keep).unwrap()), ["/", ".wh.a"]);
    }

    #[test]
    fn devices_and_opaque_directories_become_marks_again() {
        let layer = ["a/", "a/.wh.gone", "a/kept", "b/", "b/.wh..wh..opq", "b/new", ".wh.c"];
        let there = respell(tree(&layer), Whiteouts::Overlayfs).unwrap();
        let back = paths(&respell(there, Whiteouts::Aufs).unwrap());
        assert_eq!(back, ["/", ".wh.c", "a/", "a/.wh.gone", "a/kept", "b/", "b/.wh..wh..opq", "b/new"]);
    }

    #[test]
    fn marks_keep_permissions_owners_and_times() {
        let there = respell(tree(&[".wh.a"]), Whiteouts::Overlayfs).unwrap();
        let find =
            |tree: &Tree, path: &[u8]| tree.node(tree.find(&ImagePath::parse(path).unwrap()).unwrap()).meta;
        assert_eq!(find(&there, b"a").mode, 0o640);
        assert_eq!(find(&respell(there, Whiteouts::Aufs).unwrap(), b".wh.a").mode, 0o640);
    }

    #[test]
    fn marks_that_share_an_inode_become_devices_each() {
        let mut builder = TreeBuilder::new(Meta::default());
        let path = |text: &str| ImagePath::parse(text.as_bytes()).unwrap();
        builder.add(&path(".wh..wh.aufs"), EMPTY_FILE, Meta::default(), Xattrs::new()).unwrap();
        for name in [".wh.a", ".wh.b"] {
            builder.link(&path(name), path(".wh..wh.aufs")).unwrap();
        }
        let there = respell(builder.finish().unwrap(), Whiteouts::Overlayfs).unwrap();
        assert_eq!(paths(&there), ["/", "a=", "b="]);
    }

    #[test]
    fn names_that_are_too_long_for_a_mark_are_refused() {
        let long = format!("{}=", "n".repeat(252));
        let error = respell(tree(&[&long]), Whiteouts::Aufs).err().unwrap();
        assert!(error.to_string().contains("a whiteout for"), "{error}");
    }
}
