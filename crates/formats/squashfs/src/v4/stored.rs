//! Stored form of data, which is not decoded: size words and fragments.

use crate::data::{blocks_len, each_block, fragment_rows, tail_extent};
use crate::inode::{raw_inode, word_count};
use crate::v4::volume::SquashfsVolume;
use crate::{RawKind, StoredData};
use packfs_core::{Result, u32_of};
use packfs_format::{BlockForm, Blocks, FilePlace, InodeId, SharedTail, StoredBlock, StoredBlocks, units::*};

impl StoredBlocks for SquashfsVolume {
    fn file(&self, id: InodeId, blocks: &mut Vec<StoredBlock>) -> Result<FilePlace<Blocks>> {
        let raw = raw_inode(self, id)?;
        let RawKind::File(file) = raw.kind else { return Err(raw.not_a("file")) };
        let mut stored_len = 0_u64;
        each_block(self, &raw, &file, |_, stored| {
            stored_len = stored_len.plus(stored.len.into());
            blocks.push(as_block(stored));
        })?;
        let has_tail = file.file_size > blocks_len(self, &file);
        if has_tail {
            // Checks the position of the tail.
            tail_extent(self, &raw, &file)?;
        }
        Ok(FilePlace {
            start: if stored_len > 0 { file.start_block } else { 0 },
            first: 0,
            count: u32_of(word_count(self, &file)),
            form: BlockForm::Blocks,
            tail: has_tail.then_some(SharedTail { index: file.fragment, offset: file.offset }),
        })
    }

    fn shared(&self) -> Result<Vec<(u64, StoredBlock)>> {
        let rows = fragment_rows(self)?;
        Ok(rows.into_iter().map(|(start, stored)| (start, as_block(stored))).collect())
    }
}

fn as_block(stored: StoredData) -> StoredBlock {
    StoredBlock { stored_len: stored.len, compressed: stored.compressed }
}
