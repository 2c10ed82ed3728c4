//! The figures of a cramfs image of either byte order: the superblock, the inodes of every listing
//! with the first byte of their names, block pointers and the lengths before blocks that are
//! pointed to directly. Figures that share bytes are taken together.

use super::{Field, Finder};
use std::collections::HashSet;

const MAGIC: u32 = 0x28cd_3d45;
/// Offsets that a superblock may have.
const STARTS: [usize; 2] = [0, 512];
const SUPER_LEN: usize = 76;
const VERSION_2: u64 = 1;
const EXTENDED: u64 = 0x800;
const OPENRG: u64 = 0xf000;
const DIRECT: u64 = 1 << 30;
/// Pointers that are taken of one file.
const POINTERS_MAX: u64 = 64;

/// Start and byte order of a superblock.
#[derive(Clone, Copy)]
struct Shape {
    start: usize,
    big: bool,
}

impl Shape {
    fn of(image: &[u8]) -> Option<Shape> {
        STARTS.into_iter().find_map(|start| {
            let magic: [u8; 4] = image.get(start..start + SUPER_LEN)?[..4].try_into().ok()?;
            let is_little = magic == MAGIC.to_le_bytes();
            (is_little || magic == MAGIC.to_be_bytes()).then_some(Shape { start, big: !is_little })
        })
    }

    fn number(self, image: &[u8], at: usize, len: usize) -> u64 {
        let Some(bytes) = image.get(at..at.saturating_add(len)) else { return 0 };
        let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        if self.big { bytes.iter().fold(0, join) } else { bytes.iter().rev().fold(0, join) }
    }

    /// A figure of so many bytes. Values that matter are little-endian, so those of the other order
    /// are taken byte by byte as well.
    fn figure(self, finder: &mut Finder<'_>, of: &'static str, at: usize, len: usize) {
        finder.row(of, at, &[len]);
        if self.big && len > 1 {
            finder.row(of, at, &[1; 4][..len.min(4)]);
        }
    }

    fn inode(self, image: &[u8], at: usize) -> Inode {
        let last = self.number(image, at + 8, 4);
        let (name_units, units) =
            if self.big { (last >> 26, last & 0x3ff_ffff) } else { (last & 0x3f, last >> 6) };
        Inode {
            kind: self.number(image, at, 2) >> 12,
            size: self.number(image, at + 4, 3),
            name_len: name_units as usize * 4,
            offset: units as usize * 4,
        }
    }

    fn inode_figures(self, finder: &mut Finder<'_>, of: &'static str, at: usize) {
        for (within, len) in [(0, 2), (2, 2), (4, 3), (7, 1), (8, 1), (8, 4), (9, 1), (11, 1)] {
            self.figure(finder, of, at + within, len);
        }
    }
}

struct Inode {
    kind: u64,
    size: u64,
    name_len: usize,
    offset: usize,
}

/// Returns true for a cramfs image.
pub(super) fn is_one(image: &[u8]) -> bool {
    Shape::of(image).is_some()
}

/// Has the superblock say that the image is as long as it is; whether it is one of these.
pub(crate) fn claim_len(image: &mut [u8]) -> bool {
    let Some(Shape { start, big }) = Shape::of(image) else { return false };
    let len = image.len() as u32;
    image[start + 4..start + 8].copy_from_slice(&if big { len.to_be_bytes() } else { len.to_le_bytes() });
    true
}

/// Range and offset of a checksum: from the superblock to the recorded end of the image, or to the
/// end of the file.
pub(crate) struct Summed {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) big: bool,
}

/// Offset of the checksum's word in a superblock.
pub(crate) const SUM_AT: usize = 32;

/// Returns the range of an image with a checksum.
pub(crate) fn summed(image: &[u8]) -> Option<Summed> {
    let shape @ Shape { start, big } = Shape::of(image)?;
    let end = (shape.number(image, start + 4, 4) as usize).min(image.len());
    let has_sum = shape.number(image, start + 8, 4) & VERSION_2 != 0;
    (has_sum && end >= start + SUPER_LEN).then_some(Summed { start, end, big })
}

pub(super) fn fields(image: &[u8]) -> Vec<Field> {
    let mut finder = Finder::new(image);
    let Some(shape) = Shape::of(image) else { return Vec::new() };
    let start = shape.start;
    for word in [0, 4, 8, 12, 32, 36, 40, 44] {
        shape.figure(&mut finder, "superblock", start + word, 4);
    }
    finder.row("superblock", start + 16, &[1]);
    shape.inode_figures(&mut finder, "superblock", start + 64);
    let flags = shape.number(image, start + 8, 4);
    let is_openrg = flags & OPENRG != 0;
    let has_flags = !is_openrg && flags & EXTENDED != 0;
    let page_bits = if is_openrg { 12 + (flags >> 11 & 7) } else { 12 };
    let root = shape.inode(image, start + 64);
    let mut seen = HashSet::new();
    let mut open = vec![(root.offset, root.size as usize)];
    while let Some((listing, len)) = open.pop() {
        if !seen.insert(listing) || listing < start + SUPER_LEN {
            continue;
        }
        let end = listing.saturating_add(len).min(image.len());
        let mut at = listing;
        while at + 12 <= end && !finder.is_full() {
            let inode = shape.inode(image, at);
            shape.inode_figures(&mut finder, "inode", at);
            if inode.name_len > 0 {
                // A slash, a dot or a zero may get into it.
                finder.row("name", at + 12, &[1]);
                finder.row("name", at + 11 + inode.name_len, &[1]);
            }
            match inode.kind {
                0o4 => open.push((inode.offset, inode.size as usize)),
                0o10 | 0o12 if inode.offset > 0 => {
                    let count = inode.size.div_ceil(1 << page_bits).min(POINTERS_MAX);
                    pointers(&mut finder, shape, inode.offset, count, has_flags);
                }
                _ => {}
            }
            at += 12 + inode.name_len;
        }
    }
    finder.found
}

/// The block pointers of a file.
fn pointers(finder: &mut Finder<'_>, shape: Shape, start: usize, count: u64, has_flags: bool) {
    for at in (start..finder.image.len()).step_by(4).take(count as usize) {
        shape.figure(finder, "block pointer", at, 4);
        let pointer = shape.number(finder.image, at, 4);
        if has_flags && pointer & DIRECT != 0 {
            shape.figure(finder, "block length", (pointer & (DIRECT - 1)) as usize * 4, 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A superblock and the inode of a file of two pages, as the tables of docs/formats/cramfs.md
    /// have them.
    fn image(start: usize, big: bool) -> Vec<u8> {
        let mut image = vec![0; start + 4096];
        let mut put = |at: usize, word: u32| {
            let bytes = if big { word.to_be_bytes() } else { word.to_le_bytes() };
            image[start + at..start + at + 4].copy_from_slice(&bytes);
        };
        let split = |first: u32, width: u32, second: u32| {
            if big { first << (32 - width) | second } else { second << width | first }
        };
        put(0, MAGIC);
        put(4, (start + 4096) as u32);
        put(8, 3);
        put(64, split(0o40_755, 16, 0));
        put(68, split(16, 24, 0));
        put(72, split(0, 6, (start as u32 + 76) / 4));
        put(76, split(0o100_644, 16, 0));
        put(80, split(5000, 24, 0));
        put(84, split(1, 6, (start as u32 + 92) / 4));
        put(88, u32::from_ne_bytes(*b"name"));
        image
    }

    #[test]
    fn both_byte_orders_have_the_same_structures() {
        for (start, big) in [(0, false), (0, true), (512, false), (512, true)] {
            let image = image(start, big);
            let found = fields(&image);
            let places = |of: &str, len: usize| -> Vec<usize> {
                let all = found.iter().filter(|field| field.of == of && field.len == len);
                all.map(|field| field.at - start).collect()
            };
            assert_eq!(places("inode", 3), [80], "{start} {big}");
            assert_eq!(places("block pointer", 4), [92, 96], "{start} {big}");
            assert_eq!(places("name", 1), [88, 91], "{start} {big}");
        }
    }

    #[test]
    fn the_length_is_written_in_the_order_of_the_image() {
        for big in [false, true] {
            let mut image = image(512, big);
            image.truncate(1000);
            assert!(claim_len(&mut image));
            let summed = summed(&image).unwrap();
            assert_eq!((summed.start, summed.end, summed.big), (512, 1000, big));
        }
        assert!(!claim_len(&mut [0; 600]));
    }

    #[test]
    fn listings_that_lead_back_are_walked_once() {
        let mut image = image(0, false);
        // The file becomes a directory, whose listing is the one that names it.
        image[76..78].copy_from_slice(&0o40_755_u16.to_le_bytes());
        image[84..88].copy_from_slice(&(1_u32 | 19 << 6).to_le_bytes());
        let inodes = fields(&image).iter().filter(|field| field.of == "inode" && field.len == 3).count();
        assert_eq!(inodes, 1);
    }
}
