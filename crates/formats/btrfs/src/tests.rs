//! One test for each kind of fault, in an image of which one figure is changed and the checksums
//! are corrected.

use crate::checksum::Checksum;
use crate::disk::{SUPER_AT, SUPER_LEN, kind, tree};
use crate::key::Key;
use crate::volume::BtrfsVolume;
use packfs_core::{MemoryImage, Result};
use packfs_format::{
    Check, DirCursor, Directories, ExtentFrom, Finding, Health, InodeId, Opening, Space, Storage,
    StoredExtent, Volume,
};
use std::ops::ControlFlow;
use std::sync::Arc;

const MIXED: &[u8] = include_bytes!("../../../../testdata/legacy/btrfs-mixed.btrfs");
const DUP: &[u8] = include_bytes!("../../../../testdata/legacy/btrfs-dup.btrfs");
/// Bytes of a tree block of both.
const NODE_LEN: usize = 4096;
const SUPER: usize = SUPER_AT as usize;

/// An image to change.
struct Editor {
    bytes: Vec<u8>,
}

impl Editor {
    fn new(bytes: &[u8]) -> Editor {
        Editor { bytes: bytes.to_vec() }
    }

    fn open_with(&self, opening: &Opening) -> Result<BtrfsVolume> {
        BtrfsVolume::open(Arc::new(MemoryImage::new("test", self.bytes.clone())), opening)
    }

    fn open(&self) -> Result<BtrfsVolume> {
        self.open_with(&Opening::default())
    }

    fn number(&self, at: usize, len: usize) -> u64 {
        let mut raw = [0; 8];
        raw[..len].copy_from_slice(&self.bytes[at..at + len]);
        u64::from_le_bytes(raw)
    }

    /// Changes bytes of the superblock.
    fn superblock(mut self, at: usize, value: &[u8]) -> Editor {
        self.bytes[SUPER + at..][..value.len()].copy_from_slice(value);
        self.sum(SUPER, SUPER_LEN);
        self
    }

    fn sum(&mut self, at: usize, len: usize) {
        let sum = Checksum::Crc32c.sum(&self.bytes[at + 32..at + len]);
        self.bytes[at..at + 32].copy_from_slice(&sum);
    }

    /// Offsets of all tree blocks: they carry the UUID of the filesystem.
    fn nodes(&self) -> Vec<usize> {
        let fsid = &self.bytes[SUPER + 0x20..SUPER + 0x30];
        let blocks = (SUPER + SUPER_LEN..self.bytes.len()).step_by(NODE_LEN);
        blocks.filter(|at| &self.bytes[at + 0x20..at + 0x30] == fsid).collect()
    }

    /// Changes a byte string in every copy of the tree blocks of a tree and level.
    fn nodes_of(mut self, owner: u64, level: u8, at: usize, value: &[u8]) -> Editor {
        let mut count = 0;
        for node in self.nodes() {
            if self.number(node + 0x58, 8) == owner && self.bytes[node + 0x64] == level {
                self.bytes[node + at..][..value.len()].copy_from_slice(value);
                self.sum(node, NODE_LEN);
                count += 1;
            }
        }
        assert!(count > 0, "no such block");
        self
    }

    /// Places of an item: block, slot, and its data, in every copy.
    fn items(&self, owner: u64, is_it: impl Fn(&Key) -> bool) -> Vec<(usize, usize, usize)> {
        let mut found = Vec::new();
        for node in self.nodes() {
            if self.number(node + 0x58, 8) != owner || self.bytes[node + 0x64] != 0 {
                continue;
            }
            for slot in 0..self.number(node + 0x60, 4) as usize {
                let head = node + 101 + 25 * slot;
                let key = Key::of(&packfs_format::structure(&self.bytes, head).unwrap());
                if is_it(&key) {
                    found.push((node, head, node + 101 + self.number(head + 17, 4) as usize));
                }
            }
        }
        assert!(!found.is_empty(), "no such item");
        found
    }

    /// Changes the data of an item.
    fn item(mut self, owner: u64, is_it: impl Fn(&Key) -> bool, at: usize, value: &[u8]) -> Editor {
        for (node, _, data) in self.items(owner, is_it) {
            self.bytes[data + at..][..value.len()].copy_from_slice(value);
            self.sum(node, NODE_LEN);
        }
        self
    }

    /// Number of an inode of the top subvolume.
    fn inode(&self, name: &str) -> u64 {
        let volume = self.open().unwrap();
        volume.lookup(volume.root(), name.as_bytes()).unwrap().unwrap().0
    }
}

/// Returns the error of opening.
#[track_caller]
fn refused(editor: Editor) -> String {
    editor.open().err().expect("an error").to_string()
}

fn of(object: u64, kind: u8) -> impl Fn(&Key) -> bool {
    move |key| (key.object, key.kind) == (object, kind)
}

fn list(volume: &BtrfsVolume, dir: InodeId) -> Result<Vec<(String, InodeId)>> {
    let mut names = Vec::new();
    volume.read_dir(dir, DirCursor(0), &mut |entry, _| {
        names.push((String::from_utf8_lossy(&entry.name).into_owned(), entry.id));
        ControlFlow::Continue(())
    })?;
    Ok(names)
}

fn read(volume: &BtrfsVolume, id: InodeId) -> Result<()> {
    let image = volume.data_image().unwrap();
    let mut outcome = Ok(());
    volume.extents(id, 0..u64::MAX, &mut |extent| {
        let (at, len) = match extent.from {
            ExtentFrom::Hole => return ControlFlow::Continue(()),
            ExtentFrom::Stored(at) => (at, extent.len),
            ExtentFrom::Block { block, .. } => (block.offset, block.stored_len.into()),
        };
        outcome = image.read_exact_at(at, &mut vec![0; len as usize]);
        if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    outcome
}

fn findings(volume: &BtrfsVolume) -> Vec<String> {
    let mut all = Vec::new();
    volume.check(&mut |Finding { place, fault, .. }| all.push(format!("{place}: {fault}"))).unwrap();
    all
}

#[test]
fn sound_images_are_read_without_findings() {
    for image in [MIXED, DUP] {
        let volume = Editor::new(image).open().unwrap();
        assert_eq!(findings(&volume), Vec::<String>::new());
        let names = list(&volume, volume.root()).unwrap();
        assert!(names.len() > 15, "{names:?}");
        for (_, id) in names {
            if matches!(volume.inode(id).unwrap().kind, packfs_format::InodeKind::File { .. }) {
                read(&volume, id).unwrap();
            }
        }
        assert_eq!(volume.space().unwrap().iter().map(|owner| owner.len).sum::<u64>(), image.len() as u64);
    }
}

#[test]
fn refuses_superblocks() {
    let cut = |len: usize| Editor { bytes: MIXED[..len].to_vec() };
    assert!(refused(cut(1000)).contains("1000 bytes, at least 69632 needed"));
    assert!(
        refused(Editor::new(MIXED).superblock(0x40, b"!")).contains("superblock at 0x10000: other magic")
    );
    let mut damaged = Editor::new(MIXED);
    damaged.bytes[SUPER + 0x130] ^= 1;
    assert!(refused(damaged).contains("superblock at 0x10000: wrong checksum (crc32c)"));
    for (at, value, wanted) in [
        (0x30, 7_u64.to_le_bytes().to_vec(), "own offset 7, the offset that it is at allowed"),
        (0x90, vec![0, 1, 0, 0], "sector size 256, powers of 2 from 2048 to 65536 allowed"),
        (0x94, vec![1, 0, 1, 0], "node size 65537, powers of 2 from 4096 to 65536 allowed"),
        (0xc6, vec![8], "level of the root tree 8, 0 to 7 allowed"),
        (0xc7, vec![9], "level of the chunk tree 9, 0 to 7 allowed"),
        (0xc8, vec![200], "level of the log 200, 0 to 7 allowed"),
        (0xa0, vec![1, 8, 0, 0], "length of system chunks 2049, 0 to 2048 allowed"),
        (0x88, vec![0; 8], "number of devices 0, 1 and more allowed"),
        (0xc4, vec![9, 0], "unsupported btrfs image: checksum type 9, 0 to 3 known"),
        (0xbe, vec![0x80], "unsupported btrfs image: incompatible features incompat bit 23"),
        (0xbd, vec![0x20], "unsupported btrfs image: incompatible features extent_tree_v2"),
    ] {
        let text = refused(Editor::new(MIXED).superblock(at, &value));
        assert!(text.contains(wanted), "{text}");
    }
    let text = refused(Editor::new(MIXED).superblock(0x90, &[0, 32]));
    assert!(text.contains("node size 4096, the sector size and more allowed"), "{text}");
}

#[test]
fn takes_a_copy_of_a_damaged_superblock_with_a_warning() {
    let copy = crate::disk::COPIES_AT[0];
    let mut editor = Editor::new(MIXED);
    let second = editor.bytes[SUPER..SUPER + SUPER_LEN].to_vec();
    editor.bytes.resize(copy as usize, 0);
    editor.bytes.extend(second);
    editor.bytes[copy as usize + 0x30..][..8].copy_from_slice(&copy.to_le_bytes());
    editor.sum(copy as usize, SUPER_LEN);
    editor.bytes[SUPER + 0x130] ^= 1;
    let volume = editor.open().unwrap();
    let warnings = volume.warnings();
    assert!(warnings[0].contains("its copy at 0x4000000 is used"), "{warnings:?}");
    // Linux writes the log to the first superblock alone.
    let fault = volume.fault().unwrap();
    assert_eq!(fault.kind(), packfs_core::ErrorKind::Corrupt);
    assert!(fault.to_string().contains("changes synced after the last commit may be missing"), "{fault}");
    assert!(findings(&volume).iter().any(|it| it.contains("its copy at 0x4000000 has no log")));
}

#[test]
fn a_log_that_cannot_be_read_is_a_fault_unless_it_is_not_wanted() {
    let editor = Editor::new(MIXED).superblock(0x60, &0x4000_u64.to_le_bytes());
    let volume = editor.open().unwrap();
    let fault = volume.fault().unwrap();
    assert!(fault.to_string().contains("log of changes at 0x4000"), "{fault}");
    assert!(fault.hints().iter().any(|hint| hint.contains("--ignore-log")), "{:?}", fault.hints());
    assert!(findings(&volume).iter().any(|it| it.contains("log of changes at 0x4000")));
    let without = editor.open_with(&Opening { no_journal: true, ..Opening::default() }).unwrap();
    assert!(without.fault().is_none() && without.warnings()[0].contains("left out"));
}

#[test]
fn data_in_groups_of_metadata_is_read() {
    let editor = Editor::new(DUP);
    let data = |editor: &Editor| {
        let chunks = editor.items(tree::CHUNK, |key| key.kind == kind::CHUNK_ITEM);
        chunks.into_iter().filter(|chunk| editor.bytes[chunk.2 + 24] & 1 != 0).collect::<Vec<_>>()
    };
    let mut converted = Editor::new(DUP);
    for (node, _, item) in data(&editor) {
        converted.bytes[item + 24] = converted.bytes[item + 24] & !1 | 4;
        converted.sum(node, NODE_LEN);
    }
    assert!(!data(&editor).is_empty() && data(&converted).is_empty());
    let volume = converted.open().unwrap();
    for (name, id) in list(&volume, volume.root()).unwrap() {
        if matches!(volume.inode(id).unwrap().kind, packfs_format::InodeKind::File { .. }) {
            read(&volume, id).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
    assert_eq!(findings(&volume), Vec::<String>::new());
}

#[test]
fn restored_dumps_of_metadata_open_with_a_warning() {
    let volume = Editor::new(MIXED).superblock(0x3c, &[4]).open().unwrap();
    assert!(volume.warnings()[0].contains("a restored dump of metadata"), "{:?}", volume.warnings());
    assert!(list(&volume, volume.root()).unwrap().len() > 15);
    // btrfs-image puts zeros instead of inline data.
    let editor = Editor::new(MIXED).superblock(0x3c, &[4]);
    let (small, link) = (editor.inode("small"), editor.inode("symlink"));
    let blank = |editor: Editor, inode| {
        let item = &editor.items(tree::TOP, of(inode, kind::EXTENT_DATA))[0];
        let len = editor.number(item.1 + 21, 4) as usize - 21;
        editor.item(tree::TOP, of(inode, kind::EXTENT_DATA), 21, &vec![0; len])
    };
    let volume = blank(blank(editor, small), link).open().unwrap();
    assert_eq!(volume.read_link(InodeId(link)).unwrap(), b"");
    assert!(volume.remarks()[0].contains("of symbolic links that the dump"), "{:?}", volume.remarks());
    let read = volume.extents(InodeId(small), 0..1, &mut |_| ControlFlow::Continue(()));
    assert!(read.unwrap_err().to_string().contains("does not hold these data"));
}

#[test]
fn refuses_chunks() {
    let array = 0x32b;
    assert!(refused(Editor::new(MIXED).superblock(array + 8, &[1])).contains("no chunk at byte 0"));
    for (at, value, wanted) in [
        (0, 0_u64.to_le_bytes().to_vec(), "length 0"),
        (16, 0_u64.to_le_bytes().to_vec(), "stripe length 0, 65536 allowed"),
        (24, 0_u64.to_le_bytes().to_vec(), "type 0"),
        (24, 0x1ff_u64.to_le_bytes().to_vec(), "type 511"),
        (24, 0x12_u64.to_le_bytes().to_vec(), "number of stripes 1, those of its profile allowed"),
        (44, vec![0, 0], "number of stripes 0"),
        (44, vec![0xff, 0xff], "number of stripes 65535"),
    ] {
        let text = refused(Editor::new(MIXED).superblock(array + 17 + at, &value));
        assert!(text.contains("chunk at 0x101000") && text.contains(wanted), "{text}");
    }
    let raid10 = [0x42, 0, 0, 0, 0, 0, 0, 0];
    let text =
        refused(Editor::new(DUP).superblock(array + 17 + 24, &raid10).superblock(array + 17 + 46, &[1]));
    assert!(text.contains("number of copies 1, 2 allowed"), "{text}");
    let text = refused(Editor::new(MIXED).superblock(array + 9, &[1]));
    assert!(text.contains("address 1052673"), "{text}");
    let text = refused(Editor::new(MIXED).superblock(0xa0, &[70, 0, 0, 0]));
    assert!(text.contains("bytes 53, those of its stripes allowed"), "{text}");
    let text = refused(Editor::new(MIXED).superblock(0xa0, &[20, 0, 0, 0]));
    assert!(text.contains("bytes 3, 48 and more allowed"), "{text}");
    let longer = Editor::new(MIXED).item(
        tree::CHUNK,
        |key| key.kind == kind::CHUNK_ITEM && key.offset == 0x50_7000,
        0,
        &0x30_0000_u64.to_le_bytes(),
    );
    let text = refused(longer);
    assert!(text.contains("chunk at 0x704000: overlaps the chunk at 0x507000"), "{text}");
}

#[test]
fn refuses_addresses_outside_chunks_and_devices() {
    let text = refused(Editor::new(MIXED).superblock(0x50, &0x1000_0000_u64.to_le_bytes()));
    assert!(text.contains("logical address 0x10000000: in no chunk"), "{text}");
    let mut editor = Editor::new(MIXED);
    editor.bytes.truncate(72 << 10);
    assert!(refused(editor).contains("device 1 ends at 0x12000"));
}

#[test]
fn refuses_tree_blocks() {
    let root = |at, value: &[u8]| refused(Editor::new(MIXED).nodes_of(tree::ROOT, 0, at, value));
    for (at, value, wanted) in [
        (0x30, vec![1], "own address"),
        (0x20, vec![0xee; 2], "belongs to another filesystem"),
        (0x64, vec![8], "level 8, 7 expected"),
        (0x50, vec![0xfe], "generation"),
        (0x58, vec![99], "tree 99, 1 expected"),
        (0x60, vec![0xff, 0xff], "number of items 65535, 159 expected"),
        (101, vec![0xff; 8], "key 1 does not rise"),
        (101 + 21, vec![0xff], "item 0:"),
    ] {
        let text = root(at, &value);
        assert!(text.contains("tree block at ") && text.contains(wanted), "{wanted}: {text}");
    }
    let mut editor = Editor::new(MIXED);
    for node in editor.nodes() {
        editor.bytes[node + 0x64 + 1] ^= 1;
    }
    assert!(refused(editor).contains("wrong checksum in every copy"));
    let level = refused(Editor::new(MIXED).superblock(0xc6, &[3]));
    assert!(level.contains("level 1, 3 expected"), "{level}");
}

#[test]
fn refuses_pointers_that_lead_elsewhere() {
    let inner = |at, value: &[u8]| {
        let volume = Editor::new(MIXED).nodes_of(tree::TOP, 1, at, value).open();
        match volume {
            Ok(volume) => list(&volume, volume.root()).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        }
    };
    let unaligned = inner(101 + 17, &[1]);
    assert!(unaligned.contains("pointer 0 to ") && unaligned.contains("multiples of the sector size"));
    // A key of the second pointer that is below keys in the first block.
    let text = inner(101 + 33, &[0, 1, 0, 0, 0, 0, 0, 0, 2]);
    assert!(text.contains("keys outside the range of its parent"), "{text}");
}

#[test]
fn names_missing_trees_and_subvolumes() {
    let text = refused(Editor::new(MIXED).item(tree::ROOT, of(tree::TOP, kind::ROOT_ITEM), 0xee, &[9]));
    assert!(text.contains("tree 5: level 9, 0 to 7 allowed"), "{text}");
    let volume = Editor::new(MIXED).open().unwrap();
    assert!(volume.fs.root(77).err().unwrap().to_string().contains("no tree 77"));
    for wanted in ["77", "d", "none/there"] {
        let opening = Opening { subvolume: Some(wanted.into()), ..Opening::default() };
        let error = Editor::new(MIXED).open_with(&opening).err().unwrap();
        assert!(error.to_string().contains(&format!("has no subvolume {wanted:?}")), "{error}");
    }
}

#[test]
fn subvolumes_open_by_path_and_number() {
    let names = |wanted: &str| {
        let opening = Opening { subvolume: Some(wanted.into()), ..Opening::default() };
        let volume = Editor::new(MIXED).open_with(&opening).unwrap();
        list(&volume, volume.root()).unwrap().into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(names("sub"), ["in", "nested"]);
    assert_eq!(names("/sub/nested/"), ["file"]);
    assert_eq!(names("d/snapshot"), ["in", "nested"]);
    assert_eq!(names("256"), names("sub"));
    assert_eq!(names("/"), names("5"));
    assert_eq!(names("0"), names("5"));
}

#[test]
fn the_default_subvolume_is_opened() {
    let name = tree::ROOT_DIR;
    let editor = Editor::new(MIXED).item(tree::ROOT, of(name, kind::DIR_ITEM), 0, &256_u64.to_le_bytes());
    let volume = editor.open().unwrap();
    assert_eq!(volume.opened, 256);
    let top = Opening { subvolume: Some("/".into()), ..Opening::default() };
    assert_eq!(editor.open_with(&top).unwrap().opened, 5);
}

#[test]
fn an_entry_from_inside_the_opened_subvolume_to_it_is_refused() {
    let mut volume = Editor::new(MIXED).open().unwrap();
    let sub = volume.lookup(volume.root(), b"sub").unwrap().unwrap();
    let nested = volume.lookup(sub, b"nested").unwrap().unwrap();
    let crate::volume::Place::Node(node) = volume.place(nested).unwrap() else { panic!("no subvolume") };
    volume.opened = node.tree.id;
    let text = list(&volume, sub).unwrap_err().to_string();
    assert!(text.contains("leads to it from within itself"), "{text}");
}

#[test]
fn damaged_entries_are_passed_over_and_reported() {
    let editor = Editor::new(MIXED);
    let small = editor.inode("small");
    let index = |key: &Key| key.kind == kind::DIR_INDEX && key.object == 256 && key.offset == 3;
    for (at, value, wanted) in [
        (29, vec![0x82], "file type 130, 1 to 7 allowed"),
        (30, b"/".to_vec(), "name with a slash"),
        (8, vec![9], "type of the location 9, 1 and 132 allowed"),
        (6, vec![1], "number beyond those that are read (40 bits)"),
        (27, vec![0xff, 0xff], "at least 65565 needed"),
    ] {
        let volume = Editor::new(MIXED).item(tree::TOP, index, at, &value).open().unwrap();
        let mut names = 0;
        let error = volume
            .read_dir(volume.root(), DirCursor(0), &mut |_, _| {
                names += 1;
                ControlFlow::Continue(())
            })
            .unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
        assert!(names > 14, "{names}");
        assert!(findings(&volume).iter().any(|finding| finding.contains(wanted)));
    }
    let moved = Editor::new(MIXED).item(tree::TOP, index, 0, &[0xff, 0xff]).open().unwrap();
    let id = list(&moved, moved.root()).unwrap()[1].1;
    assert!(moved.inode(id).unwrap_err().to_string().contains("inode 65535 of tree 5: no such item"));
    assert!(small > 256);
}

#[test]
fn refuses_inodes() {
    let editor = Editor::new(MIXED);
    let (small, text, link) = (editor.inode("small"), editor.inode("text"), editor.inode("symlink"));
    for (at, value, wanted) in [
        (0x34, vec![0; 4], "mode 0o0 of no type"),
        (0x10, vec![0xff; 8], "length 18446744073709551615, below 2^63 allowed"),
    ] {
        let volume =
            Editor::new(MIXED).item(tree::TOP, of(small, kind::INODE_ITEM), at, &value).open().unwrap();
        assert!(volume.inode(InodeId(small)).unwrap_err().to_string().contains(wanted));
    }
    let late =
        Editor::new(MIXED).item(tree::TOP, of(small, kind::INODE_ITEM), 0x90, &[0xff; 4]).open().unwrap();
    assert!(late.inode(InodeId(small)).unwrap().doubt.is_some());
    let volume = editor.open().unwrap();
    for (id, wanted) in [(text, "not a symbolic link"), (volume.root().0, "not a symbolic link")] {
        assert!(volume.read_link(InodeId(id)).unwrap_err().to_string().contains(wanted));
    }
    assert!(list(&volume, InodeId(link)).unwrap_err().to_string().contains("not a directory"));
    assert!(read(&volume, InodeId(link)).unwrap_err().to_string().contains("not a regular file"));
    let nul = Editor::new(MIXED).item(tree::TOP, of(link, kind::EXTENT_DATA), 21, &[0]).open().unwrap();
    assert!(nul.read_link(InodeId(link)).unwrap_err().to_string().contains("1 to 4095 without NUL"));
    let whole = volume.read_link(InodeId(link)).unwrap();
    let len = (whole.len() as u64 - 1).to_le_bytes();
    let shorter = Editor::new(MIXED).item(tree::TOP, of(link, kind::INODE_ITEM), 0x10, &len).open().unwrap();
    assert_eq!(shorter.read_link(InodeId(link)).unwrap(), whole[..whole.len() - 1]);
}

#[test]
fn checksums_that_overlap_are_found() {
    let mut editor = Editor::new(MIXED);
    let sums = editor.items(tree::CHECKSUMS, |key| key.kind == kind::EXTENT_CSUM);
    // Blocks of earlier generations are changed, too.
    for pair in sums.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        let before = editor.number(pair[0].1 + 9, 8) + 4096;
        editor.bytes[pair[1].1 + 9..][..8].copy_from_slice(&before.to_le_bytes());
        editor.sum(pair[0].0, NODE_LEN);
    }
    let found = findings(&editor.open().unwrap());
    assert!(found.iter().any(|finding| finding.contains("item overlaps the one before")), "{found:?}");
}

#[test]
fn refuses_extents() {
    let editor = Editor::new(MIXED);
    let (text, reserved) = (editor.inode("text"), editor.inode("reserved"));
    for (at, value, wanted) in [
        (0x10, vec![9], "compression 9, 0 to 3 allowed"),
        (0x11, vec![1], "encryption 1, 0 allowed"),
        (0x14, vec![3], "type 3, 0 to 2 allowed"),
        (0x14, vec![0], "length of inline data 61440, up to a sector allowed"),
        (0x2d, vec![1], "multiples of the sector size"),
        (0x15, vec![1], "address"),
        (0x25, vec![0, 0, 0xff], "such that it ends in it"),
        (8, vec![0, 0, 3], "length of a compressed extent 196608, up to 131072 allowed"),
    ] {
        let first = |key: &Key| of(text, kind::EXTENT_DATA)(key) && key.offset == 0;
        let volume = Editor::new(MIXED).item(tree::TOP, first, at, &value).open().unwrap();
        let error = read(&volume, InodeId(text)).unwrap_err().to_string();
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
    let first = |key: &Key| of(reserved, kind::EXTENT_DATA)(key) && key.offset == 0;
    let volume = Editor::new(MIXED).item(tree::TOP, first, 0x2d, &[0, 0x40]).open().unwrap();
    let error = read(&volume, InodeId(reserved)).unwrap_err().to_string();
    assert!(error.contains("extent begins before the end of the one before"), "{error}");
    assert!(findings(&volume).iter().any(|finding| finding.contains("overlaps the extent before")));
}

#[test]
fn data_with_a_checksum_is_known() {
    let editor = Editor::new(MIXED);
    let volume = editor.open().unwrap();
    let mut places = Vec::new();
    for name in ["reserved", "small", "text"] {
        volume
            .extents(InodeId(editor.inode(name)), 0..u64::MAX, &mut |extent| {
                match extent.from {
                    ExtentFrom::Stored(at) => places.push(at),
                    ExtentFrom::Block { block, .. } => places.push(block.offset),
                    ExtentFrom::Hole => {}
                }
                ControlFlow::Continue(())
            })
            .unwrap();
    }
    assert!(places.len() > 2, "{places:?}");
    assert!(places.iter().all(|at| volume.verifies(*at..at + 1).unwrap()), "{places:?}");
    let sums = volume.fs.sums.as_ref().unwrap();
    let items = sums.items_of(&volume.fs.store, tree::CHECKSUM_OBJECT, kind::EXTENT_CSUM, 0);
    let end = items.map(|item| volume.fs.sums_in(&item.unwrap()).end).max().unwrap();
    assert!(!volume.verifies(end..end + 1).unwrap() || volume.fs.store.block(end).is_ok());
}

#[test]
fn damaged_data_is_refused_and_a_damaged_block_healed_by_its_copy() {
    let editor = Editor::new(MIXED);
    let binary = editor.inode("binary");
    let volume = editor.open().unwrap();
    let mut stored = None;
    volume
        .extents(InodeId(binary), 0..1, &mut |extent| {
            if let ExtentFrom::Block { block, .. } = extent.from {
                stored = Some(block.offset);
            }
            ControlFlow::Break(())
        })
        .unwrap();
    let at = stored.unwrap();
    let chunk = volume.fs.store.chunks.of(at).unwrap();
    let place = chunk.stripes[0].at + at - chunk.at;
    let mut editor = editor;
    editor.bytes[place as usize + 100] ^= 1;
    let error = read(&editor.open().unwrap(), InodeId(binary)).unwrap_err().to_string();
    assert!(error.contains(&format!("data at {at:#x}: wrong checksum (copies tried: 1)")), "{error}");

    let mut editor = Editor::new(DUP);
    let nodes = editor.nodes();
    // The first copies of the two chunks.
    for node in nodes[..1].iter().chain(&nodes[2..nodes.len() / 2 + 1]) {
        editor.bytes[node + 200] ^= 1;
    }
    let volume = editor.open().unwrap();
    assert!(list(&volume, volume.root()).unwrap().len() > 15);
    let found = findings(&volume);
    assert!(found.len() == 1 && found[0].contains("copies of tree blocks are damaged, others are intact"));
}

#[test]
fn numbers_of_inodes_are_unique_in_a_volume() {
    let volume = Editor::new(MIXED).open().unwrap();
    let (mut open, mut numbers) = (vec![volume.root()], std::collections::HashMap::new());
    while let Some(dir) = open.pop() {
        for (name, id) in list(&volume, dir).unwrap() {
            let inode = volume.inode(id).unwrap();
            assert_eq!(*numbers.entry(inode.number).or_insert(id), id, "{name}");
            if inode.kind == packfs_format::InodeKind::Directory {
                open.push(id);
            }
        }
    }
    let sub = volume.lookup(volume.root(), b"sub").unwrap().unwrap();
    assert_eq!(volume.inode(sub).unwrap().number, 256 << 40 | 256);
    assert_eq!(volume.inode(volume.root()).unwrap().number, 256);
}

#[test]
fn inline_data_is_read_from_the_copy_that_its_parent_means() {
    let mut editor = Editor::new(DUP);
    let small = editor.inode("small");
    let at = {
        let volume = editor.open().unwrap();
        let mut places = Vec::new();
        volume
            .extents(InodeId(small), 0..u64::MAX, &mut |extent| {
                places.extend(StoredExtent::of(&extent));
                ControlFlow::Continue(())
            })
            .unwrap();
        places[0].place.unwrap()
    };
    let bytes = |volume: &BtrfsVolume| {
        let mut bytes = [0; 2];
        volume.data_image().unwrap().read_exact_at(at, &mut bytes).unwrap();
        bytes
    };
    let wanted = bytes(&editor.open().unwrap());
    // The first copy of its block is one of an earlier generation.
    let (node, _, data) = editor.items(tree::TOP, of(small, kind::EXTENT_DATA))[0];
    let earlier = editor.number(node + 0x50, 8) - 1;
    editor.bytes[node + 0x50..node + 0x58].copy_from_slice(&earlier.to_le_bytes());
    editor.bytes[data + 21] ^= 0xff;
    editor.sum(node, NODE_LEN);
    let volume = editor.open().unwrap();
    assert_eq!(bytes(&volume), wanted);
    read(&volume, InodeId(small)).unwrap();
    assert_eq!(bytes(&volume), wanted);
    let volume = editor.open().unwrap();
    read(&volume, InodeId(small)).unwrap();
    assert_eq!(bytes(&volume), wanted);
}

#[test]
fn data_without_checksums_is_refused_unless_the_inode_says_so() {
    let editor = Editor::new(MIXED);
    let text = editor.inode("text");
    let mut without = Editor::new(MIXED);
    for (node, head, _) in editor.items(tree::CHECKSUMS, |key| key.kind == kind::EXTENT_CSUM) {
        without.bytes[head + 8] = kind::EXTENT_CSUM - 1;
        without.sum(node, NODE_LEN);
    }
    let volume = without.open().unwrap();
    let error = read(&volume, InodeId(text)).unwrap_err().to_string();
    assert!(error.contains("has no checksum, but the inode does not say so"), "{error}");
    assert!(findings(&volume).iter().any(|finding| finding.contains("text: item ")));
    let allowed = without.item(tree::TOP, of(text, kind::INODE_ITEM), 0x40, &[1]).open().unwrap();
    read(&allowed, InodeId(text)).unwrap();
}

/// Mutated images of each kind that a test tries; `cargo xtask mutate btrfs` tries more.
const MUTATIONS: u64 = 300;

/// Uses all of a volume; whatever it contains, this ends without a panic.
fn use_all(volume: &BtrfsVolume) {
    let mut open = vec![volume.root()];
    let mut count = 0;
    while let Some(dir) = open.pop() {
        let _ = volume.read_dir(dir, DirCursor(0), &mut |entry, _| {
            count += 1;
            let _ = volume.lookup(dir, &entry.name);
            match volume.inode(entry.id).map(|inode| inode.kind) {
                Ok(packfs_format::InodeKind::Directory) if open.len() < 1000 => open.push(entry.id),
                Ok(packfs_format::InodeKind::File { .. }) => drop(read(volume, entry.id)),
                Ok(packfs_format::InodeKind::Symlink) => drop(volume.read_link(entry.id)),
                _ => {}
            }
            let _ = volume.xattrs(entry.id);
            let _ = volume.stored_extents(entry.id, 0, &mut |_| ControlFlow::Continue(()));
            if count < 5000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        if count >= 5000 {
            break;
        }
    }
    let _ = volume.check(&mut |_| {});
    let _ = volume.space();
    let _ = volume.facts();
}

/// Loading refuses each name that claims another type, not only the first of an inode.
#[test]
fn every_name_of_an_inode_has_to_claim_its_type() {
    let mut editor = Editor::new(DUP);
    let indexes = editor.items(tree::TOP, |key| key.kind == kind::DIR_INDEX);
    for (node, _, data) in indexes {
        // The name after the 30 bytes of the entry, and the type at their end.
        if &editor.bytes[data + 30..data + 35] == b"link3" {
            editor.bytes[data + 29] = 2;
            editor.sum(node, NODE_LEN);
        }
    }
    let found = findings(&editor.open().unwrap());
    assert!(found.iter().any(|fault| fault.contains("its entry says directory")), "{found:?}");
}

#[test]
fn mutated_images_never_panic_or_loop() {
    let mut random = packfs_testkit::Random::new(7);
    let mut below = |end: usize| random.below(end as u64) as usize;
    for image in [MIXED, DUP] {
        let nodes = Editor::new(image).nodes();
        for _ in 0..MUTATIONS {
            let mut editor = Editor::new(image);
            for _ in 0..1 + below(3) {
                let at = match below(8) {
                    0 => SUPER + 32 + below(SUPER_LEN - 32),
                    // Headers and keys of a block, or all of it.
                    1..=4 => nodes[below(nodes.len())] + 32 + below(400),
                    _ => nodes[below(nodes.len())] + 32 + below(NODE_LEN - 40),
                };
                let value = [0, 1, 0x7f, 0x80, 0xff, below(256) as u8][below(6)];
                let len = [1, 1, 1, 2, 4, 8][below(6)];
                editor.bytes[at..at + len].fill(value);
            }
            nodes.iter().for_each(|node| editor.sum(*node, NODE_LEN));
            editor.sum(SUPER, SUPER_LEN);
            if let Ok(volume) = editor.open() {
                use_all(&volume);
            }
        }
    }
}
