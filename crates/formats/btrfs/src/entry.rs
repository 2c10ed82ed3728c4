//! Entries of directories and attributes, which have one form.

use crate::bytes::Fields;
use crate::corruption::Corruption;
use crate::key::Key;
use crate::tree::Item;
use packfs_core::{FileType, Result};
use packfs_format::crc32c;

/// Bytes of an entry before its name.
pub(crate) const ENTRY_LEN: usize = 30;
/// Seed of the hash of names.
const HASH_SEED: u32 = !1;

/// Returns the hash that a name is found by.
pub(crate) fn name_hash(name: &[u8]) -> u64 {
    crc32c(HASH_SEED, name).into()
}

/// An entry of a directory, or an attribute.
pub(crate) struct Entry<'i> {
    pub(crate) location: Key,
    pub(crate) file_type: u8,
    pub(crate) name: &'i [u8],
    pub(crate) value: &'i [u8],
    /// All of its bytes.
    pub(crate) raw: &'i [u8],
}

/// Returns the entries of an item, one behind the other.
pub(crate) fn entries(item: &Item) -> impl Iterator<Item = Result<Entry<'_>>> {
    let mut rest = item.bytes();
    let mut is_over = false;
    std::iter::from_fn(move || {
        if rest.is_empty() || is_over {
            return None;
        }
        let fields = Fields(rest);
        let value_len = usize::from(fields.u16(0x19));
        let name_end = usize::from(fields.u16(0x1b)).saturating_add(ENTRY_LEN);
        let end = name_end.saturating_add(value_len);
        let (Some(name), Some(value)) = (rest.get(ENTRY_LEN..name_end), rest.get(name_end..end)) else {
            is_over = true;
            let (place, found) = (item.place(), rest.len());
            return Some(Err(Corruption::Size { place, found, min: end }.into()));
        };
        let (raw, after) = rest.split_at_checked(end).unwrap_or_default();
        rest = after;
        Some(Ok(Entry { location: Key::read(fields), file_type: fields.u8(0x1d), name, value, raw }))
    })
}

impl Entry<'_> {
    /// Returns the type that it claims.
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
