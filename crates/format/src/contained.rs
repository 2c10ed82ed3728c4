//! The one directory of a container: an image that contains whole images as files.
//!
//! Containers store neither owners nor times; the metadata here is common to all of them, so that
//! packing and reading a container agree.

use crate::{DirCursor, DirEntry, InnerImage, Inode, InodeId, InodeKind, units::*};
use packfs_core::{Error, FileType, Meta, Name, Owner, Result, Timestamp};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// The root of every container.
const ROOT: InodeId = InodeId(0);

/// A file of a container: a name and a length.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Contained {
    name: String,
    len: u64,
}

/// The root directory of a container and its files, in the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainedFiles {
    files: Vec<Contained>,
    index: HashMap<String, usize>,
}

impl ContainedFiles {
    /// Metadata of every file of a container: readable, owned by root, without a time.
    pub const FILE_META: Meta = meta(0o444);
    /// Metadata of its root directory.
    pub const ROOT_META: Meta = meta(0o555);

    /// Returns a directory without files.
    pub fn new() -> Self {
        ContainedFiles::default()
    }

    /// Adds a file. The format chooses names, so an invalid or duplicate name is a fault of the
    /// program: such a file is omitted.
    pub fn push(&mut self, name: &str, len: u64) {
        let known = self.index.contains_key(name);
        debug_assert!(Name::new(name.as_bytes()).is_ok() && !known, "{name}");
        if Name::new(name.as_bytes()).is_ok() && !known {
            self.index.insert(name.to_owned(), self.files.len());
            self.files.push(Contained { name: name.to_owned(), len });
        }
    }

    /// The root directory.
    pub fn root(&self) -> InodeId {
        ROOT
    }

    /// Number of inodes, including the root.
    pub fn inode_count(&self) -> u64 {
        (self.files.len() as u64).plus(1)
    }

    /// Inode of the file with this index, in the order of addition.
    pub fn id_of(index: usize) -> InodeId {
        InodeId((index as u64).plus(1))
    }

    /// See [`crate::Inside::inner_images`]: all files.
    pub fn inner_images(&self) -> Vec<InnerImage> {
        let files = self.files.iter().enumerate();
        files
            .map(|(index, file)| InnerImage { id: ContainedFiles::id_of(index), name: file.name.clone() })
            .collect()
    }

    /// Returns the index of an inode's file, starting at 0, and its length.
    ///
    /// Errors: `Failed` for the root and for ids of other inodes.
    pub fn file(&self, id: InodeId) -> Result<(usize, u64)> {
        let Some(index) = id.0.checked_sub(1) else {
            return Err(Error::failed("the root is a directory, not a file"));
        };
        let index = usize::try_from(index).ok();
        let found = index.and_then(|index| Some((index, self.files.get(index)?.len)));
        found.ok_or_else(|| Error::failed(format!("there is no inode {}", id.0)))
    }

    /// See [`crate::Volume::inode`]. Errors: as [`ContainedFiles::file`].
    pub fn inode(&self, id: InodeId) -> Result<Inode> {
        let (kind, meta, links) = match id {
            ROOT => (InodeKind::Directory, ContainedFiles::ROOT_META, 2),
            _ => (InodeKind::File { len: self.file(id)?.1 }, ContainedFiles::FILE_META, 1),
        };
        Ok(Inode {
            kind,
            meta,
            links,
            number: id.0.plus(1),
            doubt: None,
            has_xattrs: false,
            sectors: kind.sectors_filled(),
        })
    }

    /// See [`crate::Directories::lookup`]. Errors: `Failed` for other inodes than directories.
    pub fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        is_root(dir)?;
        let index = std::str::from_utf8(name).ok().and_then(|name| self.index.get(name));
        Ok(index.copied().map(ContainedFiles::id_of))
    }

    /// See [`crate::Directories::read_dir`]. Errors: `Failed` for other inodes than directories.
    pub fn read_dir(
        &self,
        dir: InodeId,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        is_root(dir)?;
        let start = usize::try_from(from.0).unwrap_or(usize::MAX);
        for (index, file) in self.files.iter().enumerate().skip(start) {
            let id = ContainedFiles::id_of(index);
            let entry = DirEntry { name: file.name.clone().into_bytes(), id, file_type: FileType::File };
            // The ids of files count from 1, as cursors do after them.
            if visit(entry, DirCursor(id.0)).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// See [`crate::Volume::read_link`]: a container has no links.
    ///
    /// Errors: always, `Failed`.
    pub fn read_link(&self, id: InodeId) -> Result<Vec<u8>> {
        let word = self.inode(id)?.kind.file_type().word();
        Err(Error::failed(format!("inode {} is a {word}, not a symlink", id.0)))
    }
}

const fn meta(mode: u16) -> Meta {
    Meta { mode, owner: Owner { uid: 0, gid: 0 }, mtime: Timestamp { seconds: 0, nanos: 0 } }
}

fn is_root(dir: InodeId) -> Result<()> {
    match dir {
        ROOT => Ok(()),
        _ => Err(Error::failed(format!("inode {} is a file, not a directory", dir.0))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> ContainedFiles {
        let mut files = ContainedFiles::new();
        files.push("p1", 10);
        files.push("p2", 20);
        files
    }

    #[test]
    fn files_are_listed_in_order_and_found_by_name() {
        let files = two();
        let mut listed = Vec::new();
        files
            .read_dir(files.root(), DirCursor::default(), &mut |entry, after| {
                listed.push((entry.name, entry.id, after));
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(
            listed,
            [(b"p1".to_vec(), InodeId(1), DirCursor(1)), (b"p2".to_vec(), InodeId(2), DirCursor(2))]
        );
        assert_eq!(files.lookup(ROOT, b"p2").unwrap(), Some(InodeId(2)));
        assert_eq!(files.lookup(ROOT, b"p3").unwrap(), None);
        assert_eq!(files.inode(InodeId(2)).unwrap().kind, InodeKind::File { len: 20 });
        assert_eq!(files.inode(ROOT).unwrap().kind, InodeKind::Directory);
        assert_eq!((files.file(InodeId(1)).unwrap(), files.inode_count()), ((0, 10), 3));
    }

    #[test]
    fn invalid_inodes_and_cursors_are_harmless() {
        let files = two();
        for id in [3, u64::MAX] {
            assert!(files.inode(InodeId(id)).is_err() && files.lookup(InodeId(id), b"p1").is_err());
        }
        assert!(files.file(ROOT).is_err() && files.read_link(ROOT).is_err());
        files.read_dir(ROOT, DirCursor(u64::MAX), &mut |_, _| panic!("nothing is there")).unwrap();
    }
}
