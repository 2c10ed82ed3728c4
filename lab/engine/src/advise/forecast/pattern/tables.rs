//! Where a format keeps its metadata.

use super::squashfs::{Metadata, Names};
use super::{Place, Touch, erofs};
use packfs::{DirCursor, InodeId, Result, Volume};
use std::ops::ControlFlow;

/// The tables of an image.
pub(super) enum Tables {
    /// SquashFS 4.0.
    Squashfs(Box<Metadata>),
    /// EROFS, and what nothing better is known of.
    Erofs,
}

/// A directory on the way to some file.
pub(super) enum Dir {
    /// Where its names stand.
    Squashfs(Names),
    /// Bytes of its list, about.
    Erofs(u64),
}

impl Tables {
    /// Those of a volume.
    ///
    /// Errors: those of reading the image.
    pub(super) fn of(volume: &dyn Volume) -> Result<Tables> {
        match volume.format().name {
            "squashfs" => Ok(Tables::Squashfs(Box::new(Metadata::of(volume)?))),
            _ => Ok(Tables::Erofs),
        }
    }

    /// What is to be known of a directory to find names in it.
    ///
    /// Errors: those of reading the image.
    pub(super) fn dir(&self, volume: &dyn Volume, id: InodeId) -> Result<Dir> {
        match self {
            Tables::Squashfs(metadata) => Ok(Dir::Squashfs(metadata.names(volume, id)?)),
            Tables::Erofs => {
                let mut listed = 0;
                volume.read_dir(id, DirCursor::default(), &mut |entry, _| {
                    listed += 12 + entry.name.len() as u64;
                    ControlFlow::Continue(())
                })?;
                Ok(Dir::Erofs(listed))
            }
        }
    }

    /// What is read to find a name in a directory.
    pub(super) fn name(&self, id: InodeId, dir: &Dir, name: &[u8]) -> Vec<Place> {
        match (self, dir) {
            (Tables::Squashfs(metadata), Dir::Squashfs(names)) => metadata.name(names, name),
            (Tables::Erofs, Dir::Erofs(listed)) => erofs::name(id, *listed, name),
            _ => Vec::new(),
        }
    }

    /// What is read for an inode, of a file of so many bytes in these blocks.
    pub(super) fn inode(&self, id: InodeId, len: u64, touches: &[Touch]) -> Vec<Place> {
        match self {
            Tables::Squashfs(metadata) => metadata.inode(id, touches),
            Tables::Erofs => erofs::inode(id, len),
        }
    }

    /// The blocks with bytes that a file has stored as they are, where these are more than those; none where they are not.
    pub(super) fn stored(&self, offset: u64, from: u64, len: u64) -> Option<Vec<Touch>> {
        match self {
            Tables::Squashfs(metadata) => Some(metadata.stored(offset, from, len)),
            Tables::Erofs => None,
        }
    }
}
