//! Attributes that tell overlayfs where contents are, and escapes for those that the tree itself
//! has.

use super::SHA256_LEN;
use super::names::*;
use super::tree::{Inode, Tree};
use packfs_core::{Error, FileType, Result, Xattrs};
use packfs_format::units::*;

/// `FS_VERITY_HASH_ALG_SHA256` of Linux's `fsverity.h`, also in the attribute of overlayfs.
pub(super) const SHA256: u8 = 1;
/// Header of that attribute: version, length, flags, hash function.
pub(super) const METACOPY_HEAD_LEN: usize = 4;

/// True if overlayfs would take a file of the tree for a whiteout.
pub(crate) fn has_whiteouts(tree: &Tree) -> bool {
    tree.inodes.iter().any(Inode::is_whiteout)
}

fn metacopy(digest: Option<[u8; SHA256_LEN]>) -> Vec<u8> {
    let Some(digest) = digest else { return Vec::new() };
    let len = u8::try_from(METACOPY_HEAD_LEN.plus(SHA256_LEN)).unwrap_or(u8::MAX);
    [[0, len, 0, SHA256].as_slice(), digest.as_slice()].concat()
}

/// Rewrites a tree so that overlayfs shows the original.
///
/// Errors: `Failed` for an inode with too many attributes.
pub(crate) fn rewrite(tree: &mut Tree, version: u32) -> Result<()> {
    let full = |fault: &'static str| Error::failed(format!("attributes for overlayfs: {fault}"));
    let mut parents_of_whiteouts = Vec::new();
    for number in 0..u32::try_from(tree.inodes.len()).unwrap_or(u32::MAX) {
        let Some(inode) = tree.get(number) else { break };
        let own = |child: &&super::tree::Child| !child.is_link;
        let mut children = inode.children.values().filter(own).filter_map(|child| tree.get(child.inode));
        if children.any(Inode::is_whiteout) {
            parents_of_whiteouts.push(number);
        }
    }
    for inode in &mut tree.inodes {
        escape(inode);
        if inode.is_external() {
            inode.set_xattr(METACOPY, &metacopy(inode.file.digest)).map_err(full)?;
            if !inode.file.object.is_empty() {
                let path = [b"/", inode.file.object.as_slice()].concat();
                inode.set_xattr(REDIRECT, &path).map_err(full)?;
            }
        }
        if inode.is_whiteout() {
            inode.size = 0;
            let file = Inode::new(FileType::File, inode.mode);
            inode.mode = file.mode;
            inode.set_xattr(WHITEOUT, b"").map_err(full)?;
            inode.set_xattr(USER_WHITEOUT, b"").map_err(full)?;
        }
    }
    for parent in parents_of_whiteouts {
        let Some(parent) = tree.get_mut(parent) else { continue };
        let marks: &[(&[u8], &[u8])] = match version {
            0 => &[(WHITEOUTS, b""), (USER_WHITEOUTS, b"")],
            _ => &[(WHITEOUTS, b""), (USER_WHITEOUTS, b""), (ESCAPED_OPAQUE, b"x"), (USER_OPAQUE, b"x")],
        };
        marks.iter().try_for_each(|(name, value)| parent.set_xattr(name, value)).map_err(full)?;
    }
    add_stubs(tree)
}

/// Renames attributes that overlayfs would interpret.
fn escape(inode: &mut Inode) {
    if !inode.xattrs.keys().any(|name| name.starts_with(OVERLAY)) {
        return;
    }
    let escaped = |name: Vec<u8>| match name.strip_prefix(OVERLAY) {
        Some(rest) => [ESCAPED, rest].concat(),
        None => name,
    };
    let xattrs: Xattrs = std::mem::take(&mut inode.xattrs);
    inode.xattrs = xattrs.into_iter().map(|(name, value)| (escaped(name), value)).collect();
}

/// Adds whiteouts to the root that hide the directories of objects, 00 to ff.
fn add_stubs(tree: &mut Tree) -> Result<()> {
    let Some(root) = tree.get_mut(Tree::ROOT) else { return Ok(()) };
    root.set_xattr(OPAQUE, b"y").map_err(|fault| Error::failed(format!("/: {fault}")))?;
    let mut stub = Inode::new(FileType::CharDevice, 0o644);
    (stub.owner, stub.mtime) = (root.owner, root.mtime);
    if let Some(label) = root.xattrs.get(SELINUX) {
        stub.xattrs.insert(SELINUX.to_vec(), label.clone());
    }
    let names: Vec<String> = (0..=u8::MAX).map(|number| format!("{number:02x}")).collect();
    let missing: Vec<&String> =
        names.iter().filter(|name| !root.children.contains_key(name.as_bytes())).collect();
    for name in missing {
        tree.add(Tree::ROOT, name.as_bytes(), stub.clone())?;
    }
    Ok(())
}
