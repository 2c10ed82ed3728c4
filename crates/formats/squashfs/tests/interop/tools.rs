//! Images of other programs, read by packfs: the same names, facts and bytes as the source and
//! the kernel's mount.

use crate::support::{contents, entries, open_file, snapshot_volume};
use packfs_format::{DirCursor, Severity, Volume};
use packfs_testkit::{Compare, Mount, Peer, Random, is_root, odd_tree, peer, peer_since, skip};
use packfs_testkit::{snapshot_dir, write_dir};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const CODECS: [&str; 5] = ["gzip", "xz", "lz4", "zstd", "lzo"];

/// A directory of odd things, and one of many entries.
fn source(scratch: &Path, block_len: usize, many_entries: usize) -> PathBuf {
    let root = scratch.join("source");
    let (tree, contents) = odd_tree(block_len, is_root());
    std::fs::create_dir(&root).unwrap();
    write_dir(&tree, &contents, &root);
    let many = root.join("very-many");
    std::fs::create_dir(&many).unwrap();
    for index in 0..many_entries {
        std::fs::write(many.join(format!("{index}")), []).unwrap();
    }
    root
}

/// Compares an image with its source, with the kernel, and with itself.
fn judge(image: &Path, source: &Path, compare: Compare, what: &str) {
    let (bytes, volume) = open_file(image);
    let volume = &*volume;
    let ours = snapshot_volume(volume, &bytes);
    let theirs = snapshot_dir(source);
    ours.assert_same(&theirs, compare, what);
    if bytes.len() % 512 != 0 {
        // A loop device has whole sectors only, so the kernel misses the image's end.
    } else if is_root() {
        match Mount::new(image, "squashfs") {
            Ok(mount) => {
                let all = Compare::default();
                ours.assert_same(&snapshot_dir(&mount.path()), all, &format!("{what}, kernel"));
            }
            Err(why) => skip(&format!("the kernel's mount of {what}: {why}")),
        }
    } else {
        skip("the kernel's mount needs root");
    }
    lists_and_finds_the_same(volume, what);
    reads_ranges_as_the_whole(volume, &bytes, what);
    finds_no_fault(volume, what);
    let space = volume.space().unwrap();
    let mut end = 0;
    for owner in &space {
        assert_eq!(owner.offset, end, "{what}: {owner:?}");
        end += owner.len;
    }
    assert_eq!(end, bytes.len() as u64, "{what}");
    let unused: u64 = space.iter().filter(|owner| owner.owner == "unused").map(|owner| owner.len).sum();
    assert_eq!(unused, 0, "{what}: {space:?}");
}

/// Reading a directory in parts and looking names up gives what listing it whole gives.
fn lists_and_finds_the_same(volume: &dyn Volume, what: &str) {
    for name in ["very-many", "many", "names", "empty-dir"] {
        let Some(dir) = volume.lookup(volume.root(), name.as_bytes()).unwrap() else { continue };
        let all = entries(volume, dir, DirCursor::default());
        let mut parts = Vec::new();
        let mut from = DirCursor::default();
        loop {
            let start = parts.len();
            let visit = &mut |entry: packfs_format::DirEntry, after| {
                parts.push((entry.name, entry.id, after));
                if parts.len() - start == 77 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            volume.read_dir(dir, from, visit).unwrap();
            match parts.last() {
                Some(last) if parts.len() > start => from = last.2,
                _ => break,
            }
        }
        assert_eq!(parts, all, "{what}: {name}");
        for (name, id, _) in all.iter().step_by(7) {
            assert_eq!(volume.lookup(dir, name).unwrap(), Some(*id), "{what}");
        }
        for missing in [&b"!!"[..], b"17x", b"\xff\xff\xff", b"nobody"] {
            assert_eq!(volume.lookup(dir, missing).unwrap(), None, "{what}: {missing:?}");
        }
    }
}

fn reads_ranges_as_the_whole(volume: &dyn Volume, image: &[u8], what: &str) {
    for dir in ["sizes", "holes"] {
        let dir = volume.lookup(volume.root(), dir.as_bytes()).unwrap().unwrap();
        for (name, id, _) in entries(volume, dir, DirCursor::default()) {
            let whole = contents(volume, image, id, 0..u64::MAX);
            let len = whole.len();
            for (start, end) in
                [(0, 1), (len / 2, len), (len / 3, len / 3 * 2), (len.saturating_sub(1), len + 9)]
            {
                let part = contents(volume, image, id, start as u64..end as u64);
                assert!(part == whole[start.min(len)..end.min(len)], "{what}: {name:?} {start}..{end}");
            }
        }
    }
}

fn finds_no_fault(volume: &dyn Volume, what: &str) {
    let mut faults = Vec::new();
    volume
        .check(&mut |finding| {
            if finding.severity > Severity::Note {
                faults.push(finding);
            }
        })
        .unwrap();
    assert!(faults.is_empty(), "{what}: {faults:#?}");
}

fn mksquashfs(tool: &Peer, source: &Path, image: &Path, options: &[&str]) {
    let mut arguments: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&source, &image, &"-noappend", &"-quiet"];
    arguments.push(&"-no-progress");
    arguments.extend(options.iter().map(|option| option as &dyn AsRef<std::ffi::OsStr>));
    tool.run(&arguments);
}

/// Older ones split hard links to symbolic links: they have a test of their own. Large blocks take
/// quick codecs only, because most of the time is that of mksquashfs.
#[test]
fn reads_what_mksquashfs_writes_with_every_codec_and_block_size() {
    let Some(tool) = peer_since("mksquashfs", "4.7") else { return };
    let quick_zstd = &["-comp", "zstd", "-Xcompression-level", "1"][..];
    let options = [
        (4096, &CODECS.map(|codec| vec!["-comp", codec])[..]),
        (131_072, &[vec!["-comp", "lz4"], quick_zstd.to_vec()]),
        (1_048_576, &[quick_zstd.to_vec()]),
    ];
    for (block_len, options) in options {
        let scratch = tempfile::tempdir().unwrap();
        let source = source(scratch.path(), block_len, 500);
        for option in options {
            let image = scratch.path().join("image");
            mksquashfs(&tool, &source, &image, &[&option[..], &["-b", &block_len.to_string()]].concat());
            judge(&image, &source, Compare::default(), &format!("mksquashfs {option:?} -b {block_len}"));
        }
    }
}

#[test]
fn reads_what_mksquashfs_writes_of_a_long_directory() {
    let Some(tool) = peer_since("mksquashfs", "4.7") else { return };
    let scratch = tempfile::tempdir().unwrap();
    let source = source(scratch.path(), 4096, 20_000);
    let image = scratch.path().join("image");
    mksquashfs(&tool, &source, &image, &["-b", "4096"]);
    judge(&image, &source, Compare::default(), "mksquashfs of a long directory");
}

#[test]
fn reads_what_mksquashfs_writes_with_every_layout() {
    let Some(tool) = peer_since("mksquashfs", "4.7") else { return };
    let scratch = tempfile::tempdir().unwrap();
    let source = source(scratch.path(), 4096, 1000);
    let layouts: [&[&str]; 11] = [
        &["-noI", "-noD", "-noF", "-noX"],
        &["-noD"],
        &["-noF"],
        &["-no-fragments"],
        &["-always-use-fragments"],
        &["-no-duplicates", "-no-exports"],
        &["-no-sparse"],
        &["-nopad"],
        &["-comp", "xz", "-Xbcj", "x86,arm", "-Xdict-size", "75%", "-b", "128K"],
        &[
            "-comp",
            "gzip",
            "-Xcompression-level",
            "1",
            "-Xwindow-size",
            "9",
            "-Xstrategy",
            "run_length_encoded",
        ],
        &["-comp", "lz4", "-Xhc"],
    ];
    for layout in layouts {
        let image = scratch.path().join("image");
        mksquashfs(&tool, &source, &image, &[&["-b", "4096"], layout].concat());
        judge(&image, &source, Compare::default(), &format!("mksquashfs {layout:?}"));
    }
}

#[test]
fn reads_what_older_mksquashfs_writes() {
    let path = Path::new("/usr/bin/mksquashfs");
    if !path.is_file() {
        return skip("/usr/bin/mksquashfs is missing");
    }
    let scratch = tempfile::tempdir().unwrap();
    let source = source(scratch.path(), 131_072, 1000);
    for codec in CODECS {
        let image = scratch.path().join(codec);
        let mut command = Command::new(path);
        command.arg(&source).arg(&image).args(["-noappend", "-quiet", "-no-progress", "-comp", codec]);
        assert!(command.output().unwrap().status.success());
        // It splits hard links to symlinks.
        let compare = Compare { hard_links: false, ..Compare::default() };
        judge(&image, &source, compare, &format!("installed mksquashfs -comp {codec}"));
    }
}

#[test]
fn reads_what_was_appended_to() {
    let Some(tool) = peer("mksquashfs") else { return };
    let scratch = tempfile::tempdir().unwrap();
    let source = source(scratch.path(), 4096, 1000);
    let image = scratch.path().join("image");
    mksquashfs(&tool, &source, &image, &["-b", "4096", "-no-recovery"]);
    std::fs::write(source.join("appended"), vec![7; 10_000]).unwrap();
    let more = scratch.path().join("more");
    std::fs::create_dir(&more).unwrap();
    std::fs::rename(source.join("appended"), more.join("appended")).unwrap();
    tool.run(&[&more, &image, &"-quiet", &"-no-progress", &"-no-recovery", &"-keep-as-directory"]);
    let (bytes, volume) = open_file(&image);
    let dir = volume.lookup(volume.root(), b"more").unwrap().unwrap();
    let file = volume.lookup(dir, b"appended").unwrap().unwrap();
    assert_eq!(contents(&*volume, &bytes, file, 0..u64::MAX), vec![7; 10_000]);
    finds_no_fault(&*volume, "appended image");
}

#[test]
fn reads_streamed_images_with_the_superblock_at_their_end() {
    let Some(tool) = peer_since("mksquashfs", "4.7") else { return };
    let scratch = tempfile::tempdir().unwrap();
    let source = source(scratch.path(), 131_072, 1000);
    let image = scratch.path().join("image");
    for nopad in [false, true] {
        let out = std::fs::File::create(&image).unwrap();
        let mut arguments: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&source, &"-", &"-stream", &"-quiet"];
        if nopad {
            arguments.push(&"-nopad");
        }
        let mut command = tool.command(&arguments);
        let done = command.stdout(out).stderr(Stdio::piped()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let (bytes, volume) = open_file(&image);
        assert_eq!(&bytes[..4], b"HSQS");
        let ours = snapshot_volume(&*volume, &bytes);
        ours.assert_same(&snapshot_dir(&source), Compare::default(), "streamed");
        finds_no_fault(&*volume, "streamed");
        let space = volume.space().unwrap();
        assert_eq!(space.iter().map(|owner| owner.len).sum::<u64>(), bytes.len() as u64);
    }
}

/// Properties of a tar that these tools keep: no attributes, no hard links to special files.
/// tar2sqfs counts every entry of a directory as a link to it.
fn tar_compare() -> Compare {
    Compare { xattrs: false, root: false, hard_links: false, ..Compare::default() }
}

fn tar(source: &Path, to: &Path) {
    // Sockets are beyond tar.
    std::fs::remove_file(source.join("socket")).unwrap();
    let _ = std::fs::remove_file(source.join("xattrs/socket"));
    let mut command = Command::new("tar");
    command.arg("--format=posix").arg("-C").arg(source).arg("-cf").arg(to).arg(".");
    assert!(command.output().unwrap().status.success());
}

#[test]
fn reads_what_sqfstar_writes() {
    let Some(tool) = peer("sqfstar") else { return };
    let scratch = tempfile::tempdir().unwrap();
    let source = source(scratch.path(), 4096, 1000);
    let archive = scratch.path().join("archive.tar");
    tar(&source, &archive);
    for codec in CODECS {
        let image = scratch.path().join(codec);
        let mut command =
            tool.command(&[&"-quiet", &"-no-progress", &"-b", &"4096", &"-comp", &codec, &image]);
        let input = std::fs::File::open(&archive).unwrap();
        assert!(command.stdin(input).output().unwrap().status.success());
        judge(&image, &source, tar_compare(), &format!("sqfstar -comp {codec}"));
    }
}

#[test]
fn reads_what_tar2sqfs_writes() {
    let Some(tool) = peer("tar2sqfs") else { return };
    let scratch = tempfile::tempdir().unwrap();
    let source = source(scratch.path(), 4096, 1000);
    let archive = scratch.path().join("archive.tar");
    tar(&source, &archive);
    for codec in CODECS {
        let image = scratch.path().join(codec);
        let mut command = tool.command(&[&"-q", &"-f", &"-b", &"4096", &"-c", &codec, &image]);
        let input = std::fs::File::open(&archive).unwrap();
        let done = command.stdin(input).output().unwrap();
        if !done.status.success() {
            skip(&format!("tar2sqfs -c {codec}: {}", String::from_utf8_lossy(&done.stderr)));
            continue;
        }
        judge(&image, &source, tar_compare(), &format!("tar2sqfs -c {codec}"));
    }
}

#[test]
fn reads_what_gensquashfs_writes() {
    let Some(tool) = peer("gensquashfs") else { return };
    let scratch = tempfile::tempdir().unwrap();
    let source = source(scratch.path(), 4096, 1000);
    let options: [&[&str]; 8] = [
        &["-c", "gzip", "-e"],
        &["-c", "xz", "-b", "4096", "-e"],
        &["-c", "lz4", "-b", "4096"],
        &["-c", "zstd", "-b", "4096"],
        &["-c", "gzip", "-b", "4096", "-e"],
        &["-c", "gzip", "-b", "4096", "-T"],
        &["-c", "zstd", "-b", "1048576", "-e"],
        &["-c", "lzo", "-b", "4096"],
    ];
    for option in options {
        let image = scratch.path().join("image");
        let mut arguments: Vec<&dyn AsRef<std::ffi::OsStr>> =
            vec![&"-q", &"-f", &"-k", &"-x", &"-D", &source];
        arguments.extend(option.iter().map(|option| option as &dyn AsRef<std::ffi::OsStr>));
        arguments.push(&image);
        let done = tool.command(&arguments).output().unwrap();
        if !done.status.success() {
            skip(&format!("gensquashfs {option:?}: {}", String::from_utf8_lossy(&done.stderr)));
            continue;
        }
        // It splits hard links, counts every entry of a directory as a link to it, and drops empty
        // attributes.
        let compare = Compare { root: false, hard_links: false, xattrs: false, ..Compare::default() };
        judge(&image, &source, compare, &format!("gensquashfs {option:?}"));
    }
}

#[test]
fn reads_anywhere_in_large_files() {
    // Older ones read the whole hole.
    let Some(tool) = peer_since("mksquashfs", "4.7") else { return };
    let scratch = tempfile::tempdir().unwrap();
    let source = scratch.path().join("source");
    std::fs::create_dir(&source).unwrap();
    // Every word is its own number, so each block differs; every seventh block of the first half is
    // a hole.
    let mut bytes: Vec<u8> = (0..5_000_000u32).flat_map(u32::to_le_bytes).collect();
    let half = bytes.len() / 2;
    for block in bytes[..half].chunks_mut(4096).step_by(7) {
        block.fill(0);
    }
    std::fs::write(source.join("numbers"), &bytes).unwrap();
    std::fs::File::create(source.join("hole")).unwrap().set_len(100 << 30).unwrap();
    let image = scratch.path().join("image");
    mksquashfs(&tool, &source, &image, &["-b", "4096", "-comp", "lz4"]);
    let (stored, volume) = open_file(&image);
    let numbers = volume.lookup(volume.root(), b"numbers").unwrap().unwrap();
    let mut random = Random::new(3);
    for attempt in 0..500 {
        let start = random.below(bytes.len() as u64) as usize;
        let end = (start + random.below(20_000) as usize).min(bytes.len());
        let part = contents(&*volume, &stored, numbers, start as u64..end as u64);
        assert!(part == bytes[start..end], "attempt {attempt}: {start}..{end}");
    }
    let hole = volume.lookup(volume.root(), b"hole").unwrap().unwrap();
    let mut extents = Vec::new();
    let visit = &mut |extent: packfs_format::Extent| {
        extents.push((extent.offset, extent.len, extent.from));
        ControlFlow::Continue(())
    };
    volume.extents(hole, 0..u64::MAX, visit).unwrap();
    assert_eq!(extents, [(0, 100 << 30, packfs_format::ExtentFrom::Hole)]);
    finds_no_fault(&*volume, "large files");
}
