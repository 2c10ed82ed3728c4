//! Reads all that a volume tells.

use packfs_core::Result;
use packfs_format::{DirCursor, InodeKind, Volume};
use std::ops::ControlFlow;

/// Reads all names, inodes, targets, attributes and extents, and looks a name up that is nowhere;
/// directories at most `depth_max` deep, since a damaged image may have them in a circle.
///
/// # Errors
/// The first that the volume has.
pub fn read_all(volume: &dyn Volume, depth_max: usize) -> Result<()> {
    let mut open = vec![(volume.root(), 0)];
    while let Some((id, depth)) = open.pop() {
        let inode = volume.inode(id)?;
        volume.xattrs(id)?;
        match inode.kind {
            InodeKind::Directory if depth < depth_max => {
                volume.read_dir(id, DirCursor::default(), &mut |entry, _| {
                    open.push((entry.id, depth + 1));
                    ControlFlow::Continue(())
                })?;
                volume.lookup(id, b"zzz")?;
            }
            InodeKind::File { .. } => volume.extents(id, 0..u64::MAX, &mut |_| ControlFlow::Continue(()))?,
            InodeKind::Symlink => drop(volume.read_link(id)?),
            _ => {}
        }
    }
    Ok(())
}
