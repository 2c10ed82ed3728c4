//! Hard links: records with the names of one file.
//!
//! Rock Ridge has no inodes: each name has a record with all attributes. Names are hard links if
//! their link counts say so, and they agree in inode number (RRIP 1.12) and position of data. The
//! first record found represents all.

use crate::record::Record;
use crate::rock_ridge::RockRidge;
use packfs_core::FileType;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Limit of the files that are remembered; links to others become separate files.
const FILES_MAX: usize = 4 << 20;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    inode: Option<u32>,
    extent: u32,
    data_len: u32,
    file_type: FileType,
}

/// The first record of each file with several names.
#[derive(Default)]
pub(crate) struct HardLinks {
    firsts: Mutex<HashMap<Key, u64>>,
}

impl HardLinks {
    pub(crate) fn first(&self, record: &Record, rock_ridge: &RockRidge, file_type: FileType) -> u64 {
        let Some(posix) = rock_ridge.posix.filter(|posix| posix.links > 1) else { return record.at };
        let (extent, data_len) = (record.head.extent.get(), record.head.data_len.get());
        let inode = posix.inode.filter(|&inode| inode != 0);
        // Writers give one extent to all empty files, links, and devices.
        if inode.is_none() && (data_len == 0 || file_type != FileType::File) {
            return record.at;
        }
        let key = Key { inode, extent, data_len, file_type };
        let mut firsts = self.firsts.lock().unwrap_or_else(PoisonError::into_inner);
        if firsts.len() >= FILES_MAX {
            return firsts.get(&key).copied().unwrap_or(record.at);
        }
        *firsts.entry(key).or_insert(record.at)
    }
}
