//! The list of a shard: a record for each entry, in the order of a tree.
//!
//! A record is `TYPE MODE UID GID LENGTH SECONDS.NANOS PATH` and a NUL: the letter of the type, `D`
//! for a directory that an earlier shard has, too; octal permissions; nine digits of nanoseconds.

use crate::digest;
use crate::entry::{file_type, letter};
use packfs_core::to_hex;
use packfs_core::{Error, FileType, ImagePath, Meta, Owner, Result, ResultExt, Timestamp, escaped};
use packfs_source::ListedEntry;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::Path;

/// Longest record, in bytes: a path and a hundred digits.
const RECORD_LEN_MAX: u64 = 1 << 20;

/// Entry of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Path and metadata.
    pub entry: ListedEntry,
    /// True for a directory that an earlier shard has, too.
    pub is_shared: bool,
}

/// Returns the record of an entry.
pub(crate) fn record(entry: &ListedEntry, is_shared: bool) -> Vec<u8> {
    let ListedEntry { path, file_type, meta, len } = entry;
    let letter = char::from(letter(*file_type));
    let letter = if is_shared { letter.to_ascii_uppercase() } else { letter };
    let Meta { mode, owner: Owner { uid, gid }, mtime } = meta;
    let mut record =
        format!("{letter} {mode:o} {uid} {gid} {len} {}.{:09} ", { mtime.seconds }, mtime.nanos).into_bytes();
    record.extend_from_slice(path.as_bytes());
    record.push(0);
    record
}

/// Parses a record without its NUL; `None` for one that is none.
fn parse(record: &[u8]) -> Option<Listed> {
    let mut fields = record.splitn(7, |&byte| byte == b' ');
    let mut word = || fields.next();
    let ([letter], mode) = (word()?, text(word()?)?) else { return None };
    let mode = u16::from_str_radix(mode, 8).ok().filter(|mode| *mode <= 0o7777)?;
    let owner = Owner { uid: number(word()?)?, gid: number(word()?)? };
    let len = number(word()?)?;
    let (seconds, nanos) = text(word()?)?.split_once('.')?;
    let nanos = Some(nanos).filter(|nanos| nanos.len() == 9)?.parse().ok()?;
    let mtime = Timestamp { seconds: seconds.parse().ok()?, nanos };
    let path = word()?;
    let parsed = ImagePath::parse(path).ok().filter(|parsed| parsed.as_bytes() == path)?;
    let is_shared = *letter == b'D';
    let file_type = if is_shared { FileType::Directory } else { file_type(*letter)? };
    let meta = Meta { mode, owner, mtime };
    Some(Listed { entry: ListedEntry { path: parsed, file_type, meta, len }, is_shared })
}

pub(crate) fn text(field: &[u8]) -> Option<&str> {
    std::str::from_utf8(field).ok()
}

pub(crate) fn number<T: std::str::FromStr>(field: &[u8]) -> Option<T> {
    text(field).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

/// Reads a list whose SHA-256 is known, record by record.
///
/// Errors: `Io`; `Corrupt` for other bytes, and for records that are none or out of order.
pub fn read_list(path: &Path, sha256: &str) -> Result<impl Iterator<Item = Result<Listed>> + use<>> {
    let cannot = || format!("cannot read {path:?}");
    let mut file = File::open(path).or_io(cannot)?;
    let found = sha256_of(&mut file).or_io(cannot)?;
    if found != sha256 {
        let error = Error::corrupt(
            "list",
            format!("{path:?}: SHA-256 is {found}, the plan says {}", escaped(sha256.as_bytes())),
        );
        return Err(error.hint("make the plan again"));
    }
    file.rewind().or_io(cannot)?;
    Ok(Records { reader: BufReader::new(file), name: format!("{path:?}"), count: 0, last: None })
}

fn sha256_of(file: &mut File) -> std::io::Result<String> {
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        let len = file.read(&mut buffer)?;
        if len == 0 {
            return Ok(to_hex(&hash.finalize()));
        }
        hash.update(buffer.get(..len).unwrap_or_default());
    }
}

struct Records {
    reader: BufReader<File>,
    name: String,
    count: u64,
    last: Option<Vec<u8>>,
}

impl Records {
    fn read(&mut self) -> Result<Option<Listed>> {
        let mut record = Vec::new();
        let mut part = (&mut self.reader).take(RECORD_LEN_MAX);
        part.read_until(0, &mut record).or_io(|| format!("cannot read {}", self.name))?;
        if record.is_empty() {
            return Ok(None);
        }
        self.count += 1;
        let wrong =
            |what: &str| Error::corrupt("list", format!("{}: record {}: {what}", self.name, self.count));
        let bytes = record.strip_suffix(&[0]).ok_or_else(|| wrong("no end"))?;
        let listed = parse(bytes).ok_or_else(|| wrong("not an entry"))?;
        let key = crate::entry::key(&listed.entry.path);
        if self.last.as_ref().is_some_and(|last| *last >= key) {
            return Err(wrong("out of order"));
        }
        self.last = Some(key);
        Ok(Some(listed))
    }
}

impl Iterator for Records {
    type Item = Result<Listed>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// Name of a list in its plan.
pub(crate) fn name(index: usize) -> String {
    format!("{index:06}.list")
}

/// Returns the name that packed shards have in a store: a digest of all that decides their bytes.
pub(crate) fn shard_name(recipe_sha256: &str, list_sha256: &str) -> String {
    digest::of_bytes(format!("packfs shard 1\n{recipe_sha256}\n{list_sha256}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, seconds: i64, nanos: u32) -> ListedEntry {
        let meta = Meta {
            mode: 0o4755,
            owner: Owner { uid: 1, gid: u32::MAX },
            mtime: Timestamp { seconds, nanos },
        };
        let path = ImagePath::parse(path.as_bytes()).unwrap();
        ListedEntry { path, file_type: FileType::File, meta, len: 7 }
    }

    #[test]
    fn records_hold_what_was_written() {
        for (path, seconds, nanos) in [("a b/c\n", -3, 5), ("x", i64::MIN, 999_999_999), ("", 0, 0)] {
            let entry = entry(path, seconds, nanos);
            let record = record(&entry, false);
            let found = parse(record.strip_suffix(&[0]).unwrap()).unwrap();
            assert_eq!((found.entry, found.is_shared), (entry, false));
        }
    }

    #[test]
    fn refuses_records_that_are_none() {
        for wrong in [
            "",
            "f",
            "f 644 0 0 1 1.000000000",
            "z 644 0 0 1 1.000000000 a",
            "f 8 0 0 1 1.000000000 a",
            "f 644 -1 0 1 1.000000000 a",
            "f 644 0 0 1 1.0 a",
            "f 644 0 0 1 1.000000000 a/../b",
            "f 644 0 0 1 1.000000000 /a",
            "f 17777 0 0 1 1.000000000 a",
            "F 644 0 0 1 1.000000000 a",
        ] {
            assert_eq!(parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
