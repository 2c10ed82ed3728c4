//! Trees made by code, and images of them.

use super::rows::Row;
use packfs::composefs::{ComposefsOptions, Versions, make};
use packfs::options::Options;
use packfs::source::{Loaded, Notes};
use packfs::{
    DeviceNumber, Meta, NodeKind, Owner, Pack, PackOptions, Silent, Timestamp, Tree, TreeBuilder, Xattrs,
};
use packfs_core::Held;
use packfs_testkit::{Random, odd_tree, path, plain_tree, tree_of};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub struct Sources {
    trees: HashMap<&'static str, Arc<Loaded>>,
    folder: PathBuf,
}

impl Sources {
    /// Scratch files are in `folder`.
    pub fn new(folder: &Path) -> Self {
        let tiny =
            tree_of([("etc/motd", &b"hello\n"[..]), ("etc/none", &b""[..]), ("bin/tool", &b"\x7fELF"[..])]);
        let trees = [("few", few()), ("tiny", tiny), ("plain", plain_tree()), ("odd", odd_tree(4096, true))];
        let loaded = |(tree, held): (Tree, Held)| {
            Arc::new(Loaded { tree, contents: Arc::new(held), notes: Notes::default() })
        };
        Sources { trees: trees.map(|(name, tree)| (name, loaded(tree))).into(), folder: folder.into() }
    }

    /// Packs the image of a row.
    pub fn packed(&self, row: &Row) -> Vec<u8> {
        let image = self.folder.join("image");
        let loaded = self.trees.get(&*row.source).unwrap_or_else(|| panic!("{}: no such tree", row.name));
        let pack = |pack: Pack, options: PackOptions| {
            let pack = pack.options(options).sync(false).verify(false);
            pack.run().unwrap_or_else(|e| panic!("{}: {e}", row.name))
        };
        let tree = |to: &Path, options| pack(Pack::of_loaded(Arc::clone(loaded), to), options);
        // Formats that take no tree that is loaded get an image of it.
        let of_image = || {
            let inner = self.folder.join("inner.sqfs");
            tree(&inner, PackOptions::default());
            inner
        };
        match row.format() {
            "composefs" => {
                let version = row.options.iter().find(|(name, _)| name == "version").unwrap();
                let version = version.1.parse().unwrap();
                let versions = Versions { min: version, max: version };
                let options = ComposefsOptions { versions, ..ComposefsOptions::default() };
                return make(of_image(), &options, &Silent).unwrap().bytes;
            }
            "cloop" => pack(packfs::pack(of_image(), &image), options(row)),
            _ => tree(&image, options(row)),
        };
        std::fs::read(image).unwrap()
    }
}

fn options(row: &Row) -> PackOptions {
    let texts = row.options.iter().map(|(name, text)| (name, text));
    PackOptions::default().with_texts(texts).unwrap_or_else(|e| panic!("{}: {e}", row.name))
}

/// A file of each kind, as short as can be.
fn few() -> (Tree, Held) {
    let meta = |mode, uid, seconds| Meta {
        mode,
        owner: Owner { uid, gid: uid * 2 },
        mtime: Timestamp::from_seconds(seconds),
    };
    let (mut tree, mut held, mut random) =
        (TreeBuilder::new(meta(0o755, 0, 1_600_000_000)), Held::default(), Random::new(39));
    let (text, noise) = (random.text(3000), random.noise(300));
    let hole = [&text[..100], &[0; 20_000], &text[..100]].concat();
    let attributes = Xattrs::from([(b"user.label".to_vec(), b"a label".to_vec())]);
    for (index, (name, bytes)) in [
        ("doc/text", text.clone()),
        ("doc/again", text),
        ("bin/noise", noise),
        ("hole", hole),
        ("none", vec![]),
    ]
    .into_iter()
    .enumerate()
    {
        let kind = NodeKind::File { len: bytes.len() as u64, content: held.push(bytes) };
        let xattrs = if index == 0 { attributes.clone() } else { Xattrs::new() };
        tree.add(&path(name), kind, meta(0o644, index as u32, 1_500_000_000 + index as i64), xattrs).unwrap();
    }
    for (name, kind) in [
        ("link", NodeKind::Symlink(b"doc/text".as_slice().into())),
        ("dev/fifo", NodeKind::Fifo),
        ("dev/null", NodeKind::CharDevice(DeviceNumber { major: 1, minor: 3 })),
    ] {
        tree.add(&path(name), kind, meta(0o755, 0, 1_550_000_000), Xattrs::new()).unwrap();
    }
    tree.link(&path("doc/name"), path("doc/text")).unwrap();
    (tree.finish().unwrap(), held)
}
