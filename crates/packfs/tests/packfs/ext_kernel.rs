//! Filesystems of mke2fs, filled by Linux's own driver, read by packfs as Linux reads them.

use crate::common::read_image;
use packfs_core::{ErrorKind, FileImage, FileType as Kind, Image, Timestamp};
use packfs_format::{InodeId, Opening, Volume};
use packfs_read::{ReadEngine, ReadOptions};
use packfs_testkit::{
    Compare, LoopDevice, Mount, Peer, Random, Snapshot, is_root, peer, skip, snapshot_dir, snapshot_tree,
    unmount,
};
use rustix::fs::{AtFlags, CWD, FallocateFlags, FileType, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// A filesystem: its name, options of mke2fs, and names in its largest directory.
type Row = (&'static str, &'static str, u32);

const ROWS: &[Row] = &[
    ("ext2", "-text2 -b1024 -I128", 300),
    ("ext2, blocks of 4 KiB", "-text2 -b4096 -I256", 300),
    ("ext3", "-text3 -b1024", 300),
    ("ext4", "-text4 -b4096", 3000),
    ("ext4, blocks of 1 KiB", "-text4 -b1024", 5000),
    ("blocks of 2 KiB", "-text4 -b2048 -I1024", 300),
    ("no journal", "-text4 -b4096 -O ^has_journal", 300),
    ("bigalloc", "-text4 -b4096 -O bigalloc -C65536", 300),
    ("bigalloc, blocks of 1 KiB", "-text4 -b1024 -O bigalloc -C8192", 300),
    ("inline data", "-text4 -b4096 -O inline_data -I512", 300),
    ("inline data, blocks of 1 KiB", "-text4 -b1024 -O inline_data -I1024", 300),
    ("inline data, no checksums", "-text4 -b4096 -O inline_data,^metadata_csum -I256", 100),
    ("attributes in inodes", "-text4 -b4096 -O ea_inode", 100),
    ("attributes in inodes, blocks of 1 KiB", "-text4 -b1024 -O ea_inode,^metadata_csum", 100),
    ("meta groups", "-text4 -b1024 -g1024 -O meta_bg,^resize_inode,^64bit", 300),
    ("meta groups of 64 bits", "-text4 -b1024 -g1024 -O meta_bg,^resize_inode,64bit,mmp", 100),
    ("CRC-16", "-text4 -b1024 -g2048 -O 64bit,uninit_bg,^metadata_csum", 300),
    ("block maps", "-text4 -b1024 -O ^extent,^64bit", 2000),
    ("seed", "-text4 -b4096 -O metadata_csum_seed,large_dir,^flex_bg,verity", 300),
    ("two copies", "-text4 -b1024 -g1024 -O sparse_super2,^resize_inode", 100),
    ("all copies", "-text4 -b1024 -g1024 -O ^sparse_super,^resize_inode", 100),
    ("no types", "-text4 -b1024 -O ^filetype", 300),
    ("encryption", "-text4 -b4096 -O encrypt,stable_inodes", 100),
    ("32 bits", "-text4 -b4096 -I128 -O ^64bit,^metadata_csum,^huge_file", 100),
];

/// Only what a test writes changes the image: no commit by the clock, no tables of inodes made
/// later. On a slow machine, a copy of a mounted image would otherwise be of two moments.
const STILL: &str = "rw,commit=600,noinit_itable";

/// A filesystem that Linux may write to; unmounted when dropped.
struct Writable(tempfile::TempDir);

impl Writable {
    fn new(image: &Path, options: &str) -> Self {
        let at = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "ext4", "-o", &format!("loop,{options}")]).arg(image).arg(at.path());
        let output = mount.output().unwrap();
        assert!(output.status.success(), "{image:?}: {}", String::from_utf8_lossy(&output.stderr));
        Writable(at)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Writable {
    fn drop(&mut self) {
        assert!(unmount(self.0.path()) || std::thread::panicking());
    }
}

/// Makes a folder in memory, if there is one: a disk would be waited for at each unmounting.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// The tools, if they and the rights are there.
fn mke2fs() -> Option<Peer> {
    let found = peer("mke2fs");
    if !is_root() {
        skip("mounting needs root");
        return None;
    }
    found
}

fn make(mke2fs: &Peer, options: &str, image: &Path, megabytes: u64) {
    fs::File::create(image).unwrap().set_len(megabytes << 20).unwrap();
    let mut command = mke2fs.command(&[&"-q", &"-F", &"-N2000"]);
    let output = command.args(options.split(' ')).arg(image).output().unwrap();
    assert!(output.status.success(), "{options}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Writes what the filesystem can hold: some attributes and links are too long for it.
fn fill(root: &Path, names: u32, is_mapped: bool) {
    let mut random = Random::new(11);
    for len in [0, 1, 59, 60, 61, 100, 156, 300, 1023, 1024, 1025, 4095, 4096, 4097, 70_000] {
        fs::write(root.join(format!("size-{len}")), random.noise(len)).unwrap();
    }
    holes(root, is_mapped, &mut random);
    links(root);
    fs::create_dir_all(root.join("deep/d1/d2/d3/d4")).unwrap();
    fs::create_dir(root.join("many")).unwrap();
    for index in 0..names {
        let path = root.join(format!("many/a-name-{index}"));
        match index % 20_000 {
            0 => fs::write(path, format!("{index}")).unwrap(),
            _ => fs::hard_link(root.join(format!("many/a-name-{}", index / 20_000 * 20_000)), path).unwrap(),
        }
    }
    for index in (1..names).filter(|index| index % 7 == 0 && index % 20_000 != 0) {
        fs::remove_file(root.join(format!("many/a-name-{index}"))).unwrap();
    }
    // An inode that was used before, and has grown and shrunk since.
    for index in 0..40 {
        fs::write(root.join(format!("again-{index}")), random.noise(2000 * index)).unwrap();
    }
    for index in 0..40 {
        let path = root.join(format!("again-{index}"));
        match index % 3 {
            0 => fs::remove_file(path).unwrap(),
            1 => fs::File::options().write(true).open(path).unwrap().set_len(77).unwrap(),
            _ => fs::File::options().write(true).open(path).unwrap().set_len(200_000).unwrap(),
        }
    }
    special(root);
    attributes(root, &mut random);
    times(root);
    fs::write(root.join("n".repeat(255)), "long name").unwrap();
    fs::write(root.join("new\nline"), "odd name").unwrap();
}

fn holes(root: &Path, is_mapped: bool, random: &mut Random) {
    let file = |name: &str| fs::File::create(root.join(name)).unwrap();
    let sparse = file("sparse");
    for at in [1_000_000, 2_500_000] {
        sparse.write_all_at(&random.noise(10_000), at).unwrap();
    }
    sparse.set_len(3_000_000).unwrap();
    file("hole-only").set_len(1 << 20).unwrap();
    // Behind all double indirect blocks of 1 KiB, if there are any.
    let far = file("far");
    for at in [5000, 300_000, if is_mapped { 68_000_000 } else { 600_000 }] {
        far.write_all_at(b"far away", at).unwrap();
    }
    let large = file("large");
    large.write_all_at(b"more than 32 bits", (4 << 30) + 5).unwrap();
    let many = file("many-extents");
    for index in 0..1500 {
        many.write_all_at(&[index as u8], index * 8192).unwrap();
    }
    // Not with block maps.
    let unwritten = file("unwritten");
    let _ = rustix::fs::fallocate(&unwritten, FallocateFlags::empty(), 0, 1 << 20);
    unwritten.write_all_at(&random.noise(30_000), 300_000).unwrap();
    let behind = file("behind-the-end");
    behind.write_all_at(b"short", 0).unwrap();
    let _ = rustix::fs::fallocate(&behind, FallocateFlags::KEEP_SIZE, 0, 1 << 20);
}

fn links(root: &Path) {
    fs::create_dir(root.join("links")).unwrap();
    for index in 0..40 {
        fs::hard_link(root.join("size-100"), root.join(format!("links/{index}"))).unwrap();
    }
    for len in [1, 59, 60, 61, 200, 900, 4000] {
        let _ = symlink("t".repeat(len), root.join(format!("links/symlink-{len}")));
    }
}

fn special(root: &Path) {
    for (major, minor) in [(1, 3), (8, 255), (8, 256), (259, 300), (0xfff, 0xf_ffff)] {
        let device = rustix::fs::makedev(major, minor);
        let mode = Mode::from_raw_mode(0o640);
        for (name, kind) in [("block", FileType::BlockDevice), ("char", FileType::CharacterDevice)] {
            let path = root.join(format!("{name}-{major}-{minor}"));
            rustix::fs::mknodat(CWD, path, kind, mode, device).unwrap();
        }
    }
    for (name, kind) in [("fifo", FileType::Fifo), ("socket", FileType::Socket)] {
        rustix::fs::mknodat(CWD, root.join(name), kind, Mode::from_raw_mode(0o600), 0).unwrap();
    }
    for (name, mode) in [("set-id", 0o6755), ("sticky", 0o1777), ("none", 0)] {
        let path = root.join(name);
        fs::write(&path, name).unwrap();
        let owner = (Some(Uid::from_raw(70_000)), Some(Gid::from_raw(100_000)));
        rustix::fs::chownat(CWD, &path, owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
}

fn attributes(root: &Path, random: &mut Random) {
    let set = |name: &str, key: &str, value: &[u8]| {
        let path = root.join(name);
        rustix::fs::lsetxattr(&path, key, value, XattrFlags::empty())
    };
    let capability = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for index in 0..4 {
        let name = format!("attributes-{index}");
        fs::write(root.join(&name), "x").unwrap();
        set(&name, "user.small", b"1").unwrap();
        set(&name, "user.empty", b"").unwrap();
        set(&name, "trusted.binary", &[0, 10, 255]).unwrap();
        set(&name, "security.capability", &capability).unwrap();
        // The same for all of them: blocks may be shared.
        set(&name, "user.longer", &[b'v'; 300]).unwrap();
    }
    fs::write(root.join("large-attributes"), "x").unwrap();
    for len in [700, 3000, 60_000] {
        let _ = set("large-attributes", &format!("user.{len}"), &random.noise(len));
    }
    let none = [0xff; 4];
    let entry =
        |tag: u16, rights: u16, id: [u8; 4]| [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id].concat();
    let acl = [
        2_u32.to_le_bytes().to_vec(),
        entry(1, 6, none),
        entry(2, 7, 70_000_u32.to_le_bytes()),
        entry(4, 4, none),
        entry(8, 5, 12_u32.to_le_bytes()),
        entry(0x10, 7, none),
        entry(0x20, 0, none),
    ]
    .concat();
    set("attributes-1", "system.posix_acl_access", &acl).unwrap();
    set("deep", "system.posix_acl_default", &acl).unwrap();
    set("deep/d1", "trusted.on", b"a directory").unwrap();
    set("links/symlink-59", "trusted.on", b"a link").unwrap();
    set("fifo", "trusted.on", b"a fifo").unwrap();
}

fn times(root: &Path) {
    let seconds =
        [-2_147_483_648, -86_400, -1, 0, 2_147_483_647, 2_147_483_648, 4_102_444_800, 15_032_385_535];
    for second in seconds {
        let path = root.join(format!("time{second}"));
        fs::write(&path, "").unwrap();
        let time = Timespec { tv_sec: second, tv_nsec: 123_456_789 };
        let times = Timestamps { last_access: time, last_modification: time };
        rustix::fs::utimensat(CWD, &path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }
}

fn open(image: &Path, opening: Opening) -> packfs_core::Result<Arc<dyn Volume>> {
    let image: Arc<dyn Image> = Arc::new(FileImage::open(image).unwrap());
    let format = packfs_formats::probe(&*image).unwrap().expect("an image of a known format");
    assert_eq!(format.name(), "ext4");
    Ok(format.open_with(image, opening)?.into())
}

fn read(image: &Path, opening: Opening) -> Snapshot {
    let volume = open(image, opening).unwrap();
    let image = volume.data_image().unwrap_or_else(|| Arc::new(FileImage::open(image).unwrap()));
    let engine = ReadEngine::new(image, volume, ReadOptions::default());
    let loaded = engine.load_tree(&packfs_core::Silent).unwrap();
    snapshot_tree(&loaded.tree, &*engine)
}

/// Finds each name by lookup, and compares the space that it takes with Linux.
fn lookups_agree(volume: &dyn Volume, names: &Snapshot, mount: &Path, what: &str) {
    for (index, path) in names.0.keys().enumerate().filter(|(_, path)| !path.is_empty()) {
        // Of many names only some.
        if path.starts_with(b"many/") && index % 50 != 0 {
            continue;
        }
        let mut id: InodeId = volume.root();
        for name in path.split(|byte| *byte == b'/') {
            id = volume.lookup(id, name).unwrap().unwrap_or_else(|| panic!("{what}: {path:?}"));
        }
        let host = mount.join(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(path));
        let (inode, stat) = (volume.inode(id).unwrap(), fs::symlink_metadata(host).unwrap());
        assert_eq!((inode.number, inode.sectors), (stat.ino(), stat.blocks()), "{what}: {path:?}");
    }
    assert_eq!(volume.lookup(volume.root(), b"missing").unwrap(), None);
}

fn agrees(mke2fs: &Peer, (what, options, names): Row, folder: &Path) {
    let image = folder.join(what.replace([' ', ','], "-"));
    make(mke2fs, options, &image, 32);
    let is_mapped = ["-text2", "-text3", "^extent"].iter().any(|word| options.contains(word));
    fill(Writable::new(&image, "rw").path(), names, is_mapped && options.contains("-b1024"));
    let (found, findings) = read_image(&image);
    let mount = Mount::new(&image, "ext4").unwrap_or_else(|said| panic!("{what}: {said}"));
    found.assert_same(&snapshot_dir(&mount.path()), Compare::ALL, what);
    assert_eq!(findings, [], "{what}");
    let volume = open(&image, Opening::default()).unwrap();
    lookups_agree(&*volume, &found, &mount.path(), what);
    assert_eq!(volume.warnings(), [""; 0], "{what}");
    let space = volume.space().unwrap();
    assert_eq!(space.iter().map(|owner| owner.len).sum::<u64>(), image.metadata().unwrap().len(), "{what}");
    drop(mount);
    fs::remove_file(image).unwrap();
}

#[test]
fn agrees_with_the_kernel_on_every_set_of_features() {
    let Some(mke2fs) = mke2fs() else { return };
    let folder = folder();
    std::thread::scope(|scope| {
        for part in 0..2 {
            let (mke2fs, folder) = (&mke2fs, folder.path());
            let rows = ROWS.iter().enumerate().filter(move |(index, _)| index % 2 == part);
            scope.spawn(move || rows.for_each(|(_, row)| agrees(mke2fs, *row, folder)));
        }
    });
}

/// An image with changes in its journal: its name, options of mke2fs, further options of mount.
const UNCLEAN: &[(&str, &str, &str)] = &[
    ("checksums of version 3", "-text4 -b4096", ""),
    ("no checksums", "-text4 -b1024 -O ^64bit,^metadata_csum", ""),
    ("ext3", "-text3 -b1024", ""),
    ("64 bits, no checksums", "-text4 -b1024 -O 64bit,^metadata_csum", ""),
    ("checksums of version 1", "-text4 -b1024 -O ^metadata_csum", "journal_checksum"),
    ("asynchronous commits", "-text4 -b1024", "journal_async_commit,data=writeback"),
    ("data in the journal", "-text4 -b1024", "data=journal"),
    ("data in the journal, 4 KiB", "-text4 -b4096 -O inline_data", "data=journal"),
    ("fast commits", "-text4 -b4096 -O fast_commit", ""),
];

/// Writes a file to the end of the journal.
fn write_synced(path: &Path, bytes: &[u8]) {
    let file = fs::File::options().create(true).append(true).open(path).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file.sync_all().unwrap();
}

/// Leaves changes in the journal, and copies the image while it is mounted.
fn pull_the_plug(image: &Path, options: &str, copies: &[(&Path, &Path)]) {
    let mount = Writable::new(image, &format!("{STILL},{options}"));
    let root = mount.path();
    fs::create_dir(root.join("old")).unwrap();
    for index in 0..200 {
        fs::write(root.join(format!("old/{index}")), vec![index as u8; 3000]).unwrap();
    }
    rustix::fs::syncfs(fs::File::open(root).unwrap()).unwrap();
    for index in 0..100 {
        fs::remove_file(root.join(format!("old/{index}"))).unwrap();
    }
    fs::create_dir(root.join("new")).unwrap();
    // Blocks that begin like those of the journal itself.
    let escaped = [&[0xc0, 0x3b, 0x39, 0x98][..], &[7; 5000]].concat();
    for index in 0..50 {
        fs::write(root.join(format!("new/{index}")), &escaped).unwrap();
    }
    write_synced(&root.join("new/first"), &escaped);
    // Blocks of directories become blocks of data.
    fs::remove_dir_all(root.join("new")).unwrap();
    write_synced(&root.join("old/150"), &vec![1; 100_000]);
    for index in 0..4 {
        write_synced(&root.join(format!("old/late-{index}")), &escaped);
    }
    write_synced(&root.join("old/151"), b"more than before");
    for (from, to) in copies {
        fs::copy(from, to).unwrap();
    }
}

/// Linux sets times of directories that a fast commit changed.
fn without_times_of_dirs(mut snapshot: Snapshot) -> Snapshot {
    for row in snapshot.0.values_mut().filter(|row| row.file_type == Kind::Directory) {
        row.mtime = Timestamp::default();
    }
    snapshot
}

#[test]
fn journals_are_replayed_as_by_the_kernel() {
    let Some(mke2fs) = mke2fs() else { return };
    let folder = folder();
    let (image, copy) = (folder.path().join("image"), folder.path().join("copy"));
    for (what, options, mount_options) in UNCLEAN {
        make(&mke2fs, options, &image, 16);
        pull_the_plug(&image, mount_options, &[(&image, &copy)]);
        let found = read(&copy, Opening::default());
        let warnings = open(&copy, Opening::default()).unwrap().warnings();
        assert!(warnings[0].contains("journal replayed in memory"), "{what}: {warnings:?}");
        assert_eq!(what.contains("fast"), warnings[0].contains("fast commit"), "{what}: {warnings:?}");
        let before = read(&copy, Opening { no_journal: true, ..Opening::default() });
        assert!(!before.0.contains_key(&b"old/late-3"[..]) || before != found, "{what}");
        let wanted = snapshot_dir(Writable::new(&copy, "rw").path());
        let compare = Compare { root: false, ..Compare::ALL };
        if what.contains("fast") {
            let found = without_times_of_dirs(found);
            found.assert_same(&without_times_of_dirs(wanted), compare, what);
        } else {
            found.assert_same(&wanted, Compare::ALL, what)
        }
    }
}

/// Changes that fast commits describe: inodes used again, names, lengths.
fn change_fast(root: &Path) {
    let mut random = Random::new(5);
    for index in 0..20 {
        fs::write(root.join(format!("old-{index}")), random.noise(20_000)).unwrap();
    }
    rustix::fs::syncfs(fs::File::open(root).unwrap()).unwrap();
    for index in 0..5 {
        fs::remove_file(root.join(format!("old-{index}"))).unwrap();
        let again = fs::File::create(root.join(format!("again-{index}"))).unwrap();
        again.set_len(if index == 0 { 0 } else { 50_000 }).unwrap();
        again.sync_all().unwrap();
    }
    fs::rename(root.join("old-10"), root.join("old-11")).unwrap();
    fs::File::options().write(true).open(root.join("old-12")).unwrap().set_len(5000).unwrap();
    fs::hard_link(root.join("old-13"), root.join("linked")).unwrap();
    fs::remove_file(root.join("old-14")).unwrap();
    fs::create_dir(root.join("dir")).unwrap();
    write_synced(&root.join("dir/file"), &random.noise(10_000));
    fs::remove_file(root.join("old-15")).unwrap();
    for name in ["old-11", "old-12", "linked"] {
        fs::File::open(root.join(name)).unwrap().sync_all().unwrap();
    }
}

#[test]
fn fast_commits_are_replayed_as_by_the_kernel() {
    let Some(mke2fs) = mke2fs() else { return };
    let folder = folder();
    let (image, copy) = (folder.path().join("image"), folder.path().join("copy"));
    make(&mke2fs, "-text4 -b4096 -O fast_commit", &image, 16);
    let mount = Writable::new(&image, STILL);
    change_fast(mount.path());
    let wanted = snapshot_dir(mount.path());
    fs::copy(&image, &copy).unwrap();
    drop(mount);
    let warnings = open(&copy, Opening::default()).unwrap().warnings();
    assert!(warnings[0].contains("fast commit") && warnings.len() == 1, "{warnings:?}");
    let found = without_times_of_dirs(read(&copy, Opening::default()));
    let compare = Compare { root: false, ..Compare::ALL };
    found.assert_same(&without_times_of_dirs(wanted), compare, "as before the crash");
    let replayed = without_times_of_dirs(snapshot_dir(Writable::new(&copy, "rw").path()));
    // Linux miscounts the links of directories that a fast commit made.
    found.assert_same(&replayed, Compare { dir_links: false, ..compare }, "as Linux replays it");
}

/// Makes a filesystem that crashed after it grew: all that the growth changed is in its journal.
fn crash_while_growing(mke2fs: &Peer, resize2fs: &Peer, debugfs: &Peer, options: &str, image: &Path) {
    let folder = folder();
    let [blocks, script] = ["blocks", "script"].map(|name| folder.path().join(name));
    make(mke2fs, options, image, 8);
    fs::write(Writable::new(image, "rw").path().join("file"), [1; 5000]).unwrap();
    fs::File::options().write(true).open(image).unwrap().set_len(32 << 20).unwrap();
    let before = fs::read(image).unwrap();
    // Without -f, resize2fs asks for e2fsck once the clock has moved on since mke2fs.
    resize2fs.run(&[&"-f", &image]);
    let grown = fs::read(image).unwrap();
    let pairs = grown.chunks(1024).zip(before.chunks(1024)).enumerate();
    let changed: Vec<usize> = pairs.filter(|(_, pair)| pair.0 != pair.1).map(|(number, _)| number).collect();
    let rows: Vec<&[u8]> = changed.iter().map(|number| &grown[number * 1024..][..1024]).collect();
    fs::write(&blocks, rows.concat()).unwrap();
    let list = changed.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    fs::write(&script, format!("jo\njw -b {list} {}\njc\n", blocks.display())).unwrap();
    debugfs.run(&[&"-w", &"-f", &script, &image]);
    let file = fs::File::options().write(true).open(image).unwrap();
    for number in changed {
        let mut row = before[number * 1024..][..1024].to_vec();
        // The superblock needs recovery.
        row[0x60] |= if number == 1 { 4 } else { 0 };
        file.write_all_at(&row, number as u64 * 1024).unwrap();
    }
}

#[test]
fn a_crash_after_the_filesystem_grew_is_replayed() {
    let (Some(mke2fs), Some(resize2fs), Some(debugfs)) = (mke2fs(), peer("resize2fs"), peer("debugfs"))
    else {
        return;
    };
    let folder = folder();
    let image = folder.path().join("image");
    for options in ["-g2048", "-g1024 -O meta_bg,^resize_inode", "-g1024 -O ^resize_inode -E resize=16384"] {
        let options = format!("-text4 -b1024 {options} -O ^metadata_csum");
        crash_while_growing(&mke2fs, &resize2fs, &debugfs, &options, &image);
        let old = open(&image, Opening { no_journal: true, ..Opening::default() }).unwrap();
        let volume = open(&image, Opening::default()).unwrap();
        assert_eq!([old.image_len(), volume.image_len()], [Some(8 << 20), Some(32 << 20)], "{options}");
        assert_eq!(volume.warnings().len(), 1, "{:?}", volume.warnings());
        let (found, findings) = read_image(&image);
        assert_eq!(findings, [], "{options}");
        found.assert_same(&snapshot_dir(Writable::new(&image, "rw").path()), Compare::ALL, &options);
    }
}

/// Groups behind `first_meta_bg` have no copies of the descriptors in front.
#[test]
fn meta_groups_behind_others_are_sound() {
    let (Some(mke2fs), Some(debugfs), Some(e2fsck)) = (mke2fs(), peer("debugfs"), peer("e2fsck")) else {
        return;
    };
    let folder = folder();
    let image = folder.path().join("image");
    make(&mke2fs, "-text4 -b1024 -g256 -O meta_bg,^resize_inode,^64bit,^metadata_csum", &image, 32);
    debugfs.run(&[&"-w", &"-R", &"ssv first_meta_bg 1", &image]);
    // Repairs the bitmaps: groups 3, 5, 7 have copies now, groups 31 and 32 have those of others.
    e2fsck.command(&[&"-fy", &image]).output().unwrap();
    e2fsck.run(&[&"-fn", &image]);
    fs::write(Writable::new(&image, "rw").path().join("file"), [1; 50_000]).unwrap();
    let (found, findings) = read_image(&image);
    assert_eq!(findings, []);
    found.assert_same(&snapshot_dir(Writable::new(&image, "ro").path()), Compare::ALL, "meta groups");
}

#[test]
fn a_check_goes_on_where_a_group_is_damaged() {
    let Some(mke2fs) = mke2fs() else { return };
    let folder = folder();
    let image = folder.path().join("image");
    make(&mke2fs, "-text4 -b1024 -g1024 -O ^metadata_csum,^uninit_bg,^64bit,^flex_bg", &image, 16);
    let mut bytes = fs::read(&image).unwrap();
    // The table of group 5, and the first bits of the bitmap of group 9.
    bytes[2048 + 5 * 32 + 8..][..4].copy_from_slice(&[0xff; 4]);
    fs::write(&image, &bytes).unwrap();
    let findings = |path: &Path| {
        let mut found = Vec::new();
        let volume = open(path, Opening::default()).unwrap();
        volume.check(&mut |finding| found.push(format!("{finding:?}"))).unwrap();
        found
    };
    let found = findings(&image);
    assert!(found.len() == 1 && found[0].contains("inode table at block 4294967295"), "{found:?}");
    fs::File::options().write(true).open(&image).unwrap().set_len(5 << 20).unwrap();
    let found = findings(&image);
    assert!(found.len() < 5 && found[0].contains("but the image has 5242880"), "{found:?}");
}

#[test]
fn damaged_hash_trees_are_found_as_by_e2fsck() {
    let (Some(mke2fs), Some(e2fsck)) = (mke2fs(), peer("e2fsck")) else { return };
    let folder = folder();
    let image = folder.path().join("image");
    make(
        &mke2fs,
        "-text4 -b1024 -O ^metadata_csum,^has_journal -E hash_seed=6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        &image,
        8,
    );
    let mount = Writable::new(&image, "rw");
    fs::create_dir(mount.path().join("many")).unwrap();
    for index in 0..800 {
        fs::write(mount.path().join(format!("many/a-rather-long-name-{index}")), "").unwrap();
    }
    drop(mount);
    let sound = fs::read(&image).unwrap();
    // The root of the tree: `.` and `..`, and 8 bytes that describe it.
    let is_root = |block: &[u8]| block[4..6] == [12, 0] && block[0x18..0x1c] == [0; 4] && block[0x1d] == 8;
    let root = sound.chunks(1024).position(is_root).unwrap() * 1024;
    let rows: [(usize, &[u8], &str); 7] = [
        (0x1c, &[7], "an unknown hash function"),
        (0x1e, &[3], "more levels than Linux reads"),
        (0x20, &[9], "another number of rows"),
        (0x22, &[0, 0], "another number of rows"),
        (0x24, &[0, 1], "a block outside of the directory"),
        (0x2c, &[1, 0, 0, 0], "two ways to a block"),
        (0x28, &[0xff; 4], "hashes out of order"),
    ];
    let check = |bytes: &[u8]| {
        fs::write(&image, bytes).unwrap();
        let mut found = Vec::new();
        let volume = open(&image, Opening::default()).unwrap();
        volume.check(&mut |finding| found.push(finding.fault)).unwrap();
        (found, e2fsck.command(&[&"-fn", &image]).output().unwrap().status.success())
    };
    assert_eq!(check(&sound), (vec![], true));
    for (at, new, wanted) in rows {
        let mut damaged = sound.clone();
        damaged[root + at..][..new.len()].copy_from_slice(new);
        let (found, is_sound) = check(&damaged);
        assert!(found.iter().any(|fault| fault.contains(wanted)), "{wanted}: {found:?}");
        assert!(!is_sound, "{wanted}");
    }
}

#[test]
fn a_journal_on_another_device_is_found_by_its_uuid() {
    let Some(mke2fs) = mke2fs() else { return };
    let folder = folder();
    let [image, copy, journal, other] =
        ["image", "copy", "journal", "other"].map(|name| folder.path().join(name));
    make(&mke2fs, "-b4096 -O journal_dev", &journal, 8);
    make(&mke2fs, "-b4096 -O journal_dev", &other, 8);
    let device = LoopDevice::new(&journal).unwrap();
    make(&mke2fs, &format!("-text4 -b4096 -J device={}", device.path().display()), &image, 16);
    let saved = folder.path().join("saved");
    pull_the_plug(&image, "rw", &[(&image, &copy), (&journal, &saved)]);
    let open_device = |path: &Path| Arc::new(FileImage::open(path).unwrap()) as Arc<dyn Image>;
    let without = open(&copy, Opening::default()).err().unwrap();
    assert_eq!(without.kind(), ErrorKind::Unsupported);
    assert!(without.to_string().contains("the journal is on another device"), "{without}");
    assert!(without.hints().iter().any(|hint| hint.contains("--device")), "{:?}", without.hints());
    assert!(without.hints().iter().any(|hint| hint.contains("--no-journal")), "{:?}", without.hints());
    let wrong = Opening { devices: vec![open_device(&other)], ..Opening::default() };
    assert!(open(&copy, wrong).is_err());
    open(&copy, Opening { no_journal: true, ..Opening::default() }).unwrap();
    let devices = vec![open_device(&other), open_device(&saved)];
    let found = read(&copy, Opening { devices, ..Opening::default() });
    drop(device);
    assert!(found.0.contains_key(&b"old/late-3"[..]) && !found.0.contains_key(&b"old/99"[..]));
    let alone = open(&saved, Opening::default()).err().unwrap();
    assert!(alone.to_string().contains("the journal of another filesystem"), "{alone}");
}

/// Transactions that debugfs writes: features, options of `jo`, and commands. Its checksums of
/// version 1 are wrong if a transaction only revokes blocks.
const WRITTEN: &[(&str, &str, &str)] = &[
    ("^64bit,^metadata_csum", "", "jw -b 3000-3003 BLOCKS\njw -r 3001\njw -b 3002 BLOCKS\n"),
    ("64bit,^metadata_csum", "", "jw -b 3000-3003 BLOCKS\njw -r 3001\njw -b 3002 BLOCKS\n"),
    ("64bit,^metadata_csum", "-c", "jw -b 3000-3003 BLOCKS\njw -b 3001 BLOCKS\n"),
    ("64bit,metadata_csum", "-c -v 2", "jw -b 3000-3003 BLOCKS\njw -r 3001\njw -b 3002 BLOCKS\n"),
    ("^64bit,metadata_csum", "-c -v 2", "jw -b 3000-3003 BLOCKS\njw -r 3001\njw -b 3002 BLOCKS\n"),
    ("64bit,metadata_csum", "-c -v 3", "jw -b 3000-3003 BLOCKS\njw -r 3000,3001,3002\njw -b 3002 BLOCKS\n"),
    ("^64bit,metadata_csum", "-c -v 3", "jw -b 3000-3003 BLOCKS\njw -b 3001 BLOCKS\njw -b 3002 -c BLOCKS\n"),
];

#[test]
fn transactions_of_every_version_are_replayed_as_by_e2fsck() {
    let (Some(mke2fs), Some(debugfs), Some(e2fsck)) = (mke2fs(), peer("debugfs"), peer("e2fsck")) else {
        return;
    };
    let folder = folder();
    let [image, blocks, script] = ["image", "blocks", "script"].map(|name| folder.path().join(name));
    let escaped = [&[0xc0, 0x3b, 0x39, 0x98][..], &[9; 1020]].concat();
    fs::write(&blocks, [&[1; 1024][..], &escaped, &[2; 1024], &[3; 1024]].concat()).unwrap();
    for (features, options, commands) in WRITTEN {
        let what = format!("{features} {options}");
        make(&mke2fs, &format!("-text4 -b1024 -O {features}"), &image, 8);
        let commands = commands.replace("BLOCKS", blocks.to_str().unwrap());
        fs::write(&script, format!("jo {options}\n{commands}jc\n")).unwrap();
        debugfs.run(&[&"-w", &"-f", &script, &image]);
        let volume = open(&image, Opening::default()).unwrap_or_else(|error| panic!("{what}: {error}"));
        let mut found = vec![0; 8 << 20];
        let data = volume.data_image().unwrap_or_else(|| panic!("{what}: nothing was replayed"));
        data.read_exact_at(0, &mut found).unwrap();
        e2fsck.run(&[&"-E", &"journal_only", &"-p", &image]);
        let wanted = fs::read(&image).unwrap();
        // The superblock, and the log itself, tell of the replay.
        let range = 3000 * 1024..3004 * 1024;
        assert_eq!(found[range.clone()], wanted[range.clone()], "{what}");
        assert!(wanted[range].iter().any(|byte| *byte != 0), "{what}");
    }
}
