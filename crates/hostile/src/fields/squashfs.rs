//! The figures of a SquashFS image whose metadata is stored uncompressed; of compressed blocks only
//! the headers.

use super::{Field, Finder};

const SUPER_BLOCK: [usize; 19] = [4, 4, 4, 4, 4, 2, 2, 2, 2, 2, 2, 8, 8, 8, 8, 8, 8, 8, 8];
const BLOCK_LEN_AT: usize = 12;
const ID_TABLE_AT: usize = 48;
const XATTR_TABLE_AT: usize = 56;
const INODE_TABLE_AT: usize = 64;
const DIRECTORY_TABLE_AT: usize = 72;
const FRAGMENT_TABLE_AT: usize = 80;
const LOOKUP_TABLE_AT: usize = 88;
const STORED: u64 = 1 << 15;

pub(super) fn fields(image: &[u8]) -> Vec<Field> {
    let mut finder = Finder::new(image);
    finder.row("superblock", 0, &SUPER_BLOCK);
    let at = |field| finder.offset(field, 8);
    let (inodes, directories) = (at(INODE_TABLE_AT), at(DIRECTORY_TABLE_AT));
    let index_starts = [at(ID_TABLE_AT), at(XATTR_TABLE_AT), at(FRAGMENT_TABLE_AT), at(LOOKUP_TABLE_AT)];
    let (ids, xattrs, fragments, lookup) =
        (index_starts[0], index_starts[1], index_starts[2], index_starts[3]);
    let block_len = finder.number(BLOCK_LEN_AT, 4).max(1);
    // Metadata blocks of the tables come before their indexes: the first one ends the listings.
    let ends = [fragments, lookup, ids, xattrs].into_iter().filter_map(|index| {
        (index < image.len()).then(|| finder.offset(index, 8)).filter(|&first| first > directories)
    });
    let directories_end = ends.min().unwrap_or(image.len());

    let stream = Stream::new(&mut finder, inodes, directories);
    inode_fields(&mut finder, &stream, block_len);
    let stream = Stream::new(&mut finder, directories, directories_end);
    directory_fields(&mut finder, &stream);
    for (of, index, row) in [
        ("fragment table", fragments, &[8, 4, 0][..]),
        ("id table", ids, &[4]),
        ("export table", lookup, &[8]),
    ] {
        index_fields(&mut finder, of, index, row);
    }
    if xattrs < image.len() {
        finder.row("xattr table", xattrs, &[8, 4, 0]);
        index_fields(&mut finder, "xattr table", xattrs + 16, &[8, 4, 4]);
        let (values, rows) = (finder.offset(xattrs, 8), finder.offset(xattrs + 16, 8));
        let stream = Stream::new(&mut finder, values, rows);
        xattr_fields(&mut finder, &stream);
    }
    finder.found
}

/// Stored metadata blocks of a table, one after the other: where each byte of what they hold lies.
struct Stream {
    places: Vec<usize>,
}

impl Stream {
    fn new(finder: &mut Finder<'_>, start: usize, end: usize) -> Stream {
        let mut places = Vec::new();
        let (mut at, end) = (start, end.min(finder.image.len()));
        while at + 2 <= end && !finder.is_full() {
            finder.row("metadata header", at, &[2]);
            let header = finder.number(at, 2);
            let len = (header & !STORED) as usize;
            if header & STORED == 0 || len == 0 {
                // Compressed: nothing after it can be placed.
                at += 2 + len;
                continue;
            }
            places.extend(at + 2..(at + 2 + len).min(end));
            at += 2 + len;
        }
        Stream { places }
    }

    /// The byte at an offset of the stream.
    fn place(&self, offset: usize) -> Option<usize> {
        self.places.get(offset).copied()
    }

    fn number(&self, finder: &Finder<'_>, offset: usize, len: usize) -> Option<u64> {
        let bytes = (0..len).map(|index| Some(*finder.image.get(self.place(offset + index)?)?));
        bytes.rev().try_fold(0, |number, byte| Some(number << 8 | u64::from(byte?)))
    }

    /// Figures of these lengths; those that lie across two blocks are left out. Returns where they
    /// end.
    fn row(&self, finder: &mut Finder<'_>, of: &'static str, mut offset: usize, lens: &[usize]) -> usize {
        for &len in lens {
            if let (Some(at), Some(last)) = (self.place(offset), self.place(offset + len - 1))
                && last == at + len - 1
            {
                finder.row(of, at, &[len]);
            }
            offset += len;
        }
        offset
    }
}

const BASE: [usize; 6] = [2, 2, 2, 2, 4, 4];

fn inode_fields(finder: &mut Finder<'_>, stream: &Stream, block_len: u64) {
    let mut at = 0;
    while at + 16 <= stream.places.len() && !finder.is_full() {
        let Some(kind) = stream.number(finder, at, 2) else { return };
        stream.row(finder, "inode", at, &BASE);
        at += 16;
        let of = "inode";
        let number = |finder: &Finder<'_>, offset, len| stream.number(finder, offset, len).unwrap_or(0);
        at = match kind {
            1 => stream.row(finder, of, at, &[4, 4, 2, 2, 4]),
            8 => {
                let count = number(finder, at + 16, 2);
                let mut at = stream.row(finder, of, at, &[4, 4, 4, 4, 2, 2, 4]);
                for _ in 0..count {
                    let name_len = number(finder, at + 8, 4) as usize + 1;
                    at = stream.row(finder, "directory index", at, &[4, 4, 4]).saturating_add(name_len);
                    if at > stream.places.len() {
                        return;
                    }
                }
                at
            }
            2 | 9 => {
                let (len, fragment, head): (u64, u64, &[usize]) = if kind == 2 {
                    (number(finder, at + 12, 4), number(finder, at + 4, 4), &[4, 4, 4, 4])
                } else {
                    (number(finder, at + 8, 8), number(finder, at + 28, 4), &[8, 8, 8, 4, 4, 4, 4])
                };
                let no_tail = fragment == u64::from(u32::MAX);
                let blocks = if no_tail { len.div_ceil(block_len) } else { len / block_len };
                let mut at = stream.row(finder, of, at, head);
                for _ in 0..blocks.min(stream.places.len() as u64) {
                    at = stream.row(finder, "block list", at, &[4]);
                }
                at
            }
            3 | 10 => {
                let target_len = number(finder, at + 4, 4) as usize;
                let at = stream.row(finder, of, at, &[4, 4]).saturating_add(target_len);
                if kind == 10 && at < stream.places.len() { stream.row(finder, of, at, &[4]) } else { at }
            }
            4 | 5 => stream.row(finder, of, at, &[4, 4]),
            11 | 12 => stream.row(finder, of, at, &[4, 4, 4]),
            6 | 7 => stream.row(finder, of, at, &[4]),
            13 | 14 => stream.row(finder, of, at, &[4, 4]),
            _ => return,
        };
    }
}

fn directory_fields(finder: &mut Finder<'_>, stream: &Stream) {
    let mut at = 0;
    while at + 12 <= stream.places.len() && !finder.is_full() {
        let count = stream.number(finder, at, 4).unwrap_or(0);
        at = stream.row(finder, "directory header", at, &[4, 4, 4]);
        for _ in 0..=count.min(255) {
            let Some(name_len) = stream.number(finder, at + 6, 2) else { return };
            at = stream.row(finder, "directory entry", at, &[2, 2, 2, 2]);
            // The name too: a slash, a dot or a zero may get into it.
            at = stream.row(finder, "name", at, &[1]) + name_len as usize;
        }
    }
}

/// The positions in an index, and the rows of the blocks that they point to.
fn index_fields(finder: &mut Finder<'_>, of: &'static str, index: usize, row: &[usize]) {
    if index >= finder.image.len() {
        return;
    }
    let first = finder.offset(index, 8);
    let stream = Stream::new(finder, first, index);
    let row_len: usize = row.iter().map(|&len| if len == 0 { 4 } else { len }).sum();
    for at in (0..stream.places.len() / row_len * row_len).step_by(row_len) {
        let lens: Vec<usize> = row.iter().map(|&len| if len == 0 { 4 } else { len }).collect();
        stream.row(finder, of, at, &lens);
    }
    let blocks = stream.places.len().div_ceil(8192).clamp(1, 16);
    for block in 0..blocks {
        finder.row(of, index + 8 * block, &[8]);
    }
}

fn xattr_fields(finder: &mut Finder<'_>, stream: &Stream) {
    let mut at = 0;
    while at + 8 <= stream.places.len() && !finder.is_full() {
        let Some(name_len) = stream.number(finder, at + 2, 2) else { return };
        at = stream.row(finder, "xattr", at, &[2, 2]) + name_len as usize;
        let Some(value_len) = stream.number(finder, at, 4) else { return };
        at = stream.row(finder, "xattr", at, &[4]).saturating_add(value_len as usize);
    }
}
