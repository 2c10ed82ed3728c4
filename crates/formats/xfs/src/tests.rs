//! Refusals of the reader: a sound image with one bad figure each.

use crate::disk::{Agf, Checksum, Dinode};
use crate::inode::Fork;
use crate::log::{Intent, LogState, Remap};
use crate::mapping::Mapping;
use crate::open::open;
use crate::volume::XfsVolume;
use packfs_core::{ErrorKind, MemoryImage, Result};
use packfs_format::{
    Check, DirCursor, Directories, Health, InodeId, InodeKind, Opening, Severity, Space, Volume,
};
use packfs_testkit::assert_refused;
use std::ops::ControlFlow;
use std::sync::Arc;

const V5: &[u8] = include_bytes!("../../../../testdata/legacy/xfs-v5.xfs");
const V4: &[u8] = include_bytes!("../../../../testdata/legacy/xfs-v4.xfs");
/// Bytes of a sector, which a superblock fills.
const SECTOR: usize = 512;

fn opened(bytes: Vec<u8>) -> Result<XfsVolume> {
    open(Arc::new(MemoryImage::new("xfs", bytes)), Opening::default())
}

fn read_all(bytes: Vec<u8>) -> Result<usize> {
    packfs_testkit::read_all(&opened(bytes)?, 100)
}

/// The image with other bytes in its superblock, whose checksum is put right.
fn with(image: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut image = image.to_vec();
    image[at..at + bytes.len()].copy_from_slice(bytes);
    let sum = Checksum::of(&image[..SECTOR], 224).computed;
    image[224..228].copy_from_slice(&sum.to_le_bytes());
    image
}

/// The offset of the inode of a path.
fn inode_at(path: &[&str]) -> usize {
    let volume = opened(V5.to_vec()).unwrap();
    let mut id = volume.root();
    for name in path {
        id = volume.lookup(id, name.as_bytes()).unwrap().unwrap();
    }
    let (block, slot) = volume.super_block.inode_at(id.0).unwrap();
    let at = volume.super_block.blocks_at(block, 1).unwrap() + slot * volume.super_block.inode_len as u64;
    at as usize
}

/// The image with other bytes in an inode, whose checksum is put right.
fn with_inode(path: &[&str], at: usize, bytes: &[u8]) -> Vec<u8> {
    let (mut image, start) = (V5.to_vec(), inode_at(path));
    let inode = &mut image[start..start + 512];
    inode[at..at + bytes.len()].copy_from_slice(bytes);
    let sum = Checksum::of(inode, 100).computed;
    inode[100..104].copy_from_slice(&sum.to_le_bytes());
    image
}

/// One test each: name, the damaged image, text of the error.
macro_rules! refuses {
    ($($name:ident: $bytes:expr => $kind:ident $expected:literal;)*) => {$(
        #[test]
        fn $name() {
            assert_refused(read_all($bytes), ErrorKind::$kind, $expected);
        }
    )*};
}

const HELLO: &[&str] = &["data", "hello"];

refuses! {
    rejects_an_image_without_a_superblock: V5[..300].to_vec() => Corrupt "300 bytes, at least 304 needed";
    rejects_another_magic: with(V5, 0, b"XFSC") => Corrupt "other bytes than XFSB";
    rejects_an_unfinished_copy: with(V5, 126, &[1]) => Corrupt "marked as in progress";
    rejects_a_block_size_that_is_none: with(V5, 4, &[0, 0, 4, 1]) => Corrupt "block size 1025";
    rejects_more_blocks_than_groups: with(V5, 8, &[0, 0, 0, 1]) => Corrupt "superblock: blocks";
    rejects_a_root_outside: with(V5, 56, &[0, 1]) => Corrupt "outside of the filesystem";
    rejects_unknown_features: with(V5, 216, &[0x80]) => Unsupported "unknown incompatible features (0x80000000)";
    rejects_old_directories: with(V4, 100, &[0x14]) => Unsupported "version 4 without dirv2";
    rejects_other_versions: with(V4, 101, &[0xa3]) => Unsupported "version 3, 4 and 5 are read";
    rejects_an_inode_with_another_magic: with_inode(HELLO, 0, b"NI") => Corrupt "begins with 0x4e49";
    rejects_an_inode_of_another_version: with_inode(HELLO, 4, &[2]) => Corrupt "version 2, 3 allowed";
    rejects_an_inode_that_was_written_elsewhere: with_inode(HELLO, 152, &[1]) => Corrupt "claims to be inode";
    rejects_an_inode_of_another_filesystem: with_inode(HELLO, 160, &[1]) => Corrupt "another UUID";
    rejects_a_free_inode: with_inode(HELLO, 2, &[0, 0]) => Corrupt "not in use";
    rejects_a_mode_without_a_type: with_inode(HELLO, 2, &[0xf0, 0]) => Corrupt "has no type";
    rejects_a_file_in_its_inode: with_inode(HELLO, 5, &[1]) => Corrupt "format 1 of the data fork";
    rejects_a_negative_size: with_inode(HELLO, 56, &[0x80]) => Corrupt "inode";
    rejects_attributes_behind_the_inode: with_inode(HELLO, 82, &[60]) => Corrupt "attribute fork at 480";
    rejects_too_many_extents: with_inode(HELLO, 24, &[0, 0, 0, 0, 0, 0, 9, 0]) => Corrupt "2304 extents";
    rejects_an_extent_outside: with_inode(HELLO, 176 + 9, &[0xff]) => Corrupt "are not in one group";
    rejects_a_tree_without_levels: with_inode(&["data", "striped"], 176, &[0, 0]) => Corrupt "0 levels";
    rejects_an_entry_longer_than_its_directory: with_inode(&["short"], 176 + 6, &[200]) => Corrupt "the next one is outside";
}

/// Blocks may be shared, but their sectors have to fit into 64 bits.
#[test]
fn rejects_more_shared_blocks_than_can_be_counted() {
    let at = inode_at(HELLO);
    let mut fields = V5[at + 64..at + 128].to_vec();
    (fields[0], fields[63]) = (0x80, 2);
    assert_refused(read_all(with_inode(HELLO, 64, &fields)), ErrorKind::Corrupt, "blocks, up to");
}

#[test]
fn figures_of_a_damaged_superblock_are_left_out_of_the_facts() {
    let keys = |bytes| {
        let facts = opened(bytes).unwrap().facts().unwrap();
        facts.0.iter().map(|fact| fact.key).filter(|key| ["bytes_used", "inodes"].contains(key)).count()
    };
    assert_eq!(keys(V5.to_vec()), 2);
    // More free inodes and blocks than there are.
    assert_eq!(keys(with(&with(V5, 136, &[1]), 144, &[1])), 0);
}

#[test]
fn true_images_are_read_and_sound() {
    for (image, names) in [(V5, 159), (V4, 692)] {
        assert_eq!(read_all(image.to_vec()).unwrap(), names);
        let volume = opened(image.to_vec()).unwrap();
        assert!(volume.fault().is_none() && volume.warnings().is_empty(), "{:?}", volume.warnings());
        let mut found = Vec::new();
        volume.check(&mut |finding| found.push(finding)).unwrap();
        found.retain(|finding| finding.severity > Severity::Note);
        assert_eq!(found, []);
        let owners = volume.space().unwrap();
        assert_eq!(owners.iter().map(|owner| owner.len).sum::<u64>(), image.len() as u64);
    }
}

#[test]
fn a_wrong_checksum_of_the_superblock_is_a_fault_of_the_image() {
    let mut image = V5.to_vec();
    image[225] ^= 1;
    let fault = opened(image).unwrap().fault().unwrap();
    assert_eq!(fault.kind(), ErrorKind::Corrupt);
    assert!(fault.to_string().contains("superblock: checksum"), "{fault}");
}

#[test]
fn a_wrong_checksum_of_an_inode_is_an_error_of_that_inode() {
    let (mut image, at) = (V5.to_vec(), inode_at(HELLO));
    image[at + 8] ^= 1;
    assert_refused(read_all(image.clone()), ErrorKind::Corrupt, "checksum");
    let mut errors = 0;
    opened(image)
        .unwrap()
        .check(&mut |found| errors += u32::from(found.severity == Severity::Error))
        .unwrap();
    assert_eq!(errors, 1);
}

/// The offsets of the records of the log.
fn records(image: &[u8]) -> Vec<usize> {
    let log = opened(image.to_vec()).unwrap().super_block.internal_log().unwrap();
    let sectors = log.map(|at| at as usize).step_by(SECTOR);
    sectors.filter(|at| image[*at..].starts_with(b"\xfe\xed\xba\xbe") && image[*at + 7] == 1).collect()
}

#[test]
fn a_log_without_an_unmount_at_its_end_is_replayed() {
    let volume = opened(V5.to_vec()).unwrap();
    assert_eq!((volume.log, volume.warnings()), (LogState::Clean, vec![]));
    let mut image = V5.to_vec();
    // The operation of the last record loses its flag: Linux takes the record as cut off.
    image[*records(V5).last().unwrap() + SECTOR + 9] = 0;
    let volume = opened(image.clone()).unwrap();
    assert_eq!(volume.log, LogState::Dirty);
    assert_eq!(volume.warnings(), ["log replayed in memory (2 transactions); the image is unchanged"]);
    assert_eq!(read_all(image.clone()).unwrap(), read_all(V5.to_vec()).unwrap());
    let opening = Opening { no_journal: true, ..Opening::default() };
    let warnings = open(Arc::new(MemoryImage::new("xfs", image)), opening).unwrap().warnings();
    assert!(warnings[0].contains("not replayed"), "{warnings:?}");
}

#[test]
fn a_log_of_another_filesystem_is_refused_unless_it_is_left_out() {
    let mut image = V5.to_vec();
    for at in records(V5) {
        image[at + 304] ^= 1;
    }
    assert_refused(opened(image.clone()), ErrorKind::Corrupt, "another UUID");
    let opening = Opening { no_journal: true, ..Opening::default() };
    assert!(open(Arc::new(MemoryImage::new("xfs", image)), opening).is_ok());
}

#[test]
fn lookups_find_what_listings_show() {
    let volume = opened(V5.to_vec()).unwrap();
    let node = volume.lookup(volume.root(), b"node").unwrap().unwrap();
    let mut names = Vec::new();
    let visit = &mut |entry: packfs_format::DirEntry, _| {
        names.push((entry.name, entry.id));
        ControlFlow::Continue(())
    };
    volume.read_dir(node, DirCursor(0), visit).unwrap();
    assert_eq!(names.len(), 89);
    for (name, id) in names {
        assert_eq!(volume.lookup(node, &name).unwrap(), Some(id));
    }
    assert_eq!(volume.lookup(node, b"a name 50").unwrap(), None);
    assert_refused(volume.lookup(InodeId(1 << 60), b"a"), ErrorKind::Corrupt, "outside of the filesystem");
}

#[test]
fn changes_that_the_log_leaves_unfinished_are_finished() {
    let mut volume = opened(V5.to_vec()).unwrap();
    let mut id = volume.root();
    for name in HELLO {
        id = volume.lookup(id, name.as_bytes()).unwrap().unwrap();
    }
    let mappings = |volume: &XfsVolume| {
        let (mut found, inode) = (Vec::new(), volume.disk_inode(id.0).unwrap());
        let visit = &mut |mapping| {
            found.push(mapping);
            Ok(ControlFlow::Continue(()))
        };
        volume.each_mapping(&inode, Fork::Data, 0, visit).unwrap();
        (found, inode.blocks)
    };
    let (before, blocks) = mappings(&volume);
    let start = before[0].start;
    let change = |offset, count, is_mapped, is_attr| {
        let remap = Remap { ino: id.0, start, offset, count, is_mapped, is_unwritten: false, is_attr };
        [Intent::Mapping(vec![remap])]
    };
    volume.finish_intents(&change(7, 1, true, false), 0);
    let added = Mapping { offset: 7, start, count: 1, is_unwritten: false };
    assert_eq!(mappings(&volume), ([&before[..], &[added]].concat(), blocks + 1));
    volume.finish_intents(&change(0, 8, false, false), 0);
    let count: u64 = before.iter().map(|mapping| mapping.count).sum();
    assert_eq!(mappings(&volume), (vec![], blocks - count));
    assert_eq!(volume.warnings, Vec::<String>::new());
    volume.finish_intents(&change(0, 1, true, true), 3);
    assert!(volume.warnings[0].contains("unfinished change"), "{:?}", volume.warnings);
    assert!(volume.warnings[1].contains("3 further"), "{:?}", volume.warnings);
}

#[test]
fn hash_tables_that_do_not_hold_the_names_are_errors() {
    let volume = opened(V5.to_vec()).unwrap();
    let dir_len = volume.super_block.dir_block_len as usize;
    let log = volume.super_block.internal_log().unwrap().start as usize;
    let is_leaf = |at: &usize| matches!(V5[at + 8..at + 10], [0x3d, 0xf1 | 0xff]);
    let at = (0..log).step_by(1024).find(is_leaf).unwrap();
    let faults = |skip: usize, byte: u8| faults_with(at, (dir_len, 12), |block| block[skip] = byte);
    assert_eq!(faults(71, V5[at + 71]), Vec::<String>::new());
    // The address of the first entry of a leaf, and its hash.
    assert!(faults(71, !V5[at + 71])[0].contains("hash table"));
    assert!(faults(64, 0xff)[0].contains("hash 0x"));
}

/// The faults that a check finds in an image with a structure of `len` bytes at `start` changed,
/// whose checksum is at `sum_at` of it.
fn faults_with(start: usize, (len, sum_at): (usize, usize), change: impl FnOnce(&mut [u8])) -> Vec<String> {
    let mut image = V5.to_vec();
    let bytes = &mut image[start..start + len];
    change(bytes);
    let sum = Checksum::of(bytes, sum_at).computed;
    bytes[sum_at..sum_at + 4].copy_from_slice(&sum.to_le_bytes());
    let mut faults = Vec::new();
    let mut take = |found: packfs_format::Finding| {
        if found.severity == Severity::Error {
            faults.push(found.fault);
        }
    };
    opened(image).unwrap().check(&mut take).unwrap();
    faults
}

/// Loading refuses each name that claims another type, not only the first of an inode.
#[test]
fn every_name_of_an_inode_has_to_claim_its_type() {
    let (name, len) = (b"a name that is a little longer 9", 4096);
    let name_in = |block: &[u8]| block.windows(name.len()).position(|found| found == name);
    let is_block = |at: &usize| V5[*at..].starts_with(b"XDB3") && name_in(&V5[*at..at + len]).is_some();
    let start = (0..V5.len()).step_by(len).find(is_block).unwrap();
    let type_at = name_in(&V5[start..start + len]).unwrap() + name.len();
    let faults = faults_with(start, (len, 4), |block| block[type_at] = 2);
    assert!(faults.iter().any(|fault| fault.starts_with("type 2 of its entry")), "{faults:?}");
}

/// A list of more blocks than it has room for, or from an address outside of it, was cut without a
/// word.
#[test]
fn a_free_list_longer_than_its_room_is_an_error() {
    let agf = (SECTOR, std::mem::offset_of!(Agf, agf_crc));
    let with = |at: usize| faults_with(SECTOR, agf, |agf| agf[at..at + 4].fill(0x7f));
    assert_eq!(faults_with(SECTOR, agf, |_| ()), Vec::<String>::new());
    for at in [std::mem::offset_of!(Agf, agf_flcount), std::mem::offset_of!(Agf, agf_flfirst)] {
        assert!(with(at)[0].contains("blocks of the free list"), "{:?}", with(at));
    }
}

/// Attributes that end after the inode were read as far as it goes, so that some were lost.
#[test]
fn attributes_longer_than_their_fork_are_an_error() {
    let volume = opened(V5.to_vec()).unwrap();
    let (mut left, mut found) = (vec![volume.root()], None);
    while let Some(id) = left.pop() {
        let inode = volume.disk_inode(id.0).unwrap();
        if inode.attr_form == crate::inode::Form::Local && inode.has_attr_fork() {
            found = Some(id.0);
        }
        if matches!(volume.inode(id).unwrap().kind, InodeKind::Directory) {
            let visit = &mut |entry: packfs_format::DirEntry, _| {
                left.push(entry.id);
                ControlFlow::Continue(())
            };
            volume.read_dir(id, DirCursor(0), visit).unwrap();
        }
    }
    let ino = found.expect("an inode with attributes in it");
    let (block, slot) = volume.super_block.inode_at(ino).unwrap();
    let start = volume.super_block.blocks_at(block, 1).unwrap() as usize + slot as usize * 512;
    let dinode = (512, std::mem::offset_of!(Dinode, di_crc));
    let faults = faults_with(start, dinode, |inode| {
        let fork = 176 + usize::from(inode[std::mem::offset_of!(Dinode, di_forkoff)]) * 8;
        inode[fork..fork + 2].copy_from_slice(&[2, 0]);
    });
    assert!(faults[0].contains("attributes in the inode"), "{faults:?}");
}
