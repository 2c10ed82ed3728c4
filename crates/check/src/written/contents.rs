//! Decodes all contents in disk order, each block once, and compares their hashes with the expected
//! ones.
//!
//! Pieces come in any order, on any thread, and start and end anywhere. Whole units are hashed at
//! once; the parts of a unit shared by several pieces are collected first.

use super::Expected;
use packfs_core::{
    ContentDigest, ContentHash, Error, ErrorKind, ImagePath, NodeId, Progress, Result, escaped,
};
use packfs_read::{PieceSink, ReadEngine, Wanted};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const UNIT: u64 = ContentHash::UNIT;

/// Expected contents of files, in the order of requests.
pub(super) struct ExpectedContents<'a> {
    pub expected: &'a Expected<'a>,
    pub nodes: &'a [NodeId],
    pub wanted: &'a [Wanted],
}

impl ExpectedContents<'_> {
    fn path(&self, index: usize) -> ImagePath {
        self.expected.tree.path(self.nodes[index])
    }
}

/// Errors: `Failed` for the first file in tree order whose contents differ; those of decoding.
pub(super) fn compare(
    engine: &Arc<ReadEngine>,
    contents: &ExpectedContents<'_>,
    progress: &dyn Progress,
) -> Result<()> {
    let files: Vec<Mutex<Found>> = contents.nodes.iter().map(|_| Mutex::default()).collect();
    let reader = || Ok(Reader { contents, files: &files });
    engine.in_disk_order(contents.wanted, progress, &reader)?;
    for (index, found) in files.into_iter().enumerate() {
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.check(contents.expected.seen(contents.nodes[index])).map_err(|what| {
            Error::failed(format!("\"{}\" {what}", escaped(contents.path(index).as_bytes())))
        })?;
    }
    Ok(())
}

/// Progress of a file.
#[derive(Default)]
struct Found {
    /// Bytes expected, and received.
    expected_len: u64,
    len: u64,
    sum: ContentHash,
    begun: Vec<BegunUnit>,
}

/// An incomplete unit. Parts that never come are holes.
struct BegunUnit {
    number: u64,
    bytes: Vec<u8>,
    filled_len: usize,
}

impl Found {
    /// Adds bytes within one unit of `unit_len` bytes.
    fn part(&mut self, offset: u64, bytes: &[u8], unit_len: usize) {
        if bytes.is_empty() {
            return;
        }
        let (number, start) = (offset / UNIT, (offset % UNIT) as usize);
        let begun = &mut self.begun;
        let index = match begun.iter().position(|unit| unit.number == number) {
            Some(index) => index,
            None => {
                begun.push(BegunUnit { number, bytes: vec![0; unit_len], filled_len: 0 });
                begun.len() - 1
            }
        };
        let unit = &mut begun[index];
        unit.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        unit.filled_len += bytes.len();
        if unit.filled_len >= unit_len {
            let unit = begun.swap_remove(index);
            self.sum += ContentHash::of_unit(unit.number, &unit.bytes);
            if begun.is_empty() {
                *begun = Vec::new();
            }
        }
    }

    fn check(mut self, seen: ContentDigest) -> Result<(), String> {
        if self.len != self.expected_len {
            return Err(format!("gives back {} bytes of {}", self.len, self.expected_len));
        }
        for unit in self.begun {
            self.sum += ContentHash::of_unit(unit.number, &unit.bytes);
        }
        match seen {
            ContentDigest::Hash(hash) if hash != self.sum => Err("does not hold what was read of it".into()),
            _ => Ok(()),
        }
    }
}

/// One worker.
struct Reader<'a> {
    contents: &'a ExpectedContents<'a>,
    files: &'a [Mutex<Found>],
}

impl Reader<'_> {
    fn file(&self, index: usize) -> MutexGuard<'_, Found> {
        self.files[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PieceSink for Reader<'_> {
    fn expect(&mut self, file_index: usize, data_len: u64) {
        self.file(file_index).expected_len = data_len;
    }

    fn piece(&mut self, file_index: usize, offset: u64, bytes: &[u8]) -> Result<()> {
        let file_len = self.contents.wanted[file_index].len;
        let unit_len = |start: u64| UNIT.min(file_len - start / UNIT * UNIT) as usize;
        let end = offset + bytes.len() as u64;
        if end > file_len {
            let path = self.contents.path(file_index);
            let what = format!("data up to byte {end} of a file of {file_len} bytes");
            return Err(Error::corrupt(format!("\"{}\"", escaped(path.as_bytes())), what));
        }
        let first_whole = offset.next_multiple_of(UNIT).min(end);
        let whole_end = if end == file_len { end } else { (end / UNIT * UNIT).max(first_whole) };
        let (before, rest) = bytes.split_at((first_whole - offset) as usize);
        let (whole, behind) = rest.split_at((whole_end - first_whole) as usize);
        let sum = ContentHash::of_units(first_whole / UNIT, whole);
        let mut file = self.file(file_index);
        file.sum += sum;
        file.len += bytes.len() as u64;
        file.part(offset, before, unit_len(offset));
        file.part(whole_end, behind, unit_len(whole_end.min(file_len - 1)));
        Ok(())
    }

    fn failed(&mut self, file_index: usize, error: Error) -> Result<()> {
        if matches!(error.kind(), ErrorKind::Io | ErrorKind::Cancelled) {
            return Err(error);
        }
        let path = self.contents.path(file_index);
        Err(error.at(format_args!("\"{}\"", escaped(path.as_bytes()))))
    }
}
