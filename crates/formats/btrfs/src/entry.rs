//! Entries of directories and attributes, which have one form.

use crate::corruption::Corruption;
use crate::disk::DirItem;
use crate::key::Key;
use crate::tree::Item;
use packfs_core::{FileType, Result};
use packfs_format::{crc32c, structure, units::*};

pub(crate) const ENTRY_LEN: usize = size_of::<DirItem>();
/// Seed of the CRC-32C of names.
const HASH_SEED: u32 = !1;

/// Offset in the key of a `DIR_ITEM`.
pub(crate) fn name_hash(name: &[u8]) -> u64 {
    crc32c(HASH_SEED, name).into()
}

pub(crate) struct Entry<'i> {
    pub(crate) location: Key,
    pub(crate) file_type: u8,
    pub(crate) name: &'i [u8],
    pub(crate) value: &'i [u8],
    /// The whole entry, with its name and value.
    pub(crate) raw: &'i [u8],
}

pub(crate) fn entries(item: &Item) -> impl Iterator<Item = Result<Entry<'_>>> {
    let mut rest = item.bytes();
    let mut is_over = false;
    std::iter::from_fn(move || {
        if rest.is_empty() || is_over {
            return None;
        }
        let (place, found) = (item.place(), rest.len());
        let Some(head) = structure::<DirItem>(rest, 0) else {
            is_over = true;
            return Some(Err(Corruption::Size { place, found, min: ENTRY_LEN }.into()));
        };
        let name_end = usize::from(head.name_len.get()).plus(ENTRY_LEN);
        let end = name_end.plus(head.data_len.get().into());
        let (Some(name), Some(value)) = (rest.get(ENTRY_LEN..name_end), rest.get(name_end..end)) else {
            is_over = true;
            return Some(Err(Corruption::Size { place, found, min: end }.into()));
        };
        let (raw, after) = rest.split_at_checked(end).unwrap_or_default();
        rest = after;
        Some(Ok(Entry { location: Key::of(&head.location), file_type: head.kind, name, value, raw }))
    })
}

impl Entry<'_> {
    pub(crate) fn file_type(&self, item: &Item) -> Result<FileType> {
        Ok(match self.file_type {
            1 => FileType::File,
            2 => FileType::Directory,
            3 => FileType::CharDevice,
            4 => FileType::BlockDevice,
            5 => FileType::Fifo,
            6 => FileType::Socket,
            7 => FileType::Symlink,
            found => {
                let (place, found) = (item.place(), found.into());
                return Err(
                    Corruption::Figure { place, figure: "file type", found, allowed: "1 to 7" }.into()
                );
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_collide_have_one_hash() {
        assert_eq!(name_hash(b"n1371838"), name_hash(b"n2000402"));
        assert_eq!(name_hash(b"default"), 2_378_154_706);
    }
}
