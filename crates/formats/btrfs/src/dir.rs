//! Directories and extended attributes: both are entries of the same form.
//!
//! A listing follows the indexes of entries, a lookup their hashes. Names of one hash share an
//! item.

use crate::corruption::Corruption;
use crate::disk::kind;
use crate::entry::{ENTRY_LEN, Entry, entries, name_hash};
use crate::key::Key;
use crate::tree::Item;
use crate::volume::{BtrfsVolume, Node, Place};
use packfs_core::{Error, FileType, Name, Result, Xattrs};
use packfs_format::{DirCursor, DirEntry, Directories, InodeId, units::*};
use std::ops::ControlFlow;

const ATTRIBUTES_LEN_MAX: usize = 80 << 20;
/// Attributes that control the filesystem, such as `btrfs.compression`.
const OWN_PREFIX: &[u8] = b"btrfs.";

impl BtrfsVolume {
    fn listed(&self, dir: &Node, item: &Item) -> Result<DirEntry> {
        let place = item.place();
        if i64::try_from(item.key.offset).is_err() {
            let found = item.key.offset;
            return Err(Corruption::Figure { place, figure: "index", found, allowed: "below 2^63" }.into());
        }
        let Some(entry) = entries(item).next() else {
            return Err(Corruption::Size { place, found: 0, min: ENTRY_LEN }.into());
        };
        let entry = entry?;
        Name::new(entry.name).map_err(|fault| Corruption::Name { place, fault })?;
        let id = self.target(dir, item, &entry)?;
        Ok(DirEntry { name: entry.name.to_vec(), id, file_type: entry.file_type(item)? })
    }

    fn target(&self, dir: &Node, item: &Item, entry: &Entry<'_>) -> Result<InodeId> {
        match entry.location.kind {
            kind::INODE_ITEM => self.id_of(dir.index, dir.tree.id, entry.location.object),
            kind::ROOT_ITEM => self.subvolume_id(dir, entry.name, entry.location.object),
            found => {
                let (place, found) = (item.place(), found.into());
                let figure = "type of the location";
                let allowed = "1 and 132";
                Err(Corruption::Figure { place, figure, found, allowed }.into())
            }
        }
    }

    /// Returns the attributes of an inode, except those of `OWN_PREFIX`.
    pub(crate) fn attributes(&self, node: &Node) -> Result<Xattrs> {
        let (mut xattrs, mut bytes) = (Xattrs::new(), 0_usize);
        for item in node.tree.items_of(&self.fs.store, node.inode, kind::XATTR_ITEM, 0) {
            let item = item?;
            for entry in entries(&item) {
                let entry = entry?;
                if entry.name.is_empty() || entry.name.contains(&0) {
                    let place = item.place();
                    return Err(Corruption::Name { place, fault: "attribute without a name" }.into());
                }
                bytes = bytes.plus(entry.raw.len());
                if bytes > ATTRIBUTES_LEN_MAX {
                    let what = format_args!("more attributes of inode {} than 80 MiB", node.inode);
                    return Err(Error::limit("btrfs image", what));
                }
                if !entry.name.starts_with(OWN_PREFIX) {
                    xattrs.insert(entry.name.to_vec(), entry.value.to_vec());
                }
            }
        }
        Ok(xattrs)
    }
}

impl Directories for BtrfsVolume {
    fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        let node = match self.place(dir)? {
            Place::Node(node) => node,
            Place::Empty(_) => return Ok(None),
        };
        self.inode_item(&node)?.wanted(FileType::Directory)?;
        let key = Key::new(node.inode, kind::DIR_ITEM, name_hash(name));
        let Some(item) = node.tree.get(&self.fs.store, &key)? else { return Ok(None) };
        for entry in entries(&item) {
            let entry = entry?;
            if entry.name == name && Name::new(name).is_ok() {
                return self.target(&node, &item, &entry).map(Some);
            }
        }
        Ok(None)
    }

    /// A cursor is the index after an entry.
    fn read_dir(
        &self,
        dir: InodeId,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        let node = match self.place(dir)? {
            Place::Node(node) => node,
            Place::Empty(_) => return Ok(()),
        };
        self.inode_item(&node)?.wanted(FileType::Directory)?;
        let mut failure: Option<Error> = None;
        for item in node.tree.items_of(&self.fs.store, node.inode, kind::DIR_INDEX, from.0) {
            let found = item.and_then(|item| {
                let entry = self.listed(&node, &item)?;
                let place = item.place();
                let last = Corruption::Name { place, fault: "entry after which no index can follow" };
                Ok((entry, DirCursor(item.key.offset.checked_add(1).ok_or(last)?)))
            });
            match found {
                Ok((entry, next)) => {
                    if visit(entry, next).is_break() {
                        return Ok(());
                    }
                }
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }
}
