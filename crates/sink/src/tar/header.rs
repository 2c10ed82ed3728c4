//! The header of a tar member: ustar, preceded by PAX records for values that do not fit.
//!
//! Deterministic: a header depends only on its member. PAX records are written only for values that
//! ustar cannot represent: long paths, large numbers, fractions of a second, extended attributes,
//! sparse files. Source: POSIX.1-2017, `pax`, "ustar Interchange Format" and "pax Extended Header";
//! GNU tar manual, "Storing Sparse Files", PAX format 1.0; `SCHILY.xattr.*` as in star(1) and GNU
//! tar.

use packfs_core::{DeviceNumber, Meta, Timestamp, Xattrs};
use std::ops::Range;

/// Unit of a tar archive: all lengths are multiples of it.
pub(super) const BLOCK_LEN: usize = 512;
/// Longest `name` and `linkname` of ustar.
const NAME_LEN_MAX: usize = 100;
/// Longest `prefix` of ustar.
const PREFIX_LEN_MAX: usize = 155;
/// Greatest value of seven octal digits: ids and device numbers.
const ID_MAX: u64 = 0o7_777_777;
/// Greatest value of eleven octal digits: lengths and times.
const LONG_MAX: u64 = 0o77_777_777_777;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Member<'a> {
    File {
        len: u64,
    },
    /// A file of which only the ranges `data` are stored; `len` is its length.
    Sparse {
        len: u64,
        data: &'a [Range<u64>],
    },
    HardLink(&'a [u8]),
    Symlink(&'a [u8]),
    CharDevice(DeviceNumber),
    BlockDevice(DeviceNumber),
    Directory,
    Fifo,
}

/// `path` ends with `/` for a directory. The map of a [`Member::Sparse`] is included, so its data
/// follows directly.
pub(super) fn append(out: &mut Vec<u8>, path: &[u8], member: Member<'_>, meta: &Meta, xattrs: &Xattrs) {
    let map = match member {
        Member::Sparse { len, data } => sparse_map(len, data),
        _ => Vec::new(),
    };
    let stored_len = match member {
        Member::File { len } => len,
        Member::Sparse { data, .. } => {
            data.iter().fold(map.len() as u64, |sum, run| sum + (run.end - run.start))
        }
        _ => 0,
    };
    let mut records = Vec::new();
    let short_path;
    let (prefix, name) = match member {
        Member::Sparse { len, .. } => {
            record(&mut records, b"GNU.sparse.major", b"1");
            record(&mut records, b"GNU.sparse.minor", b"0");
            record(&mut records, b"GNU.sparse.name", path);
            record(&mut records, b"GNU.sparse.realsize", len.to_string().as_bytes());
            short_path = short_name(b"GNUSparseFile.0/", path);
            (&[][..], &short_path[..])
        }
        _ => split(path).unwrap_or_else(|| {
            record(&mut records, b"path", path);
            (&[][..], cut(path))
        }),
    };
    let target = match member {
        Member::HardLink(target) | Member::Symlink(target) => target,
        _ => &[],
    };
    if target.len() > NAME_LEN_MAX {
        record(&mut records, b"linkpath", target);
    }
    if stored_len > LONG_MAX {
        record(&mut records, b"size", stored_len.to_string().as_bytes());
    }
    // A hard link has no attributes: its inode was written before.
    let is_link = matches!(member, Member::HardLink(_));
    number_record(&mut records, b"uid", meta.owner.uid);
    number_record(&mut records, b"gid", meta.owner.gid);
    if meta.mtime.nanos != 0 || u64::try_from(meta.mtime.seconds).map_or(true, |s| s > LONG_MAX) {
        record(&mut records, b"mtime", meta.mtime.to_string().as_bytes());
    }
    for (name, value) in xattrs.iter().filter(|_| !is_link) {
        record(&mut records, &xattr_keyword(name), value);
    }
    if !records.is_empty() {
        let name = short_name(b"PaxHeaders/", path);
        let fields =
            Fields { prefix: &[], name: &name, target: &[], len: records.len() as u64, letter: b'x' };
        let own = Meta { mode: 0o644, mtime: meta.mtime, ..Meta::default() };
        out.extend_from_slice(&fields.block(&own, DeviceNumber::default()));
        out.extend_from_slice(&records);
        pad(out, records.len());
    }
    let (letter, device) = match member {
        Member::File { .. } | Member::Sparse { .. } => (b'0', DeviceNumber::default()),
        Member::HardLink(_) => (b'1', DeviceNumber::default()),
        Member::Symlink(_) => (b'2', DeviceNumber::default()),
        Member::CharDevice(device) => (b'3', device),
        Member::BlockDevice(device) => (b'4', device),
        Member::Directory => (b'5', DeviceNumber::default()),
        Member::Fifo => (b'6', DeviceNumber::default()),
    };
    let fields = Fields { prefix, name, target: cut(target), len: stored_len, letter };
    out.extend_from_slice(&fields.block(meta, device));
    out.extend_from_slice(&map);
}

/// Returns the header of a plain file: owned by root, readable by all, mtime 0.
pub fn file_header(path: &[u8], len: u64) -> Vec<u8> {
    let (mut out, meta) = (Vec::new(), Meta { mode: 0o644, ..Meta::default() });
    append(&mut out, path, Member::File { len }, &meta, &Xattrs::new());
    out
}

/// Returns the number of zeros that follow `len` bytes.
pub fn padding(len: u64) -> usize {
    (len.wrapping_neg() % BLOCK_LEN as u64) as usize
}

fn pad(out: &mut Vec<u8>, len: usize) {
    out.resize(out.len() + padding(len as u64), 0);
}

fn cut(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(NAME_LEN_MAX)]
}

/// `None` if the path does not fit.
fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    if path.len() <= NAME_LEN_MAX {
        return Some((&[], path));
    }
    // The slash between both is not stored. A name must not be empty, so a directory's final slash
    // stays.
    let slash = path.len().checked_sub(NAME_LEN_MAX + 1)?;
    let last = PREFIX_LEN_MAX.min(path.len() - 2);
    let at = (slash.max(1)..=last).find(|&at| path.get(at) == Some(&b'/'))?;
    Some((&path[..at], &path[at + 1..]))
}

/// Name for readers without PAX support: `directory` and the last component.
fn short_name(directory: &[u8], path: &[u8]) -> Vec<u8> {
    let last = path.split(|&b| b == b'/').rfind(|c| !c.is_empty()).unwrap_or(b".");
    let mut name = directory.to_vec();
    name.extend_from_slice(&last[..last.len().min(NAME_LEN_MAX - directory.len())]);
    name
}

/// Format: `LENGTH KEYWORD=VALUE\n`; the length includes itself.
fn record(out: &mut Vec<u8>, keyword: &[u8], value: &[u8]) {
    let rest = keyword.len() + value.len() + 3;
    let mut len = rest + decimal_len(rest);
    if decimal_len(len) != decimal_len(rest) {
        len = rest + decimal_len(len);
    }
    out.extend_from_slice(len.to_string().as_bytes());
    out.push(b' ');
    out.extend_from_slice(keyword);
    out.push(b'=');
    out.extend_from_slice(value);
    out.push(b'\n');
}

fn decimal_len(number: usize) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

fn number_record(records: &mut Vec<u8>, keyword: &[u8], id: u32) {
    if u64::from(id) > ID_MAX {
        record(records, keyword, id.to_string().as_bytes());
    }
}

/// A keyword ends at the first `=`, so GNU tar writes `%3D` for one in a name, and `%25` for the
/// percent sign.
fn xattr_keyword(name: &[u8]) -> Vec<u8> {
    let mut keyword = b"SCHILY.xattr.".to_vec();
    for &byte in name {
        match byte {
            b'=' => keyword.extend_from_slice(b"%3D"),
            b'%' => keyword.extend_from_slice(b"%25"),
            _ => keyword.push(byte),
        }
    }
    keyword
}

/// Count, then offset and length of each run, one number a line, padded.
fn sparse_map(len: u64, data: &[Range<u64>]) -> Vec<u8> {
    // A final hole is represented by an empty run, as in GNU tar; so the map is never empty.
    let ends_in_hole = data.last().is_none_or(|run| run.end < len);
    let mut text = format!("{}\n", data.len() + usize::from(ends_in_hole));
    for run in data {
        text += &format!("{}\n{}\n", run.start, run.end - run.start);
    }
    if ends_in_hole {
        text += &format!("{len}\n0\n");
    }
    let mut map = text.into_bytes();
    let len = map.len();
    pad(&mut map, len);
    map
}

struct Fields<'a> {
    prefix: &'a [u8],
    name: &'a [u8],
    target: &'a [u8],
    len: u64,
    letter: u8,
}

impl Fields<'_> {
    /// Numbers that do not fit are written as the greatest possible; a PAX record has the true one.
    fn block(&self, meta: &Meta, device: DeviceNumber) -> [u8; BLOCK_LEN] {
        let mut block = [0; BLOCK_LEN];
        let mtime = u64::try_from(whole_seconds(meta.mtime)).unwrap_or(0);
        block[..self.name.len()].copy_from_slice(self.name);
        octal(&mut block[100..108], u64::from(meta.mode & 0o7777));
        octal(&mut block[108..116], u64::from(meta.owner.uid).min(ID_MAX));
        octal(&mut block[116..124], u64::from(meta.owner.gid).min(ID_MAX));
        octal(&mut block[124..136], self.len.min(LONG_MAX));
        octal(&mut block[136..148], mtime.min(LONG_MAX));
        block[148..156].fill(b' ');
        block[156] = self.letter;
        block[157..157 + self.target.len()].copy_from_slice(self.target);
        block[257..265].copy_from_slice(b"ustar\x0000");
        octal(&mut block[329..337], u64::from(device.major).min(ID_MAX));
        octal(&mut block[337..345], u64::from(device.minor).min(ID_MAX));
        block[345..345 + self.prefix.len()].copy_from_slice(self.prefix);
        let sum: u64 = block.iter().map(|&b| u64::from(b)).sum();
        octal(&mut block[148..155], sum);
        block
    }
}

fn whole_seconds(time: Timestamp) -> i64 {
    time.seconds
}

fn octal(field: &mut [u8], mut number: u64) {
    let Some((end, digits)) = field.split_last_mut() else { return };
    *end = 0;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number & 7) as u8;
        number >>= 3;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::Owner;

    fn header(path: &[u8], member: Member<'_>, meta: Meta, xattrs: &Xattrs) -> Vec<u8> {
        let mut out = Vec::new();
        append(&mut out, path, member, &meta, xattrs);
        assert_eq!(out.len() % BLOCK_LEN, 0);
        out
    }

    fn plain(path: &[u8], member: Member<'_>) -> Vec<u8> {
        header(path, member, Meta { mode: 0o644, ..Meta::default() }, &Xattrs::new())
    }

    #[test]
    fn a_member_that_fits_ustar_needs_one_block() {
        let block = plain(b"usr/bin/sh", Member::File { len: 8_589_934_591 });
        assert_eq!(block.len(), BLOCK_LEN);
        assert_eq!(&block[..11], b"usr/bin/sh\0");
        assert_eq!(&block[100..108], b"0000644\0");
        assert_eq!(&block[124..136], b"77777777777\0");
        assert_eq!(&block[257..265], b"ustar\x0000");
        let sum: u64 = block
            .iter()
            .enumerate()
            .map(|(at, &b)| u64::from(if (148..156).contains(&at) { b' ' } else { b }))
            .sum();
        assert_eq!(&block[148..156], format!("{sum:06o}\0 ").as_bytes());
    }

    #[test]
    fn long_paths_are_split_at_a_slash_and_only_then_recorded() {
        let fits = [&[b'a'; 155][..], b"/", &[b'b'; 100]].concat();
        let block = plain(&fits, Member::File { len: 0 });
        assert_eq!(block.len(), BLOCK_LEN);
        assert_eq!((&block[..100], &block[345..500]), (&[b'b'; 100][..], &[b'a'; 155][..]));
        let too_long = [&[b'a'; 155][..], b"/", &[b'b'; 101]].concat();
        let blocks = plain(&too_long, Member::File { len: 0 });
        assert_eq!((blocks.len(), blocks[156]), (3 * BLOCK_LEN, b'x'));
        assert!(blocks[BLOCK_LEN..].starts_with(b"267 path=aaa"));
    }

    #[test]
    fn a_long_directory_keeps_its_closing_slash() {
        let path = [&[b'a'; 100][..], b"/"].concat();
        let blocks = plain(&path, Member::Directory);
        assert!(blocks[BLOCK_LEN..].starts_with(b"111 path=aaa"), "no empty name is made by splitting");
        let path = [&[b'a'; 50][..], b"/", &[b'b'; 98], b"/"].concat();
        let block = plain(&path, Member::Directory);
        assert_eq!((block.len(), block[98]), (BLOCK_LEN, b'/'));
    }

    #[test]
    fn record_lengths_count_their_own_digits() {
        for value_len in [0, 1, 88, 89, 90, 91, 92, 985, 986, 987, 988, 989, 990, 70_000] {
            let mut out = Vec::new();
            record(&mut out, b"k", &vec![b'v'; value_len]);
            let text: Vec<u8> = out.iter().take_while(|b| **b != b' ').copied().collect();
            assert_eq!(String::from_utf8(text).unwrap(), out.len().to_string());
        }
    }

    #[test]
    fn numbers_beyond_ustar_become_records() {
        let meta = Meta {
            mode: 0o4755,
            owner: Owner { uid: 4_294_967_294, gid: 2_097_152 },
            mtime: Timestamp { seconds: -2, nanos: 500_000_000 },
        };
        let blocks = header(b"f", Member::File { len: 8_589_934_592 }, meta, &Xattrs::new());
        let records = String::from_utf8_lossy(&blocks[BLOCK_LEN..2 * BLOCK_LEN]).into_owned();
        for expected in ["19 size=8589934592\n", "18 uid=4294967294\n", "15 gid=2097152\n", "14 mtime=-1.5\n"]
        {
            assert!(records.contains(expected), "{expected:?} in {records:?}");
        }
    }

    #[test]
    fn xattrs_keep_their_bytes_and_odd_names() {
        let xattrs = Xattrs::from([
            (b"user.a=b%".to_vec(), b"x\n\0y".to_vec()),
            (b"security.capability".to_vec(), Vec::new()),
        ]);
        let blocks = header(b"f", Member::Fifo, Meta::default(), &xattrs);
        let records = &blocks[BLOCK_LEN..2 * BLOCK_LEN];
        let expected = b"37 SCHILY.xattr.security.capability=\n35 SCHILY.xattr.user.a%3Db%25=x\n\0y\n";
        assert_eq!(&records[..expected.len()], expected);
    }

    #[test]
    fn sparse_maps_end_with_an_empty_run_after_a_last_hole() {
        assert!(sparse_map(100, &[]).starts_with(b"1\n100\n0\n\0"));
        assert!(sparse_map(100, &[0..10, 90..100]).starts_with(b"2\n0\n10\n90\n10\n\0"));
        let run = 5..10;
        assert!(sparse_map(100, std::slice::from_ref(&run)).starts_with(b"2\n5\n5\n100\n0\n\0"));
    }
}
