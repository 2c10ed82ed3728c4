//! Writes a tree as a manifest that reproduces it, beside a directory with its files.

use super::{FIRST_LINE, words};
use packfs_core::{DeviceNumber, FileType, ImagePath, Node, NodeId, NodeKind, Result, ResultExt, Tree};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Writes all metadata of a tree, one line an entry, in the order of [`Tree::walk`]. Each nonempty
/// file gets `from=` with its own first path, so that the manifest can be packed from inside a
/// directory that the tree was unpacked to.
///
/// Errors: `Io` if `out` fails.
pub fn write_manifest(tree: &Tree, out: &mut dyn Write) -> Result<()> {
    write_manifest_below(tree, Path::new(""), out)
}

/// Writes a manifest for a directory of this machine: `from=` contains paths below `folder`. If
/// that is absolute, the manifest can be packed from anywhere.
///
/// Errors: as [`write_manifest`].
pub fn write_manifest_below(tree: &Tree, folder: &Path, out: &mut dyn Write) -> Result<()> {
    let cannot_write = || "cannot write the manifest";
    let mut line = [FIRST_LINE, b"\n"].concat();
    out.write_all(&line).or_io(cannot_write)?;
    // Only nodes with several names, so that the table stays small.
    let mut first_paths: HashMap<NodeId, ImagePath> = HashMap::new();
    let mut walk = tree.walk();
    while let Some((path, id)) = walk.next() {
        let node = tree.node(id);
        line.clear();
        if let Some(first) = first_paths.get(&id) {
            append_path(&mut line, "link", path);
            append_key(&mut line, "target", first.as_bytes());
        } else {
            append_node(&mut line, tree, path, node, folder);
            if !node.is_dir() && node.links > 1 {
                first_paths.insert(id, path.clone());
            }
        }
        line.push(b'\n');
        out.write_all(&line).or_io(cannot_write)?;
    }
    Ok(())
}

fn append_node(line: &mut Vec<u8>, tree: &Tree, path: &ImagePath, node: &Node, folder: &Path) {
    append_path(line, type_word(node.kind.file_type()), path);
    let owner = node.meta.owner;
    let meta =
        format!(" mode={:04o} uid={} gid={} mtime={}", node.meta.mode, owner.uid, owner.gid, node.meta.mtime);
    line.extend_from_slice(meta.as_bytes());
    match &node.kind {
        NodeKind::File { len: 0, .. } | NodeKind::Directory | NodeKind::Fifo | NodeKind::Socket => {}
        NodeKind::File { len, .. } => {
            line.extend_from_slice(format!(" size={len}").as_bytes());
            let from = folder.join(OsStr::from_bytes(path.as_bytes()));
            append_key(line, "from", from.as_os_str().as_bytes());
        }
        NodeKind::Symlink(target) => append_key(line, "target", target),
        NodeKind::BlockDevice(DeviceNumber { major, minor })
        | NodeKind::CharDevice(DeviceNumber { major, minor }) => {
            line.extend_from_slice(format!(" major={major} minor={minor}").as_bytes());
        }
    }
    for (name, value) in tree.xattrs(node.xattrs) {
        line.extend_from_slice(b" xattr.");
        words::append(line, name);
        line.push(b'=');
        words::append(line, value);
    }
}

fn append_path(line: &mut Vec<u8>, type_word: &str, path: &ImagePath) {
    line.extend_from_slice(type_word.as_bytes());
    line.push(b' ');
    words::append(line, if path.is_root() { b"/" } else { path.as_bytes() });
}

fn append_key(line: &mut Vec<u8>, key: &str, value: &[u8]) {
    line.push(b' ');
    line.extend_from_slice(key.as_bytes());
    line.push(b'=');
    words::append(line, value);
}

fn type_word(file_type: FileType) -> &'static str {
    match file_type {
        FileType::Directory => "dir",
        FileType::File => "file",
        FileType::Symlink => "symlink",
        FileType::BlockDevice => "block",
        FileType::CharDevice => "char",
        FileType::Fifo => "fifo",
        FileType::Socket => "socket",
    }
}
