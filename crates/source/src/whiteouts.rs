//! Whiteouts: marks of files that an upper layer hides in lower ones, converted between the formats
//! of AUFS and overlayfs.
//!
//! AUFS, and so every OCI layer, uses regular files: `.wh.NAME` hides NAME, `.wh..wh..opq` hides
//! all entries of lower layers in its directory. Overlayfs uses character devices 0/0 with the
//! hidden name, and the attribute `trusted.overlay.opaque` of the directory. Sources: the OCI image
//! specification, "layer.md"; the kernel's Documentation/filesystems/overlayfs.rst.

use crate::rewrite::Rewrite;
use packfs_core::{
    ContentId, Entry, Error, ImagePath, Name, NodeId, NodeKind, Result, Tree, Xattrs, overlay,
};
use std::collections::HashSet;
use std::str::FromStr;

/// Format of whiteouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Whiteouts {
    /// Unchanged: files like others.
    #[default]
    Keep,
    /// The format of overlayfs.
    Overlayfs,
    /// The format of AUFS and container layers.
    Aufs,
}

impl FromStr for Whiteouts {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "keep" => Ok(Whiteouts::Keep),
            "overlayfs" => Ok(Whiteouts::Overlayfs),
            "aufs" => Ok(Whiteouts::Aufs),
            _ => Err(Error::usage(format!("whiteouts {text:?}: overlayfs, aufs or keep is allowed"))),
        }
    }
}

const WHITEOUT_PREFIX: &[u8] = b".wh.";
/// Names reserved by AUFS, except [`OPAQUE_NAME`].
const RESERVED_PREFIX: &[u8] = b".wh..wh.";
const OPAQUE_NAME: &[u8] = b".wh..wh..opq";
pub(crate) const WHITEOUT_DEVICE: NodeKind = NodeKind::CharDevice(overlay::WHITEOUT_DEVICE);
/// An empty file, whose contents are never read.
const EMPTY_FILE: NodeKind = NodeKind::File { len: 0, content: ContentId(0) };

/// Converts all whiteouts of a tree.
///
/// Errors: `Failed` for a whiteout with too long a name.
pub(crate) fn respell(tree: Tree, whiteouts: Whiteouts) -> Result<Tree> {
    match whiteouts {
        Whiteouts::Keep => Ok(tree),
        Whiteouts::Overlayfs => with_origins(to_overlayfs(&tree)?),
        Whiteouts::Aufs => to_aufs(&tree),
    }
}

/// Returns the number of AUFS whiteouts in a tree.
pub(crate) fn count_marks(tree: &Tree) -> u64 {
    let entries = tree.nodes().filter(|(_, node)| node.is_dir()).flat_map(|(id, _)| tree.entries(id));
    let is_mark = |entry: &Entry<'_>| {
        let name = entry.name;
        name == OPAQUE_NAME || hidden_name(tree, entry.node, name).is_some()
    };
    entries.filter(is_mark).count() as u64
}

/// Returns true for the name of a mark of AUFS.
pub(crate) fn is_mark_name(name: &[u8]) -> bool {
    name.starts_with(WHITEOUT_PREFIX)
}

/// Returns the name hidden by an AUFS whiteout; `None` for any other file.
fn hidden_name(tree: &Tree, id: NodeId, name: &[u8]) -> Option<Vec<u8>> {
    let hidden = name.strip_prefix(WHITEOUT_PREFIX)?;
    let is_mark = matches!(tree.node(id).kind, NodeKind::File { .. }) && Name::new(hidden).is_ok();
    is_mark.then(|| hidden.to_vec())
}

fn to_overlayfs(tree: &Tree) -> Result<Tree> {
    let mut rewrite = Rewrite::new(tree);
    let mut left_out: Option<ImagePath> = None;
    let mut walk = tree.walk();
    while let Some((path, id)) = walk.next() {
        if left_out.as_ref().is_some_and(|dir| path.starts_with(dir)) {
            continue;
        }
        let name = path.file_name().map_or(&b""[..], |name| name.as_bytes());
        if name.starts_with(RESERVED_PREFIX) {
            left_out = Some(path.clone());
            continue;
        }
        match hidden_name(tree, id, name) {
            Some(hidden) => add_device(&mut rewrite, tree, path, id, &hidden)?,
            None if tree.node(id).is_dir() && is_opaque(tree, path, id, name) => {
                rewrite.keep(path, id, |xattrs| {
                    let mut xattrs = xattrs.clone();
                    xattrs.insert(overlay::OPAQUE[0].to_vec(), b"y".to_vec());
                    xattrs
                })?;
            }
            None => rewrite.keep(path, id, Xattrs::clone)?,
        }
    }
    rewrite.finish()
}

/// Returns true for a directory that hides its contents in lower layers: it is marked opaque, or
/// replaces a hidden name.
fn is_opaque(tree: &Tree, path: &ImagePath, id: NodeId, name: &[u8]) -> bool {
    let replaces = !path.is_root() && {
        let mark = [WHITEOUT_PREFIX, name].concat();
        let parent = tree.node(id).parent();
        tree.lookup(parent, &mark).is_some_and(|mark_id| hidden_name(tree, mark_id, &mark).is_some())
    };
    replaces || tree.lookup(id, OPAQUE_NAME).is_some()
}

/// Replaces a whiteout by a device, unless the layer itself has an entry with that name, which
/// hides it anyway.
fn add_device(
    rewrite: &mut Rewrite<'_>,
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
        rewrite.add(&path, WHITEOUT_DEVICE, node.meta, tree.xattrs(node.xattrs).clone())?;
    }
    Ok(())
}

fn to_aufs(tree: &Tree) -> Result<Tree> {
    let mut rewrite = Rewrite::new(tree);
    let mut walk = tree.walk();
    while let Some((path, id)) = walk.next() {
        let node = tree.node(id);
        let xattrs = tree.xattrs(node.xattrs);
        if overlay::is_whiteout(&node.kind, xattrs) && !path.is_root() {
            let name = path.file_name().map_or(&b""[..], |name| name.as_bytes());
            let mark = [WHITEOUT_PREFIX, name].concat();
            let mut at = path.clone();
            at.pop();
            at.push(
                Name::new(&mark)
                    .map_err(|why| Error::failed(format!("cannot create a whiteout for {path:?}: {why}")))?,
            );
            rewrite.add(&at, EMPTY_FILE, node.meta, without(xattrs, overlay::WHITEOUT))?;
            continue;
        }
        if !node.is_dir() {
            rewrite.keep(path, id, Xattrs::clone)?;
            continue;
        }
        rewrite.keep(path, id, |xattrs| overlay::without_marks(xattrs.clone()))?;
        if overlay::is_opaque(xattrs) {
            let name = Name::new(OPAQUE_NAME).map_err(Error::failed)?;
            let meta = packfs_core::Meta { mode: node.meta.mode & 0o666, ..node.meta };
            rewrite.add(&path.join(name), EMPTY_FILE, meta, Xattrs::new())?;
        }
    }
    rewrite.finish()
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
    let mut rewrite = Rewrite::new(&tree);
    let mut walk = tree.walk();
    while let Some((path, id)) = walk.next() {
        rewrite.keep(path, id, |xattrs| {
            let mut xattrs = xattrs.clone();
            if marked.contains(&id) {
                overlay::mark_origin(&mut xattrs);
            }
            xattrs
        })?;
    }
    rewrite.finish()
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
