//! Directories: blocks of entries in strict byte order, including `.` and `..`.

use crate::disk::{self, Dirent};
use packfs_core::{FileType, NodeId, Tree};
use zerocopy::IntoBytes;

const ENTRY_LEN: u64 = size_of::<Dirent>() as u64;

#[derive(Clone, Copy, Debug)]
pub(super) struct Name<'a> {
    pub name: &'a [u8],
    pub node: NodeId,
}

/// Returns all names of a directory, in the order of the disk.
pub(super) fn names(tree: &Tree, dir: NodeId, dot_omitted: bool) -> Vec<Name<'_>> {
    let parent = tree.node(dir).parent();
    let mut names: Vec<Name<'_>> =
        tree.entries(dir).map(|entry| Name { name: entry.name, node: entry.node }).collect();
    for (own, node) in [(&b"."[..], dir), (b"..", parent)] {
        if own == b"." && dot_omitted {
            continue;
        }
        let at = names.partition_point(|name| name.name < own);
        names.insert(at, Name { name: own, node });
    }
    names
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Len {
    /// Full blocks: no further entry fits.
    pub full_blocks: u64,
    /// Used bytes of the last block.
    pub last_len: u64,
}

impl Len {
    pub(super) fn total(self, block_len: u64) -> u64 {
        self.full_blocks * block_len + self.last_len
    }
}

pub(super) fn len(names: &[Name<'_>], block_len: u64) -> Len {
    let mut len = Len { full_blocks: 0, last_len: 0 };
    for name in names {
        let entry_len = ENTRY_LEN + name.name.len() as u64;
        if len.last_len + entry_len > block_len {
            len.full_blocks += 1;
            len.last_len = 0;
        }
        len.last_len += entry_len;
    }
    len
}

/// Calls `put` for each block; all but the last are padded with zeros. `inode` returns nid and
/// type.
pub(super) fn write(
    names: &[Name<'_>],
    block_len: u64,
    inode: impl Fn(NodeId) -> (u64, FileType),
    mut put: impl FnMut(&[u8]),
) {
    let mut rest = names;
    let mut block = Vec::with_capacity(block_len as usize);
    while !rest.is_empty() {
        let mut used = 0;
        let fits = |name: &&Name<'_>| {
            used += ENTRY_LEN + name.name.len() as u64;
            used <= block_len
        };
        let count = rest.iter().take_while({
            let mut fits = fits;
            move |name| fits(name)
        });
        let (now, later) = rest.split_at(count.count().max(1));
        block.clear();
        let mut name_at = now.len() as u64 * ENTRY_LEN;
        for name in now {
            let (nid, inode_type) = inode(name.node);
            let entry = Dirent {
                nid: nid.into(),
                nameoff: (name_at as u16).into(),
                file_type: file_type(inode_type),
                reserved: 0,
            };
            block.extend_from_slice(entry.as_bytes());
            name_at += name.name.len() as u64;
        }
        now.iter().for_each(|name| block.extend_from_slice(name.name));
        if !later.is_empty() {
            block.resize(block_len as usize, 0);
        }
        put(&block);
        rest = later;
    }
}

fn file_type(file_type: FileType) -> u8 {
    match file_type {
        FileType::File => disk::EROFS_FT_REG_FILE,
        FileType::Directory => disk::EROFS_FT_DIR,
        FileType::CharDevice => disk::EROFS_FT_CHRDEV,
        FileType::BlockDevice => disk::EROFS_FT_BLKDEV,
        FileType::Fifo => disk::EROFS_FT_FIFO,
        FileType::Socket => disk::EROFS_FT_SOCK,
        FileType::Symlink => disk::EROFS_FT_SYMLINK,
    }
}
