//! Common parts of reading the hierarchy of volumes into a tree.

use crate::{DirCursor, DirEntry, Inode, InodeId, InodeKind, NameOrder, Volume, units::*};
use packfs_core::{ContentId, Error, FileType, Meter, Name, NodeKind, Result, escaped};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Returns the name of an image of this format in messages.
pub fn image_words(volume: &dyn Volume) -> String {
    format!("{} image", volume.format().name)
}

/// Returns the error of an image whose hierarchy violates the rules.
pub fn corrupt(volume: &dyn Volume, fault: impl std::fmt::Display) -> Error {
    Error::corrupt(image_words(volume), fault)
}

/// Checks the name of an entry.
///
/// # Errors
///
/// `Corrupt` for an invalid name.
#[inline]
pub fn entry_name<'n>(volume: &dyn Volume, name: &'n [u8]) -> Result<Name<'n>> {
    Name::new(name).map_err(|fault| corrupt(volume, format!("entry \"{}\": {fault}", escaped(name))))
}

/// Compares an inode with the type in its entry, and checks it for contradictions.
///
/// # Errors
///
/// `Corrupt` for a contradiction.
#[inline]
pub fn check_claims(volume: &dyn Volume, claim: FileType, inode: &Inode) -> Result<()> {
    let truth = inode.kind.file_type();
    let fault = match inode.doubt {
        _ if claim != truth => format!("its entry says {}, its inode {}", claim.word(), truth.word()),
        Some(doubt) => doubt.to_owned(),
        None => return Ok(()),
    };
    Err(corrupt(volume, fault))
}

/// Reads all entries of a directory; `visit` reports the names whose order matters.
///
/// # Errors
///
/// That of `visit`, which ends the reading. The inner result has the fault of the directory.
pub fn read_entries(
    volume: &dyn Volume,
    dir: InodeId,
    mut visit: impl FnMut(DirEntry, &mut NameOrder) -> Result<()>,
) -> Result<Result<()>> {
    let (mut order, mut outcome) = (NameOrder::of(volume), Ok(()));
    let read = volume.read_dir(dir, DirCursor::default(), &mut |entry, _| {
        outcome = visit(entry, &mut order);
        if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    outcome.map(|()| read.and_then(|()| order.finish()))
}

/// Directories of an image that were met: a second name of one may form a loop.
#[derive(Debug, Default)]
pub struct SeenDirs(HashSet<InodeId>);

impl SeenDirs {
    /// Adds a directory.
    ///
    /// # Errors
    ///
    /// `Corrupt` for one that was met before.
    #[inline]
    pub fn enter(&mut self, volume: &dyn Volume, dir: InodeId) -> Result<()> {
        if self.0.insert(dir) {
            Ok(())
        } else {
            Err(corrupt(volume, "this directory was reached before by another name"))
        }
    }
}

/// Returns the node of an inode: a file has `content`, and a symbolic link its target. Both count
/// for `meter`.
///
/// # Errors
///
/// Those of [`Volume::read_link`]; `Corrupt` for an empty target, which trees cannot represent;
/// `Limit`.
pub fn node_kind(
    volume: &dyn Volume,
    (id, kind): (InodeId, InodeKind),
    content: ContentId,
    meter: &mut Meter,
) -> Result<NodeKind> {
    Ok(match kind {
        InodeKind::Directory => NodeKind::Directory,
        InodeKind::File { len } => {
            meter.file(len)?;
            NodeKind::File { len, content }
        }
        InodeKind::Symlink => {
            let target = volume.read_link(id)?;
            meter.target(target.len())?;
            if target.is_empty() {
                return Err(corrupt(volume, "the target of a symbolic link is not in it"));
            }
            NodeKind::Symlink(target.into())
        }
        InodeKind::BlockDevice(number) => NodeKind::BlockDevice(number),
        InodeKind::CharDevice(number) => NodeKind::CharDevice(number),
        InodeKind::Fifo => NodeKind::Fifo,
        InodeKind::Socket => NodeKind::Socket,
    })
}

/// Names of directories and their parents, for messages: paths of all entries would take more
/// memory than the tree.
#[derive(Debug)]
pub struct DirNames(Vec<(usize, Box<[u8]>)>);

impl Default for DirNames {
    fn default() -> Self {
        DirNames(vec![(DirNames::ROOT, Box::default())])
    }
}

impl DirNames {
    /// Number of the root.
    pub const ROOT: usize = 0;

    /// Adds a directory; returns its number.
    pub fn add(&mut self, parent: usize, name: &[u8]) -> usize {
        self.0.push((parent, name.into()));
        self.0.len().minus(1)
    }

    /// Returns the path of `name` in a directory, quoted; of the directory itself if the name is
    /// empty.
    pub fn path(&self, mut dir: usize, name: &[u8]) -> String {
        let mut names = vec![name];
        while let Some((parent, name)) = self.0.get(dir).filter(|_| dir != DirNames::ROOT) {
            names.push(name);
            dir = *parent;
        }
        let path = names.into_iter().rev().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(&b'/');
        format!("\"{}\"", if path.is_empty() { escaped(b"/") } else { escaped(&path) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_from_the_root_to_the_name() {
        let mut names = DirNames::default();
        let etc = names.add(DirNames::ROOT, b"etc");
        let dir = names.add(etc, b"ssl\n");
        assert_eq!(names.path(DirNames::ROOT, b""), "\"/\"");
        assert_eq!(names.path(etc, b"hosts"), "\"etc/hosts\"");
        assert_eq!(names.path(dir, b""), "\"etc/ssl\\n\"");
    }
}
