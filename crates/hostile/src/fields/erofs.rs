//! The figures of an EROFS image: its superblock, inodes with all that follows them, and
//! directories that are not compressed.

use super::{Field, Finder};

const AT: usize = 1024;
const SUPER_BLOCK: [usize; 21] = [4, 4, 4, 1, 1, 2, 8, 8, 4, 4, 4, 4, 8, 8, 8, 8, 4, 2, 2, 2, 1];
const SUPER_BLOCK_REST: [usize; 11] = [1, 4, 8, 1, 1, 2, 4, 8, 8, 8, 8];
/// Rows of indexes that are taken after one inode.
const ROWS_MAX: usize = 64;

pub(super) fn fields(image: &[u8], nodes: &[u64]) -> Vec<Field> {
    let mut finder = Finder::new(image);
    finder.row("superblock", AT, &SUPER_BLOCK);
    finder.row("superblock", AT + 91, &SUPER_BLOCK_REST);
    // Settings of codecs, or the first slots of a device table.
    finder.row("codec settings", AT + 128, &[2; 16]);
    let block_bits = finder.number(AT + 12, 1).clamp(9, 16);
    let meta_at = finder.offset(AT + 40, 4) << block_bits;
    let root = finder.number(AT + 14, 2);
    for &node in nodes.iter().chain(std::iter::once(&root)) {
        // Those of the metabox lie in what is compressed.
        let at = (node >> 63 == 0).then(|| meta_at.checked_add(usize::try_from(node).ok()?.checked_mul(32)?));
        if let Some(Some(at)) = at
            && at + 32 <= image.len()
        {
            inode_fields(&mut finder, at, 1 << block_bits);
        }
    }
    prefix_fields(&mut finder);
    finder.found
}

fn inode_fields(finder: &mut Finder<'_>, start: usize, block_len: usize) {
    let of = "inode";
    let format = finder.number(start, 2);
    let layout = format >> 1 & 7;
    let is_directory = finder.number(start + 4, 2) & 0o170_000 == 0o040_000;
    let (len, mut at) = if format & 1 == 0 {
        finder.row(of, start, &[2, 2, 2, 2, 4, 4, 4, 4, 2, 2, 4]);
        (finder.offset(start + 8, 4), start + 32)
    } else {
        finder.row(of, start, &[2, 2, 2, 2, 8, 4, 4, 4, 4, 8, 4, 4]);
        (finder.offset(start + 8, 8), start + 64)
    };
    let first_block = finder.offset(start + 16, 4);
    let xattr_count = finder.offset(start + 2, 2);
    if xattr_count > 0 {
        let end = at + 12 + 4 * (xattr_count - 1);
        xattr_fields(finder, at, end);
        at = end;
    }
    match layout {
        1 | 3 => {
            let at = at.next_multiple_of(8);
            finder.row("map header", at, &[4, 2, 1, 1]);
            let rows = len.div_ceil(block_len).min(ROWS_MAX) + 1;
            // Indexes of 8 bytes a row, packs of 4 or 2 bytes, or extents: each has its figures at
            // these places.
            for row in 0..rows {
                finder.row("index", at + 8 + 8 * row, &[2, 2, 4]);
            }
        }
        4 => {
            for row in 0..len.div_ceil(block_len).min(ROWS_MAX) {
                finder.row("chunk index", at.next_multiple_of(8) + 8 * row, &[2, 2, 4]);
            }
        }
        _ if is_directory => {
            let whole = len / block_len;
            let flat = if layout == 0 { len.div_ceil(block_len) } else { whole };
            for block in 0..flat.min(ROWS_MAX) {
                let at = first_block.saturating_add(block).saturating_mul(block_len);
                directory_fields(finder, at, block_len);
            }
            if layout == 2 {
                directory_fields(finder, at, len % block_len);
            }
        }
        // A target, or the tail of a file: the first byte of it.
        _ => finder.row("inline data", at, &[1]),
    }
}

fn directory_fields(finder: &mut Finder<'_>, start: usize, len: usize) {
    if start.saturating_add(12) > finder.image.len() || len < 12 {
        return;
    }
    let names_at = finder.offset(start + 8, 2).min(len);
    for at in (start..start + names_at / 12 * 12).step_by(12) {
        let name = start + finder.offset(at + 8, 2);
        finder.row("directory entry", at, &[8, 2, 1, 1]);
        finder.row("name", name, &[1]);
    }
}

fn xattr_fields(finder: &mut Finder<'_>, start: usize, end: usize) {
    let shared = finder.offset(start + 4, 1);
    finder.row("xattr header", start, &[4, 1, 1, 2, 4]);
    for index in 0..shared {
        finder.row("xattr header", start + 12 + 4 * index, &[4]);
    }
    let mut at = start + 12 + 4 * shared;
    while at + 4 <= end && !finder.is_full() {
        finder.row("xattr", at, &[1, 1, 2, 1]);
        let len = 4 + finder.offset(at, 1) + finder.offset(at + 2, 2);
        at += len.next_multiple_of(4);
    }
}

/// Long prefixes of attributes' names: a length each, then the prefix.
fn prefix_fields(finder: &mut Finder<'_>) {
    let mut at = finder.offset(AT + 92, 4).saturating_mul(4);
    for _ in 0..finder.offset(AT + 91, 1) {
        if at + 3 > finder.image.len() {
            return;
        }
        finder.row("xattr prefix", at, &[2, 1]);
        at += (2 + finder.offset(at, 2)).next_multiple_of(4);
    }
}
