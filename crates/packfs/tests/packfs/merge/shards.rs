//! Shards of a tree, and the comparison of a merged image with the whole tree.

use crate::common::{Wish, erofs, read_image, squash};
use packfs::{Contents, ImagePath, Merged, NodeId, NodeKind, Severity, Silent, Tree, TreeBuilder};
use packfs_testkit::{Compare, Mount, Snapshot, is_root, skip, snapshot_dir, snapshot_tree};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Cuts a tree into shards by the rank of its names, also within directories. Names of one file
/// stay together, and each shard has the directories above its names.
pub fn shards(tree: &Tree, count: usize) -> Vec<Tree> {
    let root = tree.node(NodeId::ROOT);
    let builder = || {
        let mut builder = TreeBuilder::new(root.meta);
        builder
            .add(&ImagePath::root(), NodeKind::Directory, root.meta, tree.xattrs(root.xattrs).clone())
            .unwrap();
        builder
    };
    let mut builders: Vec<TreeBuilder> = (0..count).map(|_| builder()).collect();
    let total = tree.entry_count();
    let mut first: HashMap<NodeId, (usize, ImagePath)> = HashMap::new();
    let mut walk = tree.walk();
    let mut rank = 0;
    while let Some((path, id)) = walk.next() {
        if path.is_root() {
            continue;
        }
        let shard = rank * count / total;
        rank += 1;
        if let Some((shard, target)) = first.get(&id) {
            with_parents(&mut builders[*shard], tree, path);
            builders[*shard].link(path, target.clone()).unwrap();
            continue;
        }
        first.insert(id, (shard, path.clone()));
        with_parents(&mut builders[shard], tree, path);
        add(&mut builders[shard], tree, path);
    }
    builders.into_iter().map(|builder| builder.finish().unwrap()).collect()
}

fn with_parents(builder: &mut TreeBuilder, tree: &Tree, path: &ImagePath) {
    let mut parent = ImagePath::root();
    let names: Vec<_> = path.names().collect();
    for name in &names[..names.len() - 1] {
        parent.push(*name);
        if builder.find(&parent).is_none() {
            add(builder, tree, &parent);
        }
    }
}

fn add(builder: &mut TreeBuilder, tree: &Tree, path: &ImagePath) {
    let node = tree.node(tree.find(path).unwrap());
    builder.add(path, node.kind.clone(), node.meta, tree.xattrs(node.xattrs).clone()).unwrap();
}

/// Packs the shards of a tree.
#[track_caller]
pub fn packed(
    format: &str,
    tree: &Tree,
    contents: &dyn Contents,
    wish: Wish<'_>,
    count: usize,
    folder: &Path,
) -> Vec<PathBuf> {
    let pack = if format == "erofs" { erofs } else { squash };
    let shards = shards(tree, count);
    shards
        .iter()
        .enumerate()
        .map(|(index, shard)| pack(shard, contents, wish, folder, &format!("shard{index}")))
        .collect()
}

/// Merges images of a tree's shards.
#[track_caller]
pub fn merged(images: &[PathBuf], folder: &Path) -> (PathBuf, Merged) {
    let output = folder.join("merged.img");
    let report = packfs::merge(images, &output).run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(report.report.image_size, std::fs::metadata(&output).unwrap().len());
    (output, report)
}

/// Compares an image with a tree: read by packfs, checked with all data, its space accounted for,
/// and mounted by the kernel.
#[track_caller]
pub fn agrees(image: &Path, format: &str, tree: &Tree, contents: &dyn Contents, what: &str) {
    let expected = snapshot_tree(tree, contents);
    agrees_with(image, format, &expected, what);
}

/// The same with a snapshot.
#[track_caller]
pub fn agrees_with(image: &Path, format: &str, expected: &Snapshot, what: &str) {
    let (found, findings) = read_image(image);
    expected.assert_same(&found, Compare::default(), &format!("{what}, read by packfs"));
    assert!(findings.is_empty(), "{what}: {findings:?}");
    sound(image, what);
    if !is_root() {
        return skip("mounting needs root");
    }
    let mount = Mount::new(image, format).unwrap_or_else(|why| panic!("{what}: {why}"));
    expected.assert_same(&snapshot_dir(&mount.path()), Compare::default(), &format!("{what}, mounted"));
}

/// Decodes all data of an image, and adds up its map of space.
#[track_caller]
pub fn sound(image: &Path, what: &str) {
    let opened = packfs::open(image).unwrap();
    let mut faults = Vec::new();
    let loaded = opened.load(&Silent).unwrap();
    packfs::check::content(opened.engine(), &loaded, &Silent, &mut |finding| faults.push(finding))
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    faults.retain(|finding| finding.severity > Severity::Note);
    assert!(faults.is_empty(), "{what}: {faults:?}");
    let space = opened.volume().space().unwrap();
    let total: u64 = space.iter().map(|owner| owner.len).sum();
    assert_eq!(total, std::fs::metadata(image).unwrap().len(), "{what}");
}

/// Merges the shards of a tree, and compares.
#[track_caller]
pub fn merges(
    format: &str,
    (tree, contents): (&Tree, &dyn Contents),
    wish: Wish<'_>,
    count: usize,
) -> Merged {
    let folder = tempfile::tempdir().unwrap();
    let images = packed(format, tree, contents, wish, count, folder.path());
    let (image, report) = merged(&images, folder.path());
    let what = format!("{format} {} {:?} of {count} shards", wish.codec, wish.options);
    agrees(&image, format, tree, contents, &what);
    report
}
