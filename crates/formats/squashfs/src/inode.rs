//! Inodes of all versions, unified and checked.
//!
//! An inode's id is its position in the inode table: before 3.0 it has no number, and hostile
//! images repeat numbers.

use crate::cursor::Cursor;
use crate::fault::MetadataFault;
use crate::place::InodeRef;
use crate::raw::{RawFile, RawInode, RawKind};
use crate::records::{Records, SQUASHFS_INVALID_FRAG};
use crate::stored::Region;
use packfs_core::Result;
use packfs_format::{InodeId, units::*};

pub(crate) fn raw_inode<R: Records>(records: &R, id: InodeId) -> Result<RawInode> {
    let InodeRef { block, offset } = InodeRef::from_raw(id.0);
    let layout = records.layout();
    let mut cursor = records.metadata().cursor(layout.inodes, "inode", block, u32::from(offset))?;
    let inode = records.parse_inode(&mut cursor)?;
    if let RawKind::File(file) = &inode.kind {
        check_file(records, &inode, file)?;
    }
    Ok(inode)
}

fn check_file<R: Records>(records: &R, inode: &RawInode, file: &RawFile) -> Result<()> {
    let place = inode.place;
    if i64::try_from(file.file_size).is_err() {
        return Err(MetadataFault::FileLength { place, found: file.file_size }.into());
    }
    let words = word_count(records, file);
    let left = Region { start: inode.tail.at, ..records.layout().inodes };
    let max = left.rows_max(records.shape().size_word_len);
    if words > max {
        return Err(MetadataFault::FileWords { place, words, max }.into());
    }
    let count = records.layout().fragment_count();
    if file.fragment != SQUASHFS_INVALID_FRAG && file.fragment >= count {
        return Err(MetadataFault::FragmentIndex { place, found: file.fragment, count }.into());
    }
    Ok(())
}

/// Returns the number of a file's size words: its whole blocks, and a short last one unless that is
/// in a fragment.
pub(crate) fn word_count<R: Records>(records: &R, file: &RawFile) -> u64 {
    let block_len = u64::from(records.layout().block_len);
    if file.fragment == SQUASHFS_INVALID_FRAG {
        file.file_size.div_ceil(block_len)
    } else {
        file.file_size.quotient(block_len)
    }
}

pub(crate) fn link_target<R: Records>(records: &R, id: InodeId) -> Result<Vec<u8>> {
    let raw = raw_inode(records, id)?;
    let RawKind::Symlink(len) = raw.kind else { return Err(raw.not_a("symbolic link")) };
    let target = Cursor::resume(records.metadata(), records.layout().inodes, "link target", raw.tail)?
        .read_vec(len)?;
    if target.contains(&0) {
        return Err(MetadataFault::LinkNul { place: raw.place }.into());
    }
    Ok(target)
}
