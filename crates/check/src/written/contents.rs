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
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const UNIT: u64 = ContentHash::UNIT;

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
    let files = FoundFiles::new(contents.nodes.len());
    let reader = || Ok(Reader { contents, files: &files });
    engine.in_disk_order(contents.wanted, progress, &reader)?;
    for stripe in 0..STRIPES {
        files.stripe(stripe).end();
    }
    for (index, &node) in contents.nodes.iter().enumerate() {
        let found = files.stripe(index).files[index / STRIPES];
        found.check(contents.expected.seen(node)).map_err(|what| {
            Error::failed(format!("\"{}\" {what}", escaped(contents.path(index).as_bytes())))
        })?;
    }
    Ok(())
}

/// Number of locks; neighbors have different ones.
const STRIPES: usize = 256;

/// There may be millions of files, so they share a few locks.
struct FoundFiles(Vec<Mutex<Stripe>>);

impl FoundFiles {
    fn new(count: usize) -> Self {
        let len = |stripe: usize| (count + STRIPES - 1 - stripe) / STRIPES;
        FoundFiles((0..STRIPES).map(|stripe| Mutex::new(Stripe::new(len(stripe)))).collect())
    }

    fn stripe(&self, file_index: usize) -> MutexGuard<'_, Stripe> {
        self.0[file_index % STRIPES].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Every [`STRIPES`]th file.
struct Stripe {
    files: Vec<Found>,
    begun: HashMap<(usize, u64), BegunUnit>,
}

#[derive(Clone, Copy, Default)]
struct Found {
    /// Negative if there are too many bytes.
    missing: i64,
    sum: ContentHash,
}

/// Parts that never come are holes.
struct BegunUnit {
    bytes: Vec<u8>,
    filled_len: usize,
}

impl Stripe {
    fn new(len: usize) -> Self {
        Stripe { files: vec![Found::default(); len], begun: HashMap::new() }
    }

    fn part(&mut self, file: usize, offset: u64, bytes: &[u8], unit_len: usize) {
        if bytes.is_empty() {
            return;
        }
        let (number, start) = (offset / UNIT, (offset % UNIT) as usize);
        let mut unit = match self.begun.entry((file, number)) {
            Entry::Occupied(unit) => unit,
            Entry::Vacant(place) => place.insert_entry(BegunUnit { bytes: vec![0; unit_len], filled_len: 0 }),
        };
        let BegunUnit { bytes: known, filled_len } = unit.get_mut();
        known[start..start + bytes.len()].copy_from_slice(bytes);
        *filled_len += bytes.len();
        if *filled_len >= unit_len {
            self.files[file].sum += ContentHash::of_unit(number, &unit.remove().bytes);
        }
    }

    /// The rest of incomplete units is a hole.
    fn end(&mut self) {
        for ((file, number), unit) in self.begun.drain() {
            self.files[file].sum += ContentHash::of_unit(number, &unit.bytes);
        }
    }
}

impl Found {
    fn check(self, seen: ContentDigest) -> Result<(), String> {
        match (self.missing, seen) {
            (1.., _) => Err(format!("lacks {} bytes of its data", self.missing)),
            (..0, _) => Err(format!("has {} bytes of data too many", self.missing.unsigned_abs())),
            (0, ContentDigest::Hash(hash)) if hash != self.sum => {
                Err("does not hold what was read of it".into())
            }
            _ => Ok(()),
        }
    }
}

struct Reader<'a> {
    contents: &'a ExpectedContents<'a>,
    files: &'a FoundFiles,
}

impl PieceSink for Reader<'_> {
    fn expect(&mut self, file_index: usize, data_len: u64) {
        let file = &mut self.files.stripe(file_index).files[file_index / STRIPES];
        file.missing = file.missing.wrapping_add_unsigned(data_len);
    }

    fn piece(&mut self, file_index: usize, offset: u64, bytes: &[u8]) -> Result<()> {
        let file_len = self.contents.wanted[file_index].len;
        let unit_len = |start: u64| UNIT.min(file_len - start / UNIT * UNIT) as usize;
        let end = offset + bytes.len() as u64;
        if end > file_len {
            let path = self.contents.path(file_index);
            let fault = format!("data up to byte {end} of a file of {file_len} bytes");
            return Err(Error::corrupt(format!("\"{}\"", escaped(path.as_bytes())), fault));
        }
        let first_whole = offset.next_multiple_of(UNIT).min(end);
        let whole_end = if end == file_len { end } else { (end / UNIT * UNIT).max(first_whole) };
        let (before, rest) = bytes.split_at((first_whole - offset) as usize);
        let (whole, behind) = rest.split_at((whole_end - first_whole) as usize);
        let sum = ContentHash::of_units(first_whole / UNIT, whole);
        let (mut stripe, file) = (self.files.stripe(file_index), file_index / STRIPES);
        stripe.files[file].sum += sum;
        stripe.files[file].missing = stripe.files[file].missing.wrapping_sub_unsigned(bytes.len() as u64);
        stripe.part(file, offset, before, unit_len(offset));
        stripe.part(file, whole_end, behind, unit_len(whole_end.min(file_len - 1)));
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
