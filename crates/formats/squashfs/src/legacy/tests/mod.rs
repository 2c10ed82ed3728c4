//! A small image made by hand in every version and byte order, and what the reader says of it and
//! of its damaged copies.
//!
//! The image is made field by field as the C structs of each version have them, so that reader and
//! writer cannot share a misunderstanding here. Its metadata are stored uncompressed; images of the
//! tools of the time are read elsewhere.

mod notices;
mod reads;
mod refuses;

use crate::Endian;
use crate::legacy::bits::Record;
use crate::legacy::disk::*;
use crate::legacy::volume::LegacyVolume;
use crate::tests::Metadata;
use packfs_format::{DirCursor, Directories, InodeId, InodeKind, Volume};
use packfs_testkit::{LabelledImage, read_all};
use std::ops::ControlFlow;

/// An image under construction.
type Made = LabelledImage<LegacyVolume>;

/// Adds a block of metadata and returns its offset.
fn put_block(made: &mut Made, label: &str, form: Form, metadata: Metadata) -> u64 {
    let mut header = Vec::new();
    Record::new(&mut header, form.endian).put(16, metadata.bytes.len() as u64 | 0x8000);
    if form.marked {
        header.push(0xff);
    }
    metadata.put_into(made, label, &header)
}

/// Adds a table of one block and its list; returns the offset of the list.
fn put_table(made: &mut Made, labels: [&str; 2], form: Form, rows: Metadata) -> u64 {
    let at = put_block(made, labels[0], form, rows);
    made.put(labels[1], &form.record(&[(form.version.position_len() as u32 * 8, at)]))
}

/// Form of an image.
#[derive(Clone, Copy, Debug)]
struct Form {
    version: Version,
    endian: Endian,
    /// With the flag `check`.
    marked: bool,
}

const LITTLE_3_1: Form = Form { version: Version::V3_1, endian: Endian::Little, marked: false };
const LITTLE_1_0: Form = Form { version: Version::V1_0, endian: Endian::Little, marked: false };
const LITTLE_2_1: Form = Form { version: Version::V2_1, endian: Endian::Little, marked: false };

fn forms() -> impl Iterator<Item = Form> {
    Version::ALL.into_iter().flat_map(|version| {
        [Endian::Little, Endian::Big]
            .into_iter()
            .flat_map(move |endian| [false, true].map(|marked| Form { version, endian, marked }))
    })
}

impl Form {
    /// Returns the bytes of fields, each a width in bits and a value.
    fn record(self, fields: &[(u32, u64)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut record = Record::new(&mut bytes, self.endian);
        for &(width, value) in fields {
            record.put(width, value);
        }
        bytes
    }
}

const BLOCK_LEN: u64 = 4096;
const MTIME: u64 = 1_600_000_000;
const MADE_AT: u64 = 1_700_000_000;
const USER: u64 = 1;
const NONE: u64 = 0xffff_ffff;

/// The first fields of an inode of user 1,000 and group 100.
fn base(form: Form, inode_type: u64, number: u64) -> Vec<(u32, u64)> {
    let mode = 0o644;
    match form.version.major() {
        1 => vec![(4, inode_type), (12, mode), (4, USER), (4, 0)],
        2 => vec![(4, inode_type), (12, mode), (8, USER), (8, 0)],
        _ => vec![(4, inode_type), (12, mode), (8, USER), (8, 0), (32, MTIME), (32, number)],
    }
}

/// The sound image:
///
/// ```text
/// /      inode 7, two runs of entries; extended if the version can, with an index entry for each
/// /a     inode 1, 5,000 bytes: a stored block, and a tail in fragment 0 (1.0: a short block)
/// /b     inode 2, 8,292 bytes: a block (3.1: a hole), a stored block, a short one; 3.x: extended
/// /c     inode 3, a character device
/// /l     inode 4, a symlink to "a"
/// /p     inode 5, a fifo
/// /sub   inode 6, empty
/// ```
fn made(form: Form) -> Made {
    let Form { version, endian, .. } = form;
    let major = version.major();
    let mut made = LabelledImage::new(LegacyVolume::open);
    made.put("super", &vec![0; version.super_block_len()]);
    let data_a = made.put("data", &[b'd'; 4096]);
    if major == 1 {
        made.put("tail", &[b't'; 904]);
    }
    let data_b = made.put("data b", &vec![b'e'; if version == Version::V3_1 { 4196 } else { 8292 }]);
    let tails = if major == 1 { 0 } else { made.put("tails", &[b't'; 2000]) };

    let mut inodes = Inodes { form, metadata: Metadata::default(), offsets: Vec::new() };
    inodes.add_files(data_a, data_b);
    inodes.add_others();
    let mut listing = Metadata::default();
    let second_run = add_listing(&mut listing, form, &inodes.offsets);
    let root = inodes.add_root(listing.bytes.len() as u64, second_run);
    let Inodes { metadata, offsets, .. } = inodes;
    let inode_table = put_block(&mut made, "inode table", form, metadata);
    let directory_table = put_block(&mut made, "directory table", form, listing);
    let mut fragment_table = 0;
    if major > 1 {
        let mut rows = Metadata::default();
        let word = (32, 2000 | 0x100_0000);
        let row = if major == 3 { vec![(64, tails), word, (32, 0)] } else { vec![(32, tails), word] };
        rows.put("fragment", &form.record(&row));
        fragment_table = put_table(&mut made, ["fragment block", "fragment list"], form, rows);
    }
    let mut lookup_table = u64::MAX;
    if major == 3 {
        let mut rows = Metadata::default();
        let references: Vec<_> = offsets.iter().chain([&root]).map(|&at| (64, at)).collect();
        rows.put("export rows", &form.record(&references));
        lookup_table = put_table(&mut made, ["export block", "export list"], form, rows);
    }
    let uids = made.put("uids", &form.record(&[(32, 0), (32, 1000)]));
    let gids = made.put("gids", &form.record(&[(32, 100)]));
    let used = made.end();

    let flags = u64::from(form.marked) << 2 | u64::from(major == 3) << 7;
    let magic = endian.u32(if endian == Endian::Little { *b"hsqs" } else { *b"sqsh" });
    let short = |value: u64| (32, if major == 3 { 0 } else { value });
    let mut fields = vec![(32, u64::from(magic)), (32, 7), short(used), short(uids), short(gids)];
    fields.extend([short(inode_table), short(directory_table)]);
    fields.extend([(16, u64::from(major)), (16, u64::from(version.minor())), (16, BLOCK_LEN), (16, 12)]);
    fields.extend([(8, flags), (8, 2), (8, 1), (32, MADE_AT), (64, root)]);
    if major > 1 {
        fields.extend([(32, BLOCK_LEN), (32, 1), short(fragment_table)]);
    }
    if major == 3 {
        let starts = [used, uids, gids, inode_table, directory_table, fragment_table, lookup_table];
        fields.extend(starts.map(|start| (64, start)));
    }
    let padding = vec![0; made.bytes.len().next_multiple_of(4096) - made.bytes.len()];
    made.put("padding", &padding);
    made.patch("super", 0, &form.record(&fields))
}

/// Inodes of [`made`] and their offsets in their block.
struct Inodes {
    form: Form,
    metadata: Metadata,
    offsets: Vec<u64>,
}

impl Inodes {
    fn put(&mut self, label: &'static str, fields: &[(u32, u64)]) -> u64 {
        self.metadata.put(label, &self.form.record(fields)) as u64
    }

    fn add(&mut self, labels: [&'static str; 2], base: &[(u32, u64)], body: &[(u32, u64)]) {
        let at = self.put(labels[0], base);
        self.offsets.push(at);
        self.put(labels[1], body);
    }

    fn add_files(&mut self, data_a: u64, data_b: u64) {
        let (form, version) = (self.form, self.form.version);
        let major = version.major();
        let raw = |len: u64| if major == 1 { (16, len | 0x8000) } else { (32, len | 0x100_0000) };
        let a: &[(u32, u64)] = match major {
            1 => &[(32, MTIME), (32, data_a), (32, 5000)],
            2 => &[(32, MTIME), (32, data_a), (32, 0), (32, 10), (32, 5000)],
            _ => &[(64, data_a), (32, 0), (32, 10), (32, 5000)],
        };
        self.add(["a", "a body"], &base(form, 2, 1), a);
        self.put("a words", &if major == 1 { vec![raw(4096), raw(904)] } else { vec![raw(4096)] });
        let b: &[(u32, u64)] = match major {
            1 => &[(32, MTIME), (32, data_b), (32, 8292)],
            2 => &[(32, MTIME), (32, data_b), (32, NONE), (32, 0), (32, 8292)],
            _ => &[(32, 1), (64, data_b), (32, NONE), (32, 0), (64, 8292)],
        };
        self.add(["b", "b body"], &base(form, if major == 3 { 9 } else { 2 }, 2), b);
        let first = if version == Version::V3_1 { (32, 0) } else { raw(4096) };
        self.put("b words", &[first, raw(4096), raw(100)]);
    }

    fn add_others(&mut self) {
        let form = self.form;
        let major = form.version.major();
        let links = |count: u64| if major == 3 { vec![(32, count)] } else { vec![] };
        self.add(["c", "c body"], &base(form, 5, 3), &[links(1), vec![(16, 0x103)]].concat());
        self.add(["l", "l body"], &base(form, 3, 4), &[links(1), vec![(16, 1)]].concat());
        self.metadata.put("l target", b"a");
        if major == 1 {
            self.add(["p", "p body"], &base(form, 0, 5), &[(4, 6), (4, 0)]);
        } else {
            self.add(["p", "p body"], &base(form, 6, 5), &links(1));
        }
        let sub: &[(u32, u64)] = match major {
            1 | 2 => &[(19, 0), (13, 0), (32, MTIME), (24, 0)],
            _ => &[(32, 2), (19, 3), (13, 0), (32, 0), (32, 7)],
        };
        // The one inode of user 0.
        let mut sub_base = base(form, 1, 6);
        sub_base[2].1 = 0;
        self.add(["sub", "sub body"], &sub_base, sub);
    }

    /// Adds the root with an index entry for each run of its listing, if the version has them;
    /// returns its offset.
    fn add_root(&mut self, len: u64, second_run: u64) -> u64 {
        let (form, version) = (self.form, self.form.version);
        let (inode_type, body): (_, &[(u32, u64)]) = match version {
            Version::V1_0 | Version::V2_0 => (1, &[(19, len), (13, 0), (32, MTIME), (24, 0)]),
            Version::V2_1 => (8, &[(27, len), (13, 0), (32, MTIME), (24, 0), (16, 2)]),
            Version::V3_0 | Version::V3_1 => {
                (8, &[(32, 3), (27, len + 3), (13, 0), (32, 0), (16, 2), (32, 8)])
            }
        };
        let root = self.put("root", &base(form, inode_type, 7));
        self.put("root body", body);
        if version.is_sorted() {
            let widths = if version.major() == 3 { [32, 32] } else { [27, 29] };
            // The first run needs no index entry, but some tools write one.
            for (labels, at, name) in
                [(["first index", "first index name"], 0, b"a"), (["index", "index name"], second_run, b"c")]
            {
                self.put(labels[0], &[(widths[0], at), (widths[1], 0), (8, 0)]);
                self.metadata.put(labels[1], name);
            }
        }
        root
    }
}

/// Adds the two runs of the root's entries; returns the offset of the second.
fn add_listing(listing: &mut Metadata, form: Form, offsets: &[u64]) -> u64 {
    let major = form.version.major();
    let mut run = |labels: [&'static str; 2], entries: &[(&'static str, u64, usize)]| {
        let count = entries.len() as u64 - 1;
        let header = match major {
            3 => vec![(8, count), (32, 0), (32, 1)],
            _ => vec![(8, count), (24, 0)],
        };
        let at = listing.put(labels[0], &form.record(&header));
        for &(name, entry_type, number) in entries {
            let mut entry = vec![(13, offsets[number - 1]), (3, entry_type), (8, name.len() as u64 - 1)];
            if major == 3 {
                entry.push((16, number as u64 - 1));
            }
            listing.put(if name == "a" { labels[1] } else { "other entry" }, &form.record(&entry));
            listing.put(if name == "a" { "a name" } else { "other name" }, name.as_bytes());
        }
        at as u64
    };
    run(["run", "entry"], &[("a", 2, 1), ("b", 2, 2)]);
    run(["second run", ""], &[("c", 5, 3), ("l", 3, 4), ("p", 6, 5), ("sub", 1, 6)])
}

/// The inode of a name in the root directory.
fn find(volume: &LegacyVolume, name: &str) -> InodeId {
    volume.lookup(volume.root(), name.as_bytes()).unwrap().unwrap()
}
