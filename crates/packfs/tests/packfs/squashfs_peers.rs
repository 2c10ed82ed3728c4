//! Other people's readers agree with what packfs writes, and packfs with what other people's
//! packers write: on a tree of odd things, and on a whole Debian root where one is at hand.

use crate::common::{Wish, corpus, read_image, squash};
use packfs_core::Silent;
use packfs_source::{Shape, load_dir};
use packfs_testkit::{
    Compare, Mount, Peer, Snapshot, is_root, odd_tree, peer, skip, snapshot_dir, snapshot_tree, write_dir,
};
use std::path::{Path, PathBuf};
use std::process::Command;

const CODECS: [&str; 5] = ["gzip", "lzo", "lz4", "xz", "zstd"];
const BLOCK_LENS: [u32; 3] = [4096, 128 << 10, 1 << 20];

/// Asserts that the independent readers of this machine agree on an image.
fn readers_agree(image: &Path, expected: &Snapshot, what: &str) {
    let folder = tempfile::tempdir().unwrap();
    if let Some(unsquashfs) = peer("unsquashfs") {
        let to = folder.path().join("unsquashfs");
        unsquashfs.run(&[&"-d", &to, &"-no-progress", &"-quiet", &image]);
        expected.assert_same(&snapshot_dir(&to), Compare::default(), &format!("{what}: unsquashfs"));
    }
    if let Some(rdsquashfs) = peer("rdsquashfs") {
        let to = folder.path().join("rdsquashfs");
        std::fs::create_dir(&to).unwrap();
        rdsquashfs.run(&[&"-q", &"-X", &"-T", &"-C", &"-O", &"-u", &"/", &"-p", &to, &image]);
        // It splits hard links, loses capabilities to its own chown, and leaves the target
        // directory as it found it.
        let compare = Compare { hard_links: false, xattrs: false, root: false, ..Compare::default() };
        expected.assert_same(&snapshot_dir(&to), compare, &format!("{what}: rdsquashfs"));
    }
    if let Some(squashfuse) = peer("squashfuse") {
        let mount = Mount::fuse(&squashfuse, image).unwrap();
        // It gives every name an inode number of its own, and takes an attribute for another whose
        // name starts like it.
        let compare = Compare { hard_links: false, xattrs: false, ..Compare::default() };
        expected.assert_same(&snapshot_dir(&mount.path()), compare, &format!("{what}: squashfuse"));
    }
    let mount = Mount::new(image, "squashfs").unwrap();
    expected.assert_same(&snapshot_dir(&mount.path()), Compare::default(), &format!("{what}: kernel"));
}

#[test]
fn readers_agree_on_the_odd_tree() {
    if !is_root() {
        return skip("mounting and owners need root");
    }
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = odd_tree(16 << 10, true);
    let expected = snapshot_tree(&tree, &contents);
    for codec in CODECS {
        let wish = Wish { codec, block_len: 16 << 10, ..Wish::default() };
        let image = squash(&tree, &contents, wish, folder.path(), codec);
        readers_agree(&image, &expected, codec);
    }
    for options in
        [&[("fragments", "always"), ("exports", "off")][..], &[("fragments", "off"), ("uncompressed", "all")]]
    {
        let wish = Wish { block_len: 16 << 10, options, ..Wish::default() };
        let image = squash(&tree, &contents, wish, folder.path(), "options");
        readers_agree(&image, &expected, &format!("{options:?}"));
    }
}

#[test]
fn readers_agree_on_a_debian_root() {
    let Some(debian) = corpus("debian").filter(|_| is_root()) else {
        return skip("a Debian root needs root and `cargo xtask corpus debian`");
    };
    let folder = tempfile::tempdir().unwrap();
    let expected = snapshot_dir(&debian);
    let loaded = load_dir(&debian, &Shape::default(), &Silent).unwrap();
    // The fastest levels: readers cannot tell how hard an encoder tried. Other codecs are those of
    // the odd tree.
    for codec in ["gzip:1", "zstd:1"] {
        let wish = Wish { codec, block_len: 128 << 10, ..Wish::default() };
        let image = squash(&loaded.tree, &*loaded.contents, wish, folder.path(), codec);
        readers_agree(&image, &expected, &format!("debian {codec}"));
    }
}

/// Runs a peer that packs a directory.
type Packer = fn(&Peer, &Path, &Path, &str, u32);

/// The fastest setting of a codec, as mksquashfs and as the others want it: how hard they tried
/// does not matter here.
fn fastest(codec: &str) -> (&'static [&'static str], &'static str) {
    match codec {
        "gzip" | "zstd" => (&["-Xcompression-level", "1"], "level=1"),
        "lzo" => (&["-Xalgorithm", "lzo1x_1"], "level=1"),
        "xz" => (&[], "level=0"),
        _ => (&[], ""),
    }
}

#[track_caller]
fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn mksquashfs(tool: &Peer, source: &Path, image: &Path, codec: &str, block_len: u32) {
    let mut command = tool.command(&[&source, &image, &"-noappend", &"-no-progress", &"-quiet"]);
    command.args(["-comp", codec]).args(fastest(codec).0).args(["-b", &block_len.to_string()]);
    succeed(&mut command);
}

/// Options that gensquashfs and tar2sqfs share.
fn tools_ng(command: &mut Command, codec: &str, block_len: u32) {
    command.args(["-q", "-c", codec, "-b", &block_len.to_string()]);
    let fastest = fastest(codec).1;
    if !fastest.is_empty() {
        command.args(["-X", fastest]);
    }
}

fn gensquashfs(tool: &Peer, source: &Path, image: &Path, codec: &str, block_len: u32) {
    let mut command = tool.command(&[]);
    tools_ng(&mut command, codec, block_len);
    succeed(command.args(["-k", "-x", "-D"]).arg(source).arg(image));
}

fn tar2sqfs(tool: &Peer, source: &Path, image: &Path, codec: &str, block_len: u32) {
    let tar = image.with_extension("tar");
    if !tar.exists() {
        let mut gnu_tar = Command::new("tar");
        gnu_tar.args([
            "--create",
            "--numeric-owner",
            "--xattrs",
            "--xattrs-include=*",
            "--format=posix",
            "--sort=name",
        ]);
        let made = gnu_tar.arg("--file").arg(&tar).arg("--directory").arg(source).arg(".").status().unwrap();
        assert!(made.success());
    }
    let mut command = tool.command(&[]);
    tools_ng(&mut command, codec, block_len);
    succeed(command.arg("-f").arg(image).stdin(std::fs::File::open(&tar).unwrap()));
}

/// Packs a directory with each peer, codec, and block size that `takes` takes by their numbers, and
/// reads the images with packfs.
fn agrees_with_packers(source: &Path, compare: Compare, what: &str, takes: fn([usize; 3]) -> bool) {
    let folder = tempfile::tempdir().unwrap();
    let expected = snapshot_dir(source);
    let packers: [(&str, Packer); 3] =
        [("mksquashfs", mksquashfs), ("gensquashfs", gensquashfs), ("tar2sqfs", tar2sqfs)];
    for (packer, (name, pack)) in packers.into_iter().enumerate() {
        let Some(tool) = peer(name) else { continue };
        let image = folder.path().join(format!("{name}.sqfs"));
        let settings = (0..CODECS.len()).flat_map(|codec| (0..BLOCK_LENS.len()).map(move |len| (codec, len)));
        for (codec, len) in settings.filter(|(codec, len)| takes([packer, *codec, *len])) {
            let (codec, block_len) = (CODECS[codec], BLOCK_LENS[len]);
            let _ = std::fs::remove_file(&image);
            pack(&tool, source, &image, codec, block_len);
            let (snapshot, findings) = read_image(&image);
            let ours = if name == "mksquashfs" { Compare::default() } else { compare };
            snapshot.assert_same(&expected, ours, &format!("{what}: {name} {codec} {block_len}"));
            assert_eq!(findings, [], "{what}: {name} {codec} {block_len}");
        }
    }
}

/// Facts of a tree that squashfs-tools-ng keeps: it leaves the root's facts out, counts all entries
/// as a directory's links, splits hard links (gensquashfs), and drops attributes with empty values.
fn as_tools_ng_does(xattrs: bool) -> Compare {
    Compare { root: false, dir_links: false, hard_links: false, xattrs, ..Compare::default() }
}

#[test]
fn agrees_with_packers_on_the_odd_tree() {
    if !is_root() {
        return skip("devices and owners need root");
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    std::fs::create_dir(&source).unwrap();
    let (tree, contents) = odd_tree(4096, true);
    write_dir(&tree, &contents, &source);
    // Sockets cannot be in a tar.
    remove_sockets(&source);
    agrees_with_packers(&source, as_tools_ng_does(false), "odd tree", |_| true);
}

fn remove_sockets(source: &Path) {
    for socket in ["socket", "xattrs/socket"] {
        let _ = std::fs::remove_file(source.join(socket));
    }
}

#[test]
fn agrees_with_packers_on_a_debian_root() {
    let debian: Option<PathBuf> = corpus("debian").filter(|_| is_root());
    let Some(debian) = debian else {
        return skip("a Debian root needs root and `cargo xtask corpus debian`");
    };
    // Packing takes minutes, and the odd tree takes all combinations: here each codec, by one peer.
    let takes =
        |[packer, codec, len]: [usize; 3]| codec % 3 == packer && (codec + 1) % BLOCK_LENS.len() == len;
    agrees_with_packers(&debian, as_tools_ng_does(true), "debian", takes);
}
