//! Refusals of the reader: a sound image with one bad figure each, and any figures.

use crate::bytes::put;
use crate::volume::ExtVolume;
use packfs_core::{Error, ErrorKind, Image, MemoryImage, Result};
use packfs_format::{Check, DirCursor, Directories, Health, InodeId, InodeKind, Opening, Space, Volume};
use packfs_testkit::{Random, assert_refused};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// With checksums, extents and attributes in inodes.
fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

const EXT4: &[u8] = include_bytes!("../../../../testdata/legacy/ext4.ext4");
/// With inline data.
const INLINE: &[u8] = include_bytes!("../../../../testdata/legacy/ext4-inline.ext4");
/// Revision 0, with block maps and without checksums.
const EXT2: &[u8] = include_bytes!("../../../../testdata/legacy/ext2.ext2");

fn open(bytes: &[u8]) -> Result<ExtVolume> {
    crate::open::open(Arc::new(MemoryImage::new("ext4", bytes.to_vec())), &Opening::default())
}

/// Reads all names, targets, attributes and extents; returns the first error.
fn read_all(bytes: &[u8]) -> Result<()> {
    let volume = open(bytes)?;
    let mut errors: Vec<Error> = Vec::new();
    let mut met = HashSet::from([volume.root()]);
    let mut left = vec![volume.root()];
    while let Some(id) = left.pop() {
        let mut keep = |result: Result<()>| errors.extend(result.err());
        match volume.inode(id) {
            Ok(inode) => match inode.kind {
                InodeKind::Directory => keep(volume.read_dir(id, DirCursor(0), &mut |entry, _| {
                    if met.insert(entry.id) {
                        left.push(entry.id);
                    }
                    ControlFlow::Continue(())
                })),
                InodeKind::Symlink => keep(volume.read_link(id).map(drop)),
                InodeKind::File { len } => {
                    let mut at = 0;
                    keep(volume.extents(id, 0..len, &mut |extent| {
                        assert_eq!(extent.offset, at, "extents follow each other");
                        at += extent.len;
                        ControlFlow::Continue(())
                    }));
                }
                _ => {}
            },
            Err(error) => errors.push(error),
        }
        errors.extend(volume.xattrs(id).err());
    }
    errors.into_iter().next().map_or(Ok(()), Err)
}

/// Returns the number of a file in the root directory.
fn number(image: &[u8], name: &str) -> u32 {
    let volume = open(image).unwrap();
    let id = volume.lookup(volume.root(), name.as_bytes()).unwrap();
    u32::try_from(id.unwrap_or_else(|| panic!("{name} is missing")).0).unwrap()
}

/// The image with a change of an inode, whose checksum is right again.
fn with_inode(image: &[u8], name: &str, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let volume = open(image).unwrap();
    let inode = if name == "/" { 2 } else { number(image, name) };
    let offset = volume.reader.stored_inode(u64::from(inode)).unwrap().offset as usize;
    let len = volume.reader.super_block.inode_len;
    let mut bytes = image.to_vec();
    let raw = &mut bytes[offset..offset + len];
    change(raw);
    let (sum, is_wide) = volume.reader.sums.inode(inode, raw);
    if volume.reader.sums.all {
        put(raw, 0x7c, &sum.to_le_bytes()[..2]);
        if is_wide {
            put(raw, 0x82, &sum.to_le_bytes()[2..]);
        }
    }
    bytes
}

/// The image with other bytes in its superblock, whose checksum is right again.
fn with_super(image: &[u8], at: usize, new: &[u8]) -> Vec<u8> {
    let mut bytes = image.to_vec();
    put(&mut bytes, 1024 + at, new);
    let sum = packfs_format::crc32c(!0, &bytes[1024..1024 + 0x3fc]);
    put(&mut bytes, 1024 + 0x3fc, &sum.to_le_bytes());
    bytes
}

/// The image with another byte at an offset.
fn with_flip(image: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = image.to_vec();
    bytes[at] ^= 0x10;
    bytes
}

/// Returns the offset of the first block of a file.
fn block_of(image: &[u8], name: &str) -> usize {
    let volume = open(image).unwrap();
    let inode = if name == "/" { 2 } else { number(image, name) };
    let raw = volume.reader.stored_inode(u64::from(inode)).unwrap();
    let mut found = None;
    volume
        .reader
        .runs(&raw, 0..1, &mut |run| {
            found = Some(run.block);
            ControlFlow::Break(())
        })
        .unwrap();
    (found.unwrap() * volume.reader.super_block.block_len) as usize
}

/// Returns the offset of the block of attributes of a file.
fn xattrs_of(image: &[u8], name: &str) -> usize {
    let volume = open(image).unwrap();
    let raw = volume.reader.stored_inode(u64::from(number(image, name))).unwrap();
    (raw.xattr_block(&volume.reader.super_block) * volume.reader.super_block.block_len) as usize
}

/// One test each: name, the damaged image, text of the error.
macro_rules! refuses {
    ($($name:ident: $bytes:expr => $expected:literal;)*) => {$(
        #[test]
        fn $name() {
            assert_refused(read_all(&$bytes), ErrorKind::Corrupt, $expected);
        }
    )*};
}

refuses! {
    rejects_an_image_without_a_superblock: EXT4[..2000] => "2000 bytes, at least 2048 needed";
    rejects_another_magic: with_super(EXT4, 0x38, &[0, 0]) => "magic number 0x0, 0xef53 wanted";
    rejects_large_blocks: with_super(EXT4, 0x18, &[7]) => "logarithm of the block size 7, 0 to 6 allowed";
    rejects_another_revision: with_super(EXT4, 0x4c, &[2]) => "revision 2, 0 and 1 allowed";
    rejects_inodes_of_no_size: with_super(EXT4, 0x58, &[0, 0]) => "inode size 0, powers of 2";
    rejects_groups_without_inodes: with_super(EXT4, 0x28, &[0; 4]) => "inodes per group 0, 1 to 8";
    rejects_groups_without_blocks: with_super(EXT4, 0x20, &[0; 4]) => "blocks per group 0, those of the clusters";
    rejects_an_odd_descriptor: with_super(EXT4, 0xfe, &[65]) => "descriptor size 65, powers of 2";
    rejects_a_filesystem_without_blocks: with_super(EXT4, 0x04, &[1, 0, 0, 0]) => "1 blocks, at least 3 needed";
    rejects_another_number_of_inodes: with_super(EXT4, 0, &[0xff]) => "number of inodes 255, those of all groups allowed";
    rejects_tables_of_more_blocks_than_there_are: with_super(EXT4, 0x04, &[8, 0]) => "bitmaps of 14 blocks, at most 8 allowed";
    rejects_a_table_beyond_the_filesystem: with_word(EXT2, 2048 + 8, 5000) => "descriptor of group 0: inode table at block 5000";
    rejects_a_wrong_sum_of_an_inode: {
        let at = open(EXT4).unwrap().reader.stored_inode(u64::from(number(EXT4, "hello"))).unwrap().offset;
        with_flip(EXT4, at as usize)
    } => ": checksum 0x";
    rejects_an_inode_without_names: with_inode(EXT4, "hello", |raw| put(raw, 0x1a, &[0; 2])) => "not in use, though an entry leads to it";
    rejects_a_mode_of_no_type: with_inode(EXT4, "hello", |raw| put(raw, 1, &[0])) => "which names no type";
    rejects_extra_fields_beyond_an_inode: with_inode(EXT4, "hello", |raw| put(raw, 0x80, &[0x84])) => "extra length 132, multiples of 4 up to 128 allowed";
    rejects_inline_data_with_extents: with_inode(EXT4, "hello", |raw| put(raw, 0x23, &[0x10])) => "inline data and extents at once";
    rejects_a_file_of_too_many_bytes: with_inode(EXT4, "hello", |raw| put(raw, 0x6c, &[0xff; 4])) => "at most 4398046511104 allowed";
    rejects_a_directory_of_half_a_block: with_inode(EXT4, "sub", |raw| put(raw, 4, &[7])) => "whole blocks allowed";
    rejects_a_holder_of_attributes: with_inode(EXT4, "hello", |raw| put(raw, 0x22, &[0x28])) => "contains an extended attribute, not a file";
    rejects_a_root_that_is_no_directory: with_inode(EXT4, "/", |raw| put(raw, 1, &[0x81])) => "inode 2: not a directory";
    rejects_a_block_beyond_the_filesystem: with_inode(EXT2, "data", |raw| put(raw, 0x28, &[0, 0, 1, 0])) => ": block 65536, 2 to 127 allowed";
    rejects_an_extent_without_blocks: with_inode(EXT4, "data", |raw| put(raw, 0x38, &[0; 2])) => "an extent without blocks";
    rejects_a_node_without_its_magic: with_inode(EXT4, "data", |raw| put(raw, 0x28, &[0; 2])) => "a node without its magic number";
    rejects_a_deep_tree: with_inode(EXT4, "data", |raw| put(raw, 0x2e, &[9])) => "a node of another depth";
    rejects_a_node_of_too_many_rows: with_inode(EXT4, "data", |raw| put(raw, 0x2a, &[5])) => "another number of rows";
    rejects_a_wrong_sum_of_a_node: {
        let volume = open(EXT4).unwrap();
        let raw = volume.reader.stored_inode(u64::from(number(EXT4, "pieces"))).unwrap();
        with_flip(EXT4, le32(raw.block_field(), 16) as usize * 1024 + 40)
    } => "extent tree, block ";
    rejects_a_wrong_sum_of_a_directory: with_flip(EXT4, block_of(EXT4, "sub") + 5) => "directory block ";
    rejects_a_directory_without_a_sum: with_flip(EXT4, block_of(EXT4, "sub") + 1024 - 8) => ": no checksum";
    rejects_an_entry_beyond_its_block: with_word(EXT2, block_of(EXT2, "sub") + 4, 0x0001_0ffc) => "its length is invalid, or exceeds its block";
    rejects_a_wrong_sum_of_attributes: with_flip(EXT4, xattrs_of(EXT4, "data") + 20) => "extended attributes, block ";
    rejects_attributes_without_their_magic: with_flip(EXT2, xattrs_of(EXT2, "data")) => "a block without their magic number";
    rejects_a_value_over_the_entries: with_byte(EXT2, xattrs_of(EXT2, "data") + 32 + 2, 40, 0) => "a value that is not after the entries";
    rejects_inline_data_longer_than_its_space: with_inode(INLINE, "hundred", |raw| put(raw, 5, &[0x20])) => "bytes of inline data, ";
    rejects_an_empty_target: with_inode(EXT4, "short", |raw| put(raw, 4, &[0])) => "link target of 0 bytes, 1 to 4095 allowed";
    rejects_a_target_with_a_nul_byte: with_inode(EXT4, "short", |raw| put(raw, 0x29, &[0])) => "link target with a NUL byte";
}

fn with_word(image: &[u8], at: usize, word: u32) -> Vec<u8> {
    let mut bytes = image.to_vec();
    put(&mut bytes, at, &word.to_le_bytes());
    bytes
}

fn with_byte(image: &[u8], at: usize, low: u8, high: u8) -> Vec<u8> {
    let mut bytes = image.to_vec();
    put(&mut bytes, at, &[low, high]);
    bytes
}

#[test]
fn genuine_images_are_read_and_sound() {
    for image in [EXT4, INLINE, EXT2] {
        read_all(image).unwrap();
        let volume = open(image).unwrap();
        assert!(volume.fault().is_none());
        let mut findings = Vec::new();
        volume.check(&mut |finding| findings.push(finding)).unwrap();
        assert_eq!(findings, []);
    }
}

#[test]
fn an_entry_that_leads_to_the_journal_is_refused() {
    let volume = open(EXT4).unwrap();
    assert_refused(volume.inode(InodeId(8)), ErrorKind::Corrupt, "inode 8: not in use");
    assert_refused(
        volume.inode(InodeId(7000)),
        ErrorKind::Corrupt,
        "inode 7000: numbers from 1 to 48 allowed",
    );
}

#[test]
fn a_wrong_sum_of_the_superblock_is_a_fault_of_the_image() {
    let mut bytes = EXT4.to_vec();
    bytes[1024 + 0x78] ^= 1;
    let fault = open(&bytes).unwrap().fault().unwrap();
    assert_eq!(fault.kind(), ErrorKind::Corrupt);
    assert!(fault.hints()[0].contains("--ignore-checksum"), "{fault}");
}

#[test]
fn damage_in_a_directory_spares_its_other_blocks() {
    let (image, dir) = (EXT4, number(EXT4, "many"));
    let damaged = with_flip(image, block_of(image, "many") + 40);
    let volume = open(&damaged).unwrap();
    let mut count = 0;
    let listed = volume.read_dir(InodeId(u64::from(dir)), DirCursor(0), &mut |_, _| {
        count += 1;
        ControlFlow::Continue(())
    });
    assert_refused(listed, ErrorKind::Corrupt, "directory block ");
    assert!(count > 10, "{count}");
    let id = InodeId(u64::from(dir));
    assert!(volume.lookup(id, b"a-rather-long-name-to-fill-blocks-60").unwrap().is_some());
    assert_refused(volume.lookup(id, b"missing"), ErrorKind::Corrupt, "directory block ");
}

#[test]
fn checks_count_links_blocks_and_bitmaps() {
    let finds = |bytes: Vec<u8>, wanted: &str| {
        let mut findings = Vec::new();
        open(&bytes).unwrap().check(&mut |finding| findings.push(format!("{finding:?}"))).unwrap();
        assert!(findings.iter().any(|finding| finding.contains(wanted)), "{wanted}: {findings:?}");
    };
    finds(with_inode(EXT4, "hello", |raw| put(raw, 0x1a, &[9])), "link count 9, but it has 3 names");
    finds(with_inode(EXT4, "sub", |raw| put(raw, 0x1a, &[9])), "link count 9, but it has 3 names");
    finds(
        with_inode(EXT2, "data", |raw| put(raw, 0x1c, &[99, 0])),
        "99 sectors of 512 bytes, but its blocks are ",
    );
    finds(with_super(EXT4, 0x10, &[47]), "47 free inodes, ");
    finds(with_super(EXT4, 0x0c, &[3, 0]), "3 free blocks, ");
    let shared = xattrs_of(EXT2, "data") + 4;
    finds(with_byte(EXT2, shared, 7, 0), "wrong numbers of inodes that share attributes: block ");
    let first = (block_of(EXT2, "hundred") / 1024) as u8;
    finds(with_inode(EXT2, "data", |raw| put(raw, 0x28, &[first])), "blocks that belong to something else");
    let bitmap = le32(EXT2, 2048) as usize * 1024;
    finds(with_flip(EXT2, bitmap), "blocks in use that are marked free");
    let inodes = le32(EXT2, 2048 + 4) as usize * 1024;
    finds(with_flip(EXT2, inodes), "bitmaps that are not true of inodes");
    finds(with_word(EXT2, block_of(EXT2, "sub") + 12, 11), ".. leads to inode 11");
    assert_eq!(le16(EXT2, block_of(EXT2, "sub") + 4), 12);
}

#[test]
fn checksums_of_another_type_are_unsupported() {
    let error = open(&with_super(EXT4, 0x175, &[2])).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("checksums of type 2"), "{error}");
}

fn names(image: &[u8]) -> Vec<Vec<u8>> {
    let (volume, mut found) = (open(image).unwrap(), Vec::new());
    let visit = &mut |entry: packfs_format::DirEntry, _| {
        found.push(entry.name);
        ControlFlow::Continue(())
    };
    volume.read_dir(volume.root(), DirCursor(0), visit).unwrap();
    found
}

#[test]
fn the_byte_of_a_type_is_ignored_without_types() {
    // The entry after `.` and `..`.
    let at = block_of(EXT2, "/") + 24;
    let rest = &EXT2[at + 6..at + 8];
    assert!(rest[0] > 0 && rest[1] == 0, "{rest:?}");
    assert_eq!(names(&with_byte(EXT2, at + 6, rest[0], 1)), names(EXT2));
}

#[test]
fn attributes_without_64_bits_have_blocks_of_32() {
    // The high half, which is something else in filesystems of the Hurd.
    let image = with_inode(EXT2, "data", |raw| put(raw, 0x76, &[9, 0]));
    let id = InodeId(u64::from(number(EXT2, "data")));
    let wanted = open(EXT2).unwrap().xattrs(id).unwrap();
    assert!(!wanted.is_empty());
    assert_eq!(open(&image).unwrap().xattrs(id).unwrap(), wanted);
}

fn findings(image: &[u8]) -> Vec<String> {
    let mut findings = Vec::new();
    open(image).unwrap().check(&mut |finding| findings.push(format!("{finding:?}"))).unwrap();
    findings
}

/// Linux does so where it mounts read-only.
#[test]
fn a_descriptor_with_a_wrong_sum_is_used_with_a_warning() {
    let image = with_flip(EXT4, 2048 + 12);
    read_all(&image).unwrap();
    let warnings = open(&image).unwrap().warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("descriptor of group 0: checksum"), "{warnings:?}");
    let findings = findings(&image);
    assert!(findings[0].contains("descriptor of group 0: checksum"), "{findings:?}");
}

#[test]
fn more_unused_inodes_than_a_group_has_are_a_finding_and_hide_none() {
    let image = with_word(EXT4, 2048 + 0x1c, 0xffff_ffff);
    let owned = |image: &[u8]| format!("{:?}", open(image).unwrap().space().unwrap());
    assert_eq!(owned(&image), owned(EXT4));
    let findings = findings(&image);
    assert!(findings.iter().any(|found| found.contains("unused inodes, up to")), "{findings:?}");
}

#[test]
fn a_directory_over_itself_is_listed_once_at_most() {
    let first = (block_of(EXT2, "sub") / 1024) as u8;
    let image = with_inode(EXT2, "sub", |raw| {
        (0..12).for_each(|index| put(raw, 0x28 + 4 * index, &[first]));
        put(raw, 4, &[0, 0x30]);
    });
    let found = findings(&image);
    assert!(found.iter().any(|finding| finding.contains("11 blocks that belong to something else")));
    assert!(!found.iter().any(|finding| finding.contains("of one name")), "{found:?}");
    let owned: u64 = open(&image).unwrap().space().unwrap().iter().map(|owner| owner.len).sum();
    assert_eq!(owned, image.len() as u64);
}

#[test]
fn each_damaged_block_of_a_directory_is_a_finding() {
    let text = b"a-rather-long-name-to-fill-blocks-";
    let places = EXT4.windows(text.len()).enumerate().filter(|(_, bytes)| bytes == text);
    let mut places: Vec<usize> = places.map(|(at, _)| at).collect();
    places.dedup_by_key(|at| *at / 1024);
    assert!(places.len() > 1);
    let image = places.iter().fold(EXT4.to_vec(), |image, at| with_flip(&image, *at));
    let found = findings(&image);
    let damaged = found.iter().filter(|finding| finding.contains("directory block")).count();
    assert_eq!(damaged, places.len(), "{found:?}");
}

/// An image that counts the bytes read.
struct Counted(MemoryImage, AtomicU64);

impl Image for Counted {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.1.fetch_add(buf.len() as u64, Ordering::Relaxed);
        self.0.read_at(offset, buf)
    }

    fn name(&self) -> String {
        self.0.name()
    }
}

#[test]
fn scattered_inodes_are_read_without_many_neighbors() {
    // EXT4 with a table of 12 KiB.
    let read = |numbers: &[u64]| {
        let image = Arc::new(Counted(MemoryImage::new("ext4", EXT4.to_vec()), AtomicU64::new(0)));
        let super_block = crate::super_block::SuperBlock::read(&*image).unwrap();
        let reader = crate::reader::Reader::new(image.clone(), super_block);
        reader.group(0).unwrap();
        let before = image.1.load(Ordering::Relaxed);
        for number in numbers {
            let raw = reader.stored_inode(*number).unwrap();
            let at = raw.offset as usize;
            assert_eq!(raw.bytes(), &EXT4[at..at + reader.super_block.inode_len]);
        }
        image.1.load(Ordering::Relaxed) - before
    };
    assert_eq!([read(&[2]), read(&[2, 40]), read(&[40, 2, 3, 41])], [4096, 8192, 8192]);
    // In order: the first part, then all of it.
    assert_eq!(read(&(1..=48).collect::<Vec<_>>()), 4096 + 12 * 1024);
}

#[test]
fn any_figures_are_read_or_refused() {
    let mut random = Random::new(30);
    let count =
        std::env::var("PACKFS_EXT_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(300);
    for round in 0..count {
        let base = [EXT4, INLINE, EXT2][round % 3];
        let mut bytes = base.to_vec();
        for _ in 0..1 + random.below(6) {
            // Half of the changes are near the front, where the tables are.
            let end = if random.below(2) == 0 { 40 << 10 } else { bytes.len() as u64 };
            let at = random.below(end) as usize;
            bytes[at] = random.below(256) as u8;
        }
        repair(&mut bytes, base);
        let _ = read_all(&bytes);
        if let Ok(volume) = open(&bytes) {
            let _ = volume.check(&mut |_| {});
            let owned: u64 = volume.space().unwrap().iter().map(|owner| owner.len).sum();
            assert_eq!(owned, bytes.len() as u64, "round {round}");
            volume.facts().unwrap();
        }
    }
}

/// Puts the sums of superblock, descriptors and inodes right, by the layout of the genuine image.
fn repair(bytes: &mut [u8], genuine: &[u8]) {
    let volume = open(genuine).unwrap();
    let (super_block, sums) = (&volume.reader.super_block, volume.reader.sums);
    if !sums.all {
        return;
    }
    for number in 1..=super_block.inode_count {
        let Ok(raw) = volume.reader.stored_inode(u64::from(number)) else { continue };
        let at = raw.offset as usize;
        let raw = &mut bytes[at..at + super_block.inode_len];
        let (sum, is_wide) = sums.inode(number, raw);
        put(raw, 0x7c, &sum.to_le_bytes()[..2]);
        if is_wide {
            put(raw, 0x82, &sum.to_le_bytes()[2..]);
        }
    }
    let sum = packfs_format::crc32c(!0, &bytes[1024..1024 + 0x3fc]);
    put(bytes, 1024 + 0x3fc, &sum.to_le_bytes());
}

/// Linux reads both: links of kernels of 2008, and directories in unwritten extents.
#[test]
fn flags_that_contradict_hide_neither_targets_nor_names() {
    let root = open(EXT4).unwrap();
    let links = |volume: &ExtVolume, dir: InodeId| {
        let mut found = Vec::new();
        volume
            .read_dir(dir, DirCursor(0), &mut |entry, _| {
                if entry.file_type == packfs_core::FileType::Symlink {
                    found.push((String::from_utf8(entry.name).unwrap(), entry.id));
                }
                ControlFlow::Continue(())
            })
            .unwrap();
        found
    };
    let is_short = |id: InodeId| root.read_link(id).unwrap().len() < 60;
    let (name, id) = links(&root, root.root()).into_iter().find(|(_, id)| is_short(*id)).unwrap();
    let flagged = with_inode(EXT4, &name, |raw| put(raw, 0x22, &[8]));
    let volume = open(&flagged).unwrap();
    assert_eq!(volume.read_link(id).unwrap(), root.read_link(id).unwrap());
    let mut findings = Vec::new();
    volume.check(&mut |finding| findings.push(finding.fault)).unwrap();
    assert!(findings.iter().any(|it| it.contains("which e2fsck clears")), "{findings:?}");
    // The root's only extent is unwritten.
    let unwritten = with_inode(EXT4, "/", |raw| {
        let len = le16(raw, 0x38);
        assert_eq!(le16(raw, 0x2a), 1, "extents of the root");
        put(raw, 0x38, &(len + 0x8000).to_le_bytes());
    });
    let volume = open(&unwritten).unwrap();
    assert_eq!(links(&volume, volume.root()), links(&root, root.root()));
}

/// The extent before the fault was lost with it.
#[test]
fn data_before_a_fault_in_a_map_is_handed_out() {
    let block = u32::try_from(block_of(EXT4, "hello") / 1024).unwrap();
    let image = with_inode(EXT4, "pieces", |raw| {
        put(raw, 0x04, &2048_u32.to_le_bytes());
        put(raw, 0x28, &[0x0a, 0xf3, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
        for (index, start) in [block, u32::MAX].into_iter().enumerate() {
            let row = [index as u32, 1, start].map(u32::to_le_bytes).concat();
            put(raw, 0x28 + 12 * (index + 1), &row);
        }
    });
    let volume = open(&image).unwrap();
    let mut found = Vec::new();
    let id = InodeId(number(&image, "pieces").into());
    let read = volume.extents(id, 0..2048, &mut |extent| {
        found.push((extent.offset, extent.len));
        ControlFlow::Continue(())
    });
    assert!(read.unwrap_err().to_string().contains("block 4294967295"));
    assert_eq!(found, [(0, 1024)]);
}
