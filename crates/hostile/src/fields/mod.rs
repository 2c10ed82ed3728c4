//! Fields of an input, so that mutations hit them and not the bytes between.
//!
//! Those of an image are the fields of the structures that its own reader takes from it, as the
//! tables of [`packfs_format::disk!`] have them. Bytes that it reads besides are taken as words.

mod recovery;
mod verity;

pub(crate) use recovery::{MAGIC, PAGE_LEN};

use packfs::{DirCursor, Format, Image, InodeKind, MemoryImage, Volume};
use packfs_format::{DiskField, watch};
use std::collections::HashSet;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex, PoisonError};

/// A number of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its offset.
    pub at: usize,
    /// Its length in bytes, at most 8.
    pub len: usize,
    /// The structure it is part of.
    pub of: &'static str,
    /// True if its first byte is the highest.
    pub is_big: bool,
}

impl Field {
    /// A little-endian field.
    pub(crate) fn new(of: &'static str, at: usize, len: usize) -> Field {
        Field { at, len, of, is_big: false }
    }

    /// Its value.
    pub fn get(self, image: &[u8]) -> u64 {
        let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        let Some(bytes) = image.get(self.at..self.at.saturating_add(self.len)) else { return 0 };
        if self.is_big { bytes.iter().fold(0, join) } else { bytes.iter().rev().fold(0, join) }
    }

    /// Gives it another; what does not fit is cut off.
    pub fn set(self, image: &mut [u8], value: u64) {
        let Some(bytes) = image.get_mut(self.at..self.at.saturating_add(self.len)) else { return };
        bytes.copy_from_slice(&value.to_le_bytes()[..self.len]);
        if self.is_big {
            bytes.reverse();
        }
    }
}

/// Fields that are taken of one image, and of these those that no structure has.
const FIELDS_MAX: usize = 50_000;
const OTHERS_MAX: usize = 40_000;
/// Longest read of which each byte is a field, too.
const SHORT_READ: usize = 512;
/// Directories and files that are walked.
const INODES_MAX: usize = 2_000;
/// Reads in which a structure is looked for before the whole image.
const RECENT: usize = 24;
/// Shortest structure that is looked for in the whole image.
const UNIQUE_LEN: usize = 8;

/// The fields of an image, of a recovery file or of a hash tree; none of anything else.
pub fn fields(input: &[u8]) -> Vec<Field> {
    let image = MemoryImage::new("input", input.to_vec());
    let mut fields = match packfs::formats::probe(&image) {
        Ok(Some(format)) => Watched::of(input, format).fields(),
        _ if recovery::is_one(input) => recovery::fields(input),
        _ => verity::fields(input),
    };
    fields.retain(|field| field.at.saturating_add(field.len) <= input.len());
    fields
}

/// An image that notes what is read from it.
struct Watched {
    bytes: Vec<u8>,
    reads: Mutex<Vec<Range<usize>>>,
}

impl Image for Watched {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> packfs::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let end = start.saturating_add(buf.len()).min(self.bytes.len());
        buf[..end - start].copy_from_slice(&self.bytes[start..end]);
        self.reads.lock().unwrap_or_else(PoisonError::into_inner).push(start..end);
        Ok(end - start)
    }

    fn name(&self) -> String {
        "watched image".into()
    }
}

/// Structures that were found in an image.
struct Places {
    image: Arc<Watched>,
    fields: Vec<Field>,
    covered: Vec<bool>,
    known: HashSet<(usize, &'static str)>,
    /// Bytes of structures that were looked for.
    taken: HashSet<Box<[u8]>>,
    /// End of the last structure, at which the next one often begins.
    end: usize,
}

impl Watched {
    /// Opens an image and reads all but the contents of files.
    fn of(input: &[u8], format: &dyn Format) -> Places {
        let image = Arc::new(Watched { bytes: input.to_vec(), reads: Mutex::default() });
        let places = Arc::new(Mutex::new(Places {
            image: Arc::clone(&image),
            fields: Vec::new(),
            covered: vec![false; input.len()],
            known: HashSet::new(),
            taken: HashSet::new(),
            end: 0,
        }));
        let found = Arc::clone(&places);
        let watcher = move |name, fields: &'static [DiskField], bytes: &[u8]| {
            found.lock().unwrap_or_else(PoisonError::into_inner).add(name, fields, bytes);
        };
        watch::watch(Box::new(watcher), || {
            if let Ok(volume) = format.open(image) {
                read(&*volume);
            }
        });
        Arc::into_inner(places).and_then(|places| places.into_inner().ok()).unwrap_or_else(|| unreachable!())
    }
}

/// Reads what can be asked of a volume, whatever it answers.
fn read(volume: &dyn Volume) {
    let _ = (volume.facts(), volume.space(), volume.check(&mut |_| {}));
    let (mut left, mut seen) = (vec![volume.root()], HashSet::new());
    while let Some(id) = left.pop().filter(|_| seen.len() < INODES_MAX) {
        if !seen.insert(id) {
            continue;
        }
        let _ = volume.xattrs(id);
        match volume.inode(id).map(|inode| inode.kind) {
            Ok(InodeKind::Directory) => {
                let _ = volume.read_dir(id, DirCursor(0), &mut |entry, _| {
                    let _ = volume.lookup(id, &entry.name);
                    left.push(entry.id);
                    ControlFlow::Continue(())
                });
            }
            Ok(InodeKind::Symlink) => drop(volume.read_link(id)),
            Ok(InodeKind::File { len }) => {
                let _ = volume.extents(id, 0..len, &mut |_| ControlFlow::Continue(()));
            }
            _ => {}
        }
    }
}

impl Places {
    /// Adds the fields of a structure that the reader has taken.
    fn add(&mut self, name: &'static str, fields: &'static [DiskField], bytes: &[u8]) {
        if self.fields.len() >= FIELDS_MAX {
            return;
        }
        let follows = self.image.bytes.get(self.end..).is_some_and(|rest| rest.starts_with(bytes));
        // One that was taken before is most likely read again.
        let is_new = self.taken.insert(bytes.into());
        let found = if follows { Some(self.end) } else { is_new.then(|| self.find(bytes)).flatten() };
        let Some(at) = found else { return };
        self.end = at + bytes.len();
        if self.known.insert((at, name)) {
            self.covered[at..at + bytes.len()].fill(true);
            let whole = DiskField { name, at: 0, len: bytes.len(), fields, is_big: false };
            self.put(name, at, &whole);
        }
    }

    /// Finds bytes in the latest read that has them.
    fn find(&self, bytes: &[u8]) -> Option<usize> {
        let image = &self.image.bytes;
        let within = |range: Range<usize>| {
            let mut windows = image.get(range.clone())?.windows(bytes.len().max(1));
            windows.position(|window| window == bytes).map(|at| range.start + at)
        };
        let reads = self.image.reads.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = reads.iter().rev().take(RECENT);
        let found = recent.cloned().find_map(|read| {
            let behind = self.end.clamp(read.start, read.end)..read.end;
            within(behind).or_else(|| within(read))
        });
        found.or_else(|| within(0..image.len()).filter(|_| bytes.len() >= UNIQUE_LEN))
    }

    fn put(&mut self, of: &'static str, at: usize, field: &DiskField) {
        let at = at + field.at;
        match field.len {
            _ if !field.fields.is_empty() => {
                field.fields.iter().for_each(|part| self.put(of, at, part));
            }
            1 | 2 | 4 | 8 if of != "bytes" => {
                self.fields.push(Field { at, len: field.len, of, is_big: field.is_big });
            }
            len => self.words(of, at..at + len),
        }
    }

    /// Takes bytes of which nothing is known as words, and one by one.
    fn words(&mut self, of: &'static str, range: Range<usize>) {
        self.numbers(of, range.clone());
        self.fields.extend(range.map(|at| Field::new(of, at, 1)));
    }

    /// Takes words, but those of empty space: 0, as the words beside them.
    fn numbers(&mut self, of: &'static str, range: Range<usize>) {
        let image = &self.image.bytes;
        let is_used = |at: usize| {
            let around = at.saturating_sub(4)..at.saturating_add(8).min(image.len());
            image[around].iter().any(|&byte| byte != 0)
        };
        let words = range.clone().step_by(4).filter(|at| is_used(*at));
        self.fields.extend(words.map(|at| Field::new(of, at, 4.min(range.end - at))));
    }

    /// All fields; those that no structure has are last.
    fn fields(mut self) -> Vec<Field> {
        let start = self.fields.len();
        let reads = std::mem::take(&mut *self.image.reads.lock().unwrap_or_else(PoisonError::into_inner));
        for read in reads {
            let mut at = read.start;
            while at < read.end && self.fields.len() < start + OTHERS_MAX {
                let is_new = |at: &usize| !self.covered[*at];
                let len = (at..read.end).take_while(is_new).count();
                self.covered[at..at + len].fill(true);
                match read.len() {
                    ..=SHORT_READ => self.words("other", at..at + len),
                    _ => self.numbers("other", at..at + len),
                }
                at += len.max(1);
            }
        }
        self.fields
    }
}

/// Adds fields of these lengths from `at` on.
fn row(found: &mut Vec<Field>, of: &'static str, mut at: usize, lens: &[usize]) {
    for &len in lens {
        found.push(Field::new(of, at, len));
        at = at.saturating_add(len);
    }
}
