//! The figures of an image of Squashfs 1.0 to 3.1, of either byte order, whose metadata is stored
//! as it is; of compressed blocks only the headers. Figures that share bytes are taken together.

use super::{Field, Finder};

/// Returns true for an image of these generations.
pub(super) fn is_known(image: &[u8]) -> bool {
    Shape::of(image).is_some()
}

/// Has the superblock say that the image is as long as it is; whether it is one of these.
pub(crate) fn claim_len(image: &mut [u8]) -> bool {
    let Some(shape) = Shape::of(image) else { return false };
    let len = image.len() as u64;
    match (shape.major, shape.big) {
        (3, false) => image[63..71].copy_from_slice(&len.to_le_bytes()),
        (3, true) => image[63..71].copy_from_slice(&len.to_be_bytes()),
        (_, false) => image[8..12].copy_from_slice(&(len as u32).to_le_bytes()),
        (_, true) => image[8..12].copy_from_slice(&(len as u32).to_be_bytes()),
    }
    true
}

const STORED: u64 = 1 << 15;
const CHECK: u8 = 1 << 2;
const COMMON: [usize; 16] = [4, 4, 4, 4, 4, 4, 4, 2, 2, 2, 2, 1, 1, 1, 4, 8];

/// Values of the superblock that determine the layout of the rest.
#[derive(Clone, Copy)]
struct Shape {
    big: bool,
    major: u64,
    header_len: usize,
    block_len: u64,
}

impl Shape {
    fn of(image: &[u8]) -> Option<Shape> {
        let big = match image.get(..4)? {
            b"hsqs" | b"shsq" | b"hsqt" => false,
            b"sqsh" | b"qshs" | b"tqsh" => true,
            _ => return None,
        };
        let shape = Shape { big, major: 0, header_len: 2, block_len: 1 };
        let major = shape.number(image, 28, 2);
        if !(1..=3).contains(&major) || image.len() < 119 {
            return None;
        }
        let header_len = if image[36] & CHECK == 0 { 2 } else { 3 };
        let block_len =
            if major == 1 { shape.number(image, 32, 2) } else { shape.number(image, 51, 4) }.max(1);
        Some(Shape { major, header_len, block_len, ..shape })
    }

    fn number(self, image: &[u8], at: usize, len: usize) -> u64 {
        let Some(bytes) = image.get(at..at + len) else { return 0 };
        let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        if self.big { bytes.iter().fold(0, join) } else { bytes.iter().rev().fold(0, join) }
    }

    /// A place that the superblock names.
    fn place(self, image: &[u8], short: usize, long: usize) -> usize {
        let found = if self.major == 3 { self.number(image, long, 8) } else { self.number(image, short, 4) };
        usize::try_from(found).unwrap_or(usize::MAX).min(image.len())
    }
}

pub(super) fn fields(image: &[u8]) -> Vec<Field> {
    let mut finder = Finder::new(image);
    let Some(shape) = Shape::of(image) else { return Vec::new() };
    finder.row("superblock", 0, &COMMON);
    if shape.major > 1 {
        finder.row("superblock", 51, &[4, 4, 4]);
    }
    if shape.major > 2 {
        finder.row("superblock", 63, &[8; 7]);
    }
    let (inodes, directories) = (shape.place(image, 20, 87), shape.place(image, 24, 95));
    let users = shape.place(image, 12, 71);
    let fragments = if shape.major > 1 { shape.place(image, 59, 103) } else { users };
    let stream = Stream::new(&mut finder, shape, inodes, directories);
    stream.inodes(&mut finder);
    let position_len = if shape.major == 3 { 8 } else { 4 };
    let first = |list: usize| (shape.number(image, list, position_len) as usize).min(image.len());
    let directories_end = if fragments < users { first(fragments).min(users) } else { users };
    let stream = Stream::new(&mut finder, shape, directories, directories_end);
    stream.directories(&mut finder);
    let row: &[usize] = if shape.major == 3 { &[8, 4, 4] } else { &[4, 4] };
    let mut tables = vec![("fragment table", fragments, row)];
    if shape.major == 3 {
        tables.push(("export table", shape.place(image, 111, 111), &[8]));
    }
    for (of, list, row) in tables.into_iter().filter(|(_, list, _)| *list < users) {
        finder.row(of, list, &[position_len]);
        let stream = Stream::new(&mut finder, shape, first(list), list);
        for at in (0..stream.places.len()).step_by(row.iter().sum()) {
            stream.row(&mut finder, of, at, row);
        }
    }
    for owner in 0..usize::from(image[37]) + usize::from(image[38]) {
        finder.row("owners", users + owner * 4, &[4]);
    }
    finder.found
}

/// Stored metadata blocks of a table, one after the other: where each byte of what they hold lies.
struct Stream {
    shape: Shape,
    places: Vec<usize>,
}

impl Stream {
    fn new(finder: &mut Finder<'_>, shape: Shape, start: usize, end: usize) -> Stream {
        let mut places = Vec::new();
        let (mut at, end) = (start, end.min(finder.image.len()));
        while at + shape.header_len <= end && !finder.is_full() {
            finder.row("metadata header", at, &[2]);
            let header = shape.number(finder.image, at, 2);
            let (body, len) = (at + shape.header_len, (header & !STORED) as usize);
            if header & STORED != 0 {
                places.extend(body..(body + len).min(end));
            }
            at = body + len;
        }
        Stream { shape, places }
    }

    fn number(&self, finder: &Finder<'_>, offset: usize, len: usize) -> u64 {
        let mut bytes = [0; 8];
        for (index, byte) in bytes.iter_mut().enumerate().take(len) {
            let place = self.places.get(offset + index);
            *byte = place.and_then(|&at| finder.image.get(at)).copied().unwrap_or(0);
        }
        self.shape.number(&bytes, 0, len)
    }

    /// Figures of these lengths; those that lie across two blocks are left out. Returns where they
    /// end.
    fn row(&self, finder: &mut Finder<'_>, of: &'static str, mut offset: usize, lens: &[usize]) -> usize {
        for &len in lens {
            if let (Some(&at), Some(&last)) = (self.places.get(offset), self.places.get(offset + len - 1))
                && last == at + len - 1
            {
                finder.row(of, at, &[len]);
            }
            offset += len;
        }
        offset
    }

    fn inodes(&self, finder: &mut Finder<'_>) {
        let Shape { big, major, block_len, .. } = self.shape;
        let of = "inode";
        let base: &[usize] = match major {
            1 => &[2, 1],
            2 => &[2, 1, 1],
            _ => &[2, 1, 1, 4, 4],
        };
        let mut at = 0;
        while at + 16 <= self.places.len() && !finder.is_full() {
            let first = self.number(finder, at, 1);
            let mut kind = if big { first >> 4 } else { first & 0xf };
            at = self.row(finder, of, at, base);
            if major == 1 {
                kind = if kind == 0 { 6 } else { (kind - 1) % 5 + 1 };
            }
            at = match (kind, major) {
                (1, 3) => self.row(finder, of, at, &[4, 4, 4, 4]),
                (1, _) => self.row(finder, of, at, &[4, 4, 3]),
                (8, 2 | 3) => {
                    let (lens, count_at, entry): (&[usize], _, &[usize]) = match major {
                        2 => (&[4, 1, 4, 3, 2], 12, &[4, 3, 1]),
                        _ => (&[4, 4, 1, 4, 2, 4], 13, &[4, 4, 1]),
                    };
                    let count = self.number(finder, at + count_at, 2);
                    let mut at = self.row(finder, of, at, lens);
                    for _ in 0..count {
                        let size_at = at + entry[0] + entry[1];
                        let name_len = self.number(finder, size_at, 1) as usize + 1;
                        at = self.row(finder, "directory index", at, entry) + name_len;
                        if at > self.places.len() {
                            return;
                        }
                    }
                    at
                }
                (2, _) | (9, 3) => {
                    let (lens, fragment_at, len_at, len_len): (&[usize], _, _, _) = match (kind, major) {
                        (_, 1) => (&[4, 4, 4], None, 8, 4),
                        (_, 2) => (&[4, 4, 4, 4, 4], Some(8), 16, 4),
                        (2, _) => (&[8, 4, 4, 4], Some(8), 16, 4),
                        _ => (&[4, 8, 4, 4, 8], Some(12), 20, 8),
                    };
                    let len = self.number(finder, at + len_at, len_len);
                    let fragment = fragment_at.map(|within| self.number(finder, at + within, 4));
                    let no_tail = fragment.is_none_or(|fragment| fragment == u64::from(u32::MAX));
                    let blocks = if no_tail { len.div_ceil(block_len) } else { len / block_len };
                    let word_len = if major == 1 { 2 } else { 4 };
                    let mut at = self.row(finder, of, at, lens);
                    for _ in 0..blocks.min(self.places.len() as u64) {
                        at = self.row(finder, "block list", at, &[word_len]);
                    }
                    at
                }
                (3, _) => {
                    let lens: &[usize] = if major == 3 { &[4, 2] } else { &[2] };
                    let end = self.row(finder, of, at, lens);
                    end + self.number(finder, end - 2, 2) as usize
                }
                (4 | 5, 3) => self.row(finder, of, at, &[4, 2]),
                (4 | 5, _) => self.row(finder, of, at, &[2]),
                (6 | 7, 3) => self.row(finder, of, at, &[4]),
                (6 | 7, 1) => self.row(finder, of, at, &[1]),
                (6 | 7, _) => at,
                _ => return,
            };
        }
    }

    fn directories(&self, finder: &mut Finder<'_>) {
        let (header, entry): (&[usize], &[usize]) =
            if self.shape.major == 3 { (&[1, 4, 4], &[2, 1, 2]) } else { (&[1, 3], &[2, 1]) };
        let mut at = 0;
        while at + 9 <= self.places.len() && !finder.is_full() {
            let count = self.number(finder, at, 1);
            at = self.row(finder, "directory header", at, header);
            for _ in 0..=count {
                let name_len = self.number(finder, at + 2, 1) as usize;
                at = self.row(finder, "directory entry", at, entry);
                // The name too: a slash, a dot or a zero may get into it.
                at = self.row(finder, "name", at, &[1]) + name_len;
            }
        }
    }
}
