//! Reads all that a volume tells, and what its files hold.

use packfs_codec::Decoders;
use packfs_core::{Image, Result};
use packfs_format::{DirCursor, Extent, ExtentFrom, InodeId, InodeKind, Volume};
use std::ops::{ControlFlow, Range};

/// Reads all names, inodes, targets, attributes and extents, and looks a name up that is nowhere;
/// directories at most `depth_max` deep, since a damaged image may have them in a circle. Returns
/// the number of names, the root's among them.
///
/// # Errors
/// The first that the volume has.
pub fn read_all(volume: &dyn Volume, depth_max: usize) -> Result<usize> {
    let (mut open, mut count) = (vec![(volume.root(), 0)], 0);
    while let Some((id, depth)) = open.pop() {
        count += 1;
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
    Ok(count)
}

/// Decodes a range of a file, whose data lie in `image` unless the volume has an image of them.
///
/// # Errors
/// Those of the volume.
///
/// # Panics
/// If extents leave a gap, or what they name cannot be read.
pub fn read_range(
    volume: &dyn Volume,
    image: &dyn Image,
    file: InodeId,
    range: Range<u64>,
) -> Result<Vec<u8>> {
    let joined = volume.data_image();
    let image = joined.as_deref().unwrap_or(image);
    let (mut found, mut decoders, first) = (Vec::new(), Decoders::new(), range.start);
    volume.extents(file, range, &mut |extent: Extent| {
        assert_eq!(extent.offset, first + found.len() as u64, "extents leave no gap");
        let mut part = vec![0; extent.len as usize];
        match extent.from {
            ExtentFrom::Hole => {}
            ExtentFrom::Stored(at) => image.read_exact_at(at, &mut part).unwrap(),
            ExtentFrom::Block { block, start } => {
                let mut stored = vec![0; block.stored_len as usize];
                image.read_exact_at(block.offset, &mut stored).unwrap();
                let mut decoded = vec![0; block.decoded_len as usize];
                let algorithm = block.algorithm.unwrap();
                decoders.decompress_block(algorithm, &block, &stored, &mut decoded).unwrap();
                part.copy_from_slice(&decoded[start as usize..][..extent.len as usize]);
            }
        }
        found.extend(part);
        ControlFlow::Continue(())
    })?;
    Ok(found)
}
