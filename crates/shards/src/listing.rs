//! Lists of entries that users made: paths, or the output of `find -printf`.

use crate::entry::file_type;
use crate::list::{number, text};
use packfs_core::{Error, FileType, ImagePath, Meta, Owner, Result, ResultExt, Timestamp, escaped};
use packfs_source::{ListedEntry, Surveyed};
use std::io::{BufRead, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Longest record, in bytes.
const RECORD_LEN_MAX: u64 = 1 << 20;

/// Records of a list. They end with NULs if one is within the first bytes, else with line ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListFormat {
    /// Paths, relative to the source or absolute.
    #[default]
    Paths,
    /// `find SRC -printf '%y %m %U %G %s %T@ %D %i %n %P\0'`.
    Find,
}

packfs_core::words!(ListFormat: "form of a list", { Paths: "paths", Find: "find" });

/// Entry of a list.
pub(crate) enum Record {
    /// Path without metadata.
    Path(ImagePath),
    /// Path with metadata.
    Entry(Surveyed),
}

/// Reads a list.
pub(crate) struct Listing<'a> {
    reader: &'a mut dyn BufRead,
    format: ListFormat,
    /// Source as listed, for absolute paths.
    source: &'a Path,
    /// Name of the list for messages.
    name: &'a str,
    separator: Option<u8>,
    count: u64,
}

impl<'a> Listing<'a> {
    pub(crate) fn new(
        reader: &'a mut dyn BufRead,
        format: ListFormat,
        source: &'a Path,
        name: &'a str,
    ) -> Self {
        Listing { reader, format, source, name, separator: None, count: 0 }
    }

    /// Returns the next record.
    ///
    /// Errors: `Io`; `Usage` for what is no record, with its number.
    pub(crate) fn next(&mut self) -> Result<Option<Record>> {
        let cannot = || format!("cannot read {}", self.name);
        let separator = match self.separator {
            Some(separator) => separator,
            None => {
                if self.reader.fill_buf().or_io(cannot)?.contains(&0) {
                    0
                } else {
                    b'\n'
                }
            }
        };
        self.separator = Some(separator);
        let mut record = Vec::new();
        loop {
            record.clear();
            let mut part = (&mut *self.reader).take(RECORD_LEN_MAX);
            if part.read_until(separator, &mut record).or_io(cannot)? == 0 {
                return Ok(None);
            }
            self.count += 1;
            if record.len() as u64 == RECORD_LEN_MAX {
                return Err(self.wrong("longer than a path can be"));
            }
            if record.last() == Some(&separator) {
                record.pop();
            }
            if !record.is_empty() {
                return self.parse(&record).map(Some);
            }
        }
    }

    fn parse(&self, record: &[u8]) -> Result<Record> {
        match self.format {
            ListFormat::Paths => Ok(Record::Path(self.path(record)?)),
            ListFormat::Find => {
                let found = find_record(record).ok_or_else(|| {
                    let shown = escaped(record.get(..80).unwrap_or(record)).to_string();
                    let error = self.wrong(&format!("\"{shown}\" is not of the form that is expected"));
                    error.hint("find SRC -printf '%y %m %U %G %s %T@ %D %i %n %P\\0' > LIST")
                })?;
                let (mut entry, identity, links, path) = found;
                entry.path = self.path(path)?;
                Ok(Record::Entry(Surveyed { entry, identity, links }))
            }
        }
    }

    fn path(&self, typed: &[u8]) -> Result<ImagePath> {
        let below = match typed {
            [b'/', ..] => {
                let source = self.source.as_os_str().as_bytes();
                let below = typed
                    .strip_prefix(source)
                    .filter(|below| below.is_empty() || below[0] == b'/' || source == b"/");
                below.ok_or_else(|| {
                    self.wrong(&format!("\"{}\" is not below {:?}", escaped(typed), self.source))
                })?
            }
            _ => typed,
        };
        let parsed = ImagePath::parse(below)
            .map_err(|error| error.at(format!("{}: record {}", self.name, self.count)));
        parsed.map_err(|error| error.hint("find with -printf needs --list-format find"))
    }

    fn wrong(&self, what: &str) -> Error {
        Error::usage(format!("{}: record {}: {what}", self.name, self.count))
    }
}

type Found<'a> = (ListedEntry, (u64, u64), u64, &'a [u8]);

fn find_record(record: &[u8]) -> Option<Found<'_>> {
    let mut fields = record.splitn(10, |&byte| byte == b' ');
    let mut word = || fields.next();
    let [letter] = word()? else { return None };
    let file_type = file_type(*letter)?;
    let mode = u16::from_str_radix(text(word()?)?, 8).ok().filter(|mode| *mode <= 0o7777)?;
    let owner = Owner { uid: number(word()?)?, gid: number(word()?)? };
    let size: u64 = number(word()?)?;
    let mtime = time(text(word()?)?)?;
    let identity = (number(word()?)?, number(word()?)?);
    let links = number(word()?)?;
    let len = if matches!(file_type, FileType::File | FileType::Symlink) { size } else { 0 };
    let meta = Meta { mode, owner, mtime };
    Some((ListedEntry { path: ImagePath::root(), file_type, meta, len }, identity, links, word()?))
}

/// Returns the time of `%T@`: seconds, and digits of their fraction counted forwards.
fn time(text: &str) -> Option<Timestamp> {
    let (seconds, fraction) = text.split_once(['.', ',']).unwrap_or((text, ""));
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let nanos =
        Some(digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()?;
    Some(Timestamp { seconds: seconds.parse().ok()?, nanos })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(list: &[u8], format: ListFormat) -> Result<Vec<String>> {
        let mut reader = list;
        let mut listing = Listing::new(&mut reader, format, Path::new("/data"), "list");
        let mut found = Vec::new();
        while let Some(record) = listing.next()? {
            found.push(match record {
                Record::Path(path) => String::from_utf8_lossy(path.as_bytes()).into_owned(),
                Record::Entry(found) => {
                    format!("{} {} {}", found.entry.path, found.entry.len, found.entry.meta.mtime)
                }
            });
        }
        Ok(found)
    }

    #[test]
    fn paths_end_with_nuls_or_lines() {
        assert_eq!(paths(b"a\n./b/c\n\n/data/d\n/data\n", ListFormat::Paths).unwrap(), ["a", "b/c", "d", ""]);
        assert_eq!(paths(b"a\nb\0c", ListFormat::Paths).unwrap(), ["a\nb", "c"]);
    }

    #[test]
    fn records_of_find_have_metadata() {
        let list =
            b"f 644 0 0 12 1700000000.1234567890 64768 5 1 a b\nd 755 0 0 4096 0.0000000000 64768 6 2 ";
        assert_eq!(paths(list, ListFormat::Find).unwrap(), ["a b 12 1700000000.123456789", "/ 0 0"]);
    }

    #[test]
    fn what_is_no_record_is_named_by_number() {
        let cases: [(&[u8], ListFormat); 4] = [
            (b"a\n../b", ListFormat::Paths),
            (b"a\n/dataset/b", ListFormat::Paths),
            (b"f 644 0 0 12 1.0 64768 5 1 a\nf 644 a", ListFormat::Find),
            (b"f 644 0 0 12 1.0 64768 5 1 a\na", ListFormat::Find),
        ];
        for (list, format) in cases {
            let error = paths(list, format).unwrap_err();
            assert!(error.to_string().contains("record 2"), "{error}");
        }
    }
}
