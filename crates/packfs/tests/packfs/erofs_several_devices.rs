//! Images whose data lie in several files: the kernel mounts them together, each holds what was
//! asked for.

use crate::common::{Wish, erofs, read_image};
use packfs_core::{Held, Silent, Tree};
use packfs_testkit::{
    Compare, Mount, Random, Snapshot, is_root, odd_tree, skip, snapshot_dir, snapshot_tree, tree_of,
};
use std::path::{Path, PathBuf};

fn all() -> Compare {
    Compare { nanos: true, ..Compare::default() }
}

/// Packs a tree with its data in so many files; the image and those.
#[track_caller]
fn packed(
    (tree, contents): &(Tree, Held),
    wish: Wish<'_>,
    folder: &Path,
    count: usize,
) -> (PathBuf, Vec<PathBuf>) {
    let blobs: Vec<PathBuf> = (0..count).map(|number| folder.join(format!("blob{number}"))).collect();
    let devices = blobs.iter().map(|blob| ("device", blob.to_str().unwrap()));
    let options: Vec<(&str, &str)> = wish.options.iter().copied().chain(devices).collect();
    (erofs(tree, contents, Wish { options: &options, ..wish }, folder, "image"), blobs)
}

/// Returns the snapshot that packfs reads, and the findings of its check.
fn read(image: &Path, blobs: &[PathBuf]) -> (Snapshot, Vec<packfs_format::Finding>) {
    let options = blobs.iter().fold(packfs::OpenOptions::new(), packfs::OpenOptions::device);
    let opened = options.open(image).unwrap();
    let loaded = opened.load(&Silent).unwrap();
    let mut findings = Vec::new();
    opened.volume().check(&mut |finding| findings.push(finding)).unwrap();
    (snapshot_tree(&loaded.tree, &**opened.engine()), findings)
}

#[test]
fn the_kernel_and_packfs_read_every_layout_from_several_devices() {
    if !is_root() {
        return skip("mounting needs root");
    }
    let source = odd_tree(16 << 10, true);
    let expected = snapshot_tree(&source.0, &source.1);
    for (codec, options) in [
        ("none", &[("device-size", "700K+16M")][..]),
        ("none", &[("device-size", "700K+16M"), ("chunks", "4K")]),
        ("lz4hc:3", &[("device-of", "text*=2"), ("device-of", "*e*=3")]),
        ("lz4hc:3", &[("device-of", "*e*=2"), ("fragments", "off"), ("dedupe", "ranges"), ("align", "1M")]),
        ("zstd:3", &[("device-of", "*e*=3"), ("byte-aligned", "on")]),
        ("lz4hc:3", &[("device-of", "*e*=3"), ("block", "512"), ("index", "compact")]),
    ] {
        let what = format!("{codec} {options:?}");
        let folder = tempfile::tempdir().unwrap();
        let wish = Wish { codec, block_len: 16 << 10, options, ..Wish::default() };
        let (image, blobs) = packed(&source, wish, folder.path(), 3);
        let paths: Vec<&Path> = blobs.iter().map(PathBuf::as_path).collect();
        let mount = Mount::with_devices(&image, "erofs", &paths).unwrap_or_else(|e| panic!("{what}: {e}"));
        expected.assert_same(&snapshot_dir(&mount.path()), all(), &what);
        drop(mount);
        let (found, findings) = read(&image, &blobs);
        found.assert_same(&expected, all(), &what);
        assert_eq!(findings, [], "{what}");
        // One behind the other they are an image, too.
        let whole = folder.path().join("whole");
        let parts = [&image].into_iter().chain(&blobs).map(|path| std::fs::read(path).unwrap());
        std::fs::write(&whole, parts.collect::<Vec<_>>().concat()).unwrap();
        let mount = Mount::new(&whole, "erofs").unwrap_or_else(|e| panic!("{what}: {e}"));
        expected.assert_same(&snapshot_dir(&mount.path()), all(), &what);
        drop(mount);
        let (found, _) = read_image(&whole);
        found.assert_same(&expected, all(), &what);
    }
}

/// Files of noise, of 100,000 bytes each.
fn noise_tree(names: &[&str]) -> (Tree, Held) {
    let mut random = Random::new(3);
    tree_of(names.iter().map(|name| (name, random.noise(100_000))))
}

fn holds(blob: &Path, bytes: &[u8]) -> bool {
    let all = std::fs::read(blob).unwrap();
    all.chunks(4096).any(|block| block.starts_with(&bytes[..512]))
}

#[test]
fn files_lie_on_the_device_that_a_rule_names() {
    let source = noise_tree(&["a", "dir/b", "dir/c", "e"]);
    let folder = tempfile::tempdir().unwrap();
    let options = &[("device-of", "dir=2"), ("device-of", "c=3")];
    let wish = Wish { codec: "none", block_len: 4096, options, ..Wish::default() };
    let (_, blobs) = packed(&source, wish, folder.path(), 3);
    // Contents in the order in which the files were added.
    for (content, device) in [(0, 0), (1, 1), (2, 2), (3, 0)] {
        let bytes = Random::new(3).noise(400_000)[content * 100_000..][..100_000].to_vec();
        let found: Vec<usize> = (0..3).filter(|&blob| holds(&blobs[blob], &bytes)).collect();
        assert_eq!(found, [device], "content {content}");
    }
}

#[test]
fn devices_are_filled_up_to_their_size_and_no_further() {
    let source = noise_tree(&["a", "b", "c", "d", "e"]);
    let folder = tempfile::tempdir().unwrap();
    let options = &[("device-size", "300000+250000")];
    let wish = Wish { codec: "lz4", block_len: 4096, options, ..Wish::default() };
    let (image, blobs) = packed(&source, wish, folder.path(), 3);
    let lens: Vec<u64> = blobs.iter().map(|blob| std::fs::metadata(blob).unwrap().len()).collect();
    assert!(lens[0] <= 300_000 && lens[1] <= 250_000 && lens[2] <= 250_000, "{lens:?}");
    assert!(lens.iter().all(|&len| len > 100_000), "{lens:?}");
    read(&image, &blobs).0.assert_same(&snapshot_tree(&source.0, &source.1), all(), "filled");
    let again = folder.path().join("again");
    std::fs::create_dir(&again).unwrap();
    let (_, twice) = packed(&source, Wish { jobs: 7, ..wish }, &again, 3);
    for (one, other) in blobs.iter().zip(&twice) {
        assert!(std::fs::read(one).unwrap() == std::fs::read(other).unwrap(), "threads show");
    }
}

#[test]
fn reports_wrong_options_for_several_devices() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    std::fs::create_dir(&source).unwrap();
    std::fs::write(source.join("file"), Random::new(1).noise(200_000)).unwrap();
    let refused = |options: &[(&str, &str)]| {
        let blob = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (one, other) = (blob("one"), blob("other"));
        let pack = packfs::pack(&source, folder.path().join("x.erofs")).sync(false);
        let pack = pack.option("device", &one).option("device", &other);
        let pack =
            options.iter().fold(pack, |pack, (name, value)| pack.option(*name, value.replace("ONE", &one)));
        pack.run().unwrap_err().to_string()
    };
    assert!(refused(&[("device-of", "file=3")]).contains("there are 2 devices"));
    assert!(refused(&[("device-of", "file=0")]).contains("GLOB=N is allowed"));
    assert!(refused(&[("device-size", "1M+")]).contains("SIZE[+SIZE...] is allowed"));
    assert!(refused(&[("device-size", "1M+2M+3M")]).contains("3 sizes"));
    assert!(refused(&[("device", "ONE")]).contains("named for two data files"));
    let text = refused(&[("device-size", "128K")]);
    assert!(text.contains("other") && text.contains("131072 are allowed"), "{text}");
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["source"], "nothing is left behind");
}
