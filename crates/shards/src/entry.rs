//! Entries as rows that sort in the order of a tree: a directory before its entries, names by their
//! bytes.

use packfs_core::{Error, FileType, ImagePath, Meta, Owner, Result, Timestamp};
use packfs_source::{ListedEntry, Surveyed};

/// Bytes of the values.
const VALUE_LEN: usize = 1 + 2 + 4 + 4 + 8 + 8 + 4 + 8 + 8 + 8;

/// Types, by their letter in lists, which is that of `find -printf %y`.
const TYPES: [(u8, FileType); 7] = [
    (b'd', FileType::Directory),
    (b'f', FileType::File),
    (b'l', FileType::Symlink),
    (b'b', FileType::BlockDevice),
    (b'c', FileType::CharDevice),
    (b'p', FileType::Fifo),
    (b's', FileType::Socket),
];

/// Returns the letter of a type.
pub(crate) fn letter(file_type: FileType) -> u8 {
    TYPES.iter().find(|row| row.1 == file_type).map_or(b'f', |row| row.0)
}

/// Returns the type of a letter.
pub(crate) fn file_type(letter: u8) -> Option<FileType> {
    TYPES.iter().find(|row| row.0 == letter).map(|row| row.1)
}

/// Returns the key by which a path sorts: the smallest byte separates its names, so that no name
/// comes between a directory and its entries.
pub(crate) fn key(path: &ImagePath) -> Vec<u8> {
    path.as_bytes().iter().map(|&byte| if byte == b'/' { 0 } else { byte }).collect()
}

/// Returns the rest of an entry.
pub(crate) fn value(found: &Surveyed) -> Vec<u8> {
    let ListedEntry { file_type, meta, len, .. } = &found.entry;
    let mut bytes = Vec::with_capacity(VALUE_LEN);
    bytes.push(letter(*file_type));
    bytes.extend(meta.mode.to_le_bytes());
    bytes.extend(meta.owner.uid.to_le_bytes());
    bytes.extend(meta.owner.gid.to_le_bytes());
    bytes.extend(len.to_le_bytes());
    bytes.extend(meta.mtime.seconds.to_le_bytes());
    bytes.extend(meta.mtime.nanos.to_le_bytes());
    bytes.extend(found.identity.0.to_le_bytes());
    bytes.extend(found.identity.1.to_le_bytes());
    bytes.extend(found.links.to_le_bytes());
    bytes
}

/// Returns the entry of a key and a value.
pub(crate) fn parse(key: &[u8], value: &[u8]) -> Result<Surveyed> {
    let path: Vec<u8> = key.iter().map(|&byte| if byte == 0 { b'/' } else { byte }).collect();
    let wrong = || Error::failed("internal: a row of the sort is damaged");
    let mut rest = value;
    let letter = take::<1>(&mut rest).ok_or_else(wrong)?[0];
    let mut read = || -> Option<Surveyed> {
        let mode = u16::from_le_bytes(take(&mut rest)?);
        let uid = u32::from_le_bytes(take(&mut rest)?);
        let gid = u32::from_le_bytes(take(&mut rest)?);
        let len = u64::from_le_bytes(take(&mut rest)?);
        let seconds = i64::from_le_bytes(take(&mut rest)?);
        let nanos = u32::from_le_bytes(take(&mut rest)?);
        let identity = (u64::from_le_bytes(take(&mut rest)?), u64::from_le_bytes(take(&mut rest)?));
        let links = u64::from_le_bytes(take(&mut rest)?);
        let meta = Meta { mode, owner: Owner { uid, gid }, mtime: Timestamp { seconds, nanos } };
        let entry = ListedEntry { path: ImagePath::root(), file_type: file_type(letter)?, meta, len };
        Some(Surveyed { entry, identity, links })
    };
    let mut found = read().ok_or_else(wrong)?;
    found.entry.path = ImagePath::parse(&path)?;
    Ok(found)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, left) = rest.split_first_chunk::<N>()?;
    *rest = left;
    Some(*taken)
}
