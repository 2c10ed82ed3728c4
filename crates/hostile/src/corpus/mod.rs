//! What mutations start from: small images of every codec, layout and index, made by code and the
//! same in every run.

mod containers;
mod inputs;
mod integrity;

pub use containers::containers;
pub use inputs::inputs;
pub(crate) use integrity::{SIGNED, SIGNED_COMMENT, SIGNERS_KEY, protected};

use packfs::{
    Contents, DeviceNumber, ImagePath, Meta, NodeKind, Owner, PackSettings, Result, Silent, Timestamp, Tree,
    TreeBuilder, Xattrs,
};
use packfs_core::Held;
use packfs_pack::{PackOptions, pack};
use packfs_testkit::Random;
use std::path::Path;

/// A valid input and what it is called.
#[derive(Clone, Debug)]
pub struct Base {
    /// What was asked for to make it.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Codec, block size, options of the format.
type Row = (&'static str, u32, &'static [(&'static str, &'static str)]);

const K4: u32 = 4 << 10;
const K16: u32 = 16 << 10;
const K64: u32 = 64 << 10;
/// Metadata stored as it is lets a mutation reach every field, not only the codec.
const PLAIN: (&str, &str) = ("uncompressed", "inodes,xattrs,ids");

/// Every codec with compressed and with plain metadata, and every way to store tails.
const SQUASHFS: [Row; 16] = [
    ("gzip", K4, &[]),
    ("gzip", K4, &[PLAIN]),
    ("lzma", K4, &[]),
    ("lzma", K16, &[PLAIN]),
    ("lzo", K4, &[]),
    ("lzo", K4, &[PLAIN, ("fragments", "always")]),
    ("xz", K4, &[]),
    ("xz,bcj=x86+arm", K16, &[PLAIN]),
    ("lz4", K4, &[]),
    ("lz4hc", K4, &[PLAIN]),
    ("zstd:3", K4, &[]),
    ("zstd:3", K16, &[PLAIN, ("fragments", "always")]),
    ("gzip", K64, &[PLAIN, ("fragments", "off"), ("exports", "off")]),
    ("gzip", K4, &[("uncompressed", "all")]),
    ("zstd:1", K4, &[PLAIN, ("holes", "off"), ("duplicates", "keep"), ("padding", "none")]),
    ("gzip", 1 << 20, &[PLAIN]),
];

/// Every version and byte order, with compressed and with plain metadata.
const SQUASHFS_LEGACY: [Row; 8] = [
    ("gzip", K4, &[("version", "2.0")]),
    ("gzip", K4, &[("version", "2.1"), ("endian", "big"), ("uncompressed", "inodes")]),
    ("gzip", K4, &[("version", "2.0"), ("endian", "big"), ("uncompressed", "inodes")]),
    ("gzip", K16, &[("version", "2.1"), ("uncompressed", "inodes"), ("fragments", "always")]),
    ("gzip", K4, &[("version", "3.0"), ("endian", "big"), ("uncompressed", "inodes,fragments")]),
    ("gzip", K4, &[("version", "3.1"), ("uncompressed", "inodes"), ("duplicates", "keep")]),
    ("gzip", K64, &[("version", "3.1"), ("endian", "big"), ("fragments", "off"), ("exports", "off")]),
    ("gzip", 1 << 20, &[("version", "3.1"), ("uncompressed", "all")]),
];

/// Every layout, index, codec and feature that packfs writes into one file.
const EROFS: [Row; 22] = [
    ("none", K4, &[]),
    ("none", K4, &[("inline-tails", "off"), ("shared-xattrs", "off")]),
    ("none", K4, &[("block", "512"), ("dot-omitted", "on")]),
    ("none", K4, &[("chunks", "4K")]),
    ("none", K4, &[("chunks", "4K"), ("chunk-indexes", "on"), ("prefixes", "trusted.overlay.")]),
    ("none", K4, &[("48bit", "on"), ("chunks", "4K")]),
    ("lz4", K4, &[("fragments", "off"), ("index", "compact")]),
    ("lz4", K16, &[("fragments", "off"), ("index", "full"), ("kernel", "5.15")]),
    ("lz4", K4, &[("kernel", "5.4")]),
    ("lz4hc:6", K16, &[("interlaced", "on")]),
    ("lzma:0", K16, &[("fragments", "off")]),
    ("lzma:0", K16, &[("fragments", "all")]),
    ("deflate:1", K4, &[("fragments", "off"), ("inline-tails", "on")]),
    ("deflate:1", K16, &[("dedupe", "ranges")]),
    ("zstd:1", K16, &[("fragments", "tails")]),
    ("zstd:1", K64, &[("fragments", "all"), ("index", "full")]),
    ("zstd:1+lz4", K16, &[("fragments", "off"), ("index", "full")]),
    ("deflate:1+lz4", K16, &[("fragments", "off"), ("index", "compact")]),
    ("zstd:1", K16, &[("48bit", "on"), ("index", "extents")]),
    ("lz4", K16, &[("48bit", "on"), ("byte-aligned", "on"), ("index", "extents")]),
    ("zstd:1", K16, &[("metabox", "4K")]),
    ("lz4", K16, &[("checksum", "off"), ("times", "epoch"), ("fragments", "off"), ("dedupe", "ranges")]),
];

/// Both byte orders and both kinds of pointers, with holes and without, blocks stored, and room for
/// boot code.
const CRAMFS: [Row; 8] = [
    ("gzip", K4, &[]),
    ("gzip", K4, &[("endian", "big")]),
    ("gzip", K4, &[("holes", "on"), ("pad", "512")]),
    ("gzip", K4, &[("endian", "big"), ("holes", "on"), ("duplicates", "keep")]),
    ("gzip:12", K4, &[("pointers", "extended"), ("holes", "on")]),
    ("gzip", K4, &[("pointers", "extended"), ("endian", "big"), ("pad", "512")]),
    ("none", K4, &[("pointers", "extended")]),
    ("none", K4, &[("pointers", "extended"), ("endian", "big"), ("holes", "on")]),
];

/// Images that packfs reads and does not write, from the same folder as the tests of that.
type Found = (&'static str, &'static [u8]);

/// Both byte orders, with check data and without.
const SQUASHFS_LEGACY_READ: [Found; 2] = [
    (
        "version 1.0, check data",
        include_bytes!("../../../../testdata/legacy/squashfs-1.0-le-checkdata-b4096.sqfs"),
    ),
    ("version 1.0, big-endian", include_bytes!("../../../../testdata/legacy/squashfs-1.0-be.sqfs")),
];

/// Version 1, blocks that are pointed to directly, and the blocks of a device maker.
const CRAMFS_READ: [Found; 4] = [
    ("version 1", include_bytes!("../../../../testdata/legacy/cramfs-v1-le.cramfs")),
    ("direct pointers", include_bytes!("../../../../testdata/legacy/cramfs-v2-le-extptr-direct.cramfs")),
    ("big-endian, in place", include_bytes!("../../../../testdata/legacy/cramfs-v2-be-xip.cramfs")),
    ("OpenRG", include_bytes!("../../../../testdata/legacy/cramfs-v2-le-openrg-lzma-b64k.cramfs")),
];

/// With data behind its headers, and at multiples of 4 KiB.
const ROMFS_READ: [Found; 2] = [
    ("plain", include_bytes!("../../../../testdata/legacy/romfs.romfs")),
    ("aligned", include_bytes!("../../../../testdata/legacy/romfs-aligned.romfs")),
];

/// Both versions of zisofs, both trees, and what boots. Small files take a sector each, so there
/// are few.
const ISO9660: [Row; 3] = [
    ("gzip", 32 << 10, &[("zisofs", "1")]),
    ("gzip", 32 << 10, &[("zisofs", "2"), ("joliet", "on")]),
    ("gzip", 32 << 10, &[("joliet", "long"), ("boot", "noise"), ("efi-boot", "shifted")]),
];

/// The images of a format, `squashfs`, `squashfs-legacy`, `erofs`, `cramfs`, `iso9660` or `romfs`,
/// or the [`containers()`], packed in `folder`.
///
/// # Errors
/// As of packing.
pub fn images(format: &str, folder: &Path) -> Result<Vec<Base>> {
    let (rows, found): (&[Row], &[Found]) = match format {
        "erofs" => (&EROFS, &[]),
        "squashfs-legacy" => (&SQUASHFS_LEGACY, &SQUASHFS_LEGACY_READ),
        "cramfs" => (&CRAMFS, &CRAMFS_READ),
        "iso9660" => (&ISO9660, &[]),
        "romfs" => (&[], &ROMFS_READ),
        "containers" => return containers(folder),
        _ => (&SQUASHFS, &[]),
    };
    let mixed = mixed_tree()?;
    let many = many_tree()?;
    let mut bases = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let is_many = format != "iso9660" && (index + 1 == rows.len() || index == 1);
        let (tree, contents) = if is_many { &many } else { &mixed };
        bases.push(Base { name: name(row), bytes: packed(format, row, tree, contents, folder)? });
    }
    bases.extend(found.iter().map(|&(name, bytes)| Base { name: name.into(), bytes: bytes.into() }));
    Ok(bases)
}

fn name((codec, block_len, options): &Row) -> String {
    let words = options.iter().map(|(name, value)| format!(" {name}={value}"));
    format!("{codec} {}K{}", block_len >> 10, words.collect::<String>())
}

fn packed(
    format: &str,
    (codec, block_len, options): &Row,
    tree: &Tree,
    contents: &dyn Contents,
    folder: &Path,
) -> Result<Vec<u8>> {
    let path = folder.join("base");
    let settings = PackSettings {
        codec: Some((*codec).into()),
        block_size: Some(*block_len),
        made_at: 1_700_000_000,
        options: options.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        ..PackSettings::default()
    };
    let format = packfs::formats::by_name(format)
        .ok_or_else(|| packfs::Error::usage(format!("{format:?} is no format")))?;
    let packer = format.packer(&settings)?;
    let options = PackOptions { jobs: 1, sync: false, lossy: true, ..PackOptions::default() };
    pack(tree, contents, &*packer, &path, &options, &Silent)?;
    let bytes =
        std::fs::read(&path).map_err(|error| packfs::Error::io(format!("cannot read {path:?}"), error))?;
    Ok(bytes)
}

struct Grower {
    tree: TreeBuilder,
    contents: Held,
    random: Random,
    count: u32,
}

impl Grower {
    fn new() -> Self {
        let meta = Meta { mode: 0o755, mtime: Timestamp::from_seconds(1_600_000_000), ..Meta::default() };
        Grower { tree: TreeBuilder::new(meta), contents: Held::default(), random: Random::new(7), count: 0 }
    }

    fn add(&mut self, path: &str, kind: NodeKind, xattrs: Xattrs) -> Result<()> {
        self.count += 1;
        let meta = Meta {
            mode: [0o644, 0o755, 0o600, 0o4755][self.count as usize % 4],
            owner: Owner { uid: self.count % 5 * 1000, gid: self.count % 3 * 100_000 },
            mtime: Timestamp::from_seconds(1_500_000_000 + i64::from(self.count / 4) * 1001),
        };
        self.tree.add(&ImagePath::parse(path.as_bytes())?, kind, meta, xattrs).map(drop)
    }

    fn file(&mut self, path: &str, bytes: Vec<u8>, xattrs: Xattrs) -> Result<()> {
        let kind = NodeKind::File { len: bytes.len() as u64, content: self.contents.push(bytes) };
        self.add(path, kind, xattrs)
    }

    fn finish(self) -> Result<(Tree, Held)> {
        Ok((self.tree.finish()?, self.contents))
    }
}

/// A little of everything: each type, lengths around a block, holes, duplicates, links, attributes,
/// depth.
fn mixed_tree() -> Result<(Tree, Held)> {
    let mut grower = Grower::new();
    let none = Xattrs::new;
    for (dir, len) in [(0, 10_usize), (1, 700), (2, 3000)] {
        for file in 0..6 {
            let bytes = grower.random.text(len + file * 317);
            grower.file(&format!("dir{dir}/file{file}"), bytes, none())?;
        }
    }
    for len in [0, 1, 4095, 4096, 4097, 16_384] {
        let bytes = grower.random.text(len);
        grower.file(&format!("sizes/{len}"), bytes.clone(), none())?;
        grower.file(&format!("sizes/again-{len}"), bytes, none())?;
    }
    let text = grower.random.text(40_000);
    let sparse = [&text[..9000], &[0; 20_000], &text[..5001]].concat();
    let noise = grower.random.noise(9000);
    let shifted = [&noise[..777], &text[3000..30_000]].concat();
    grower.file("large.txt", text, none())?;
    grower.file("sparse", sparse, none())?;
    grower.file("hole", vec![0; 12_288], none())?;
    grower.file("noise", noise, none())?;
    grower.file("shifted", shifted, none())?;
    grower.file("deep/a/b/c/d/e", b"leaf".to_vec(), none())?;
    grower.add("empty", NodeKind::Directory, none())?;
    for (name, target_len) in [("short", 5), ("long", 300)] {
        grower.add(name, NodeKind::Symlink(vec![b't'; target_len].into()), none())?;
    }
    grower.add("up", NodeKind::Symlink(b"../../../etc/passwd".as_slice().into()), none())?;
    let number = DeviceNumber { major: 8, minor: 300 };
    grower.add("block", NodeKind::BlockDevice(number), none())?;
    grower.add("char", NodeKind::CharDevice(number), none())?;
    grower.add("fifo", NodeKind::Fifo, none())?;
    grower.add("socket", NodeKind::Socket, none())?;
    let pairs = |pairs: &[(&str, Vec<u8>)]| -> Xattrs {
        pairs.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.clone())).collect()
    };
    let shared = ("user.label", b"the same for all, and long enough to be worth it".to_vec());
    for index in 0..4 {
        let own = ("user.own", vec![index; 20]);
        grower.file(&format!("attributes/{index}"), vec![index], pairs(&[shared.clone(), own]))?;
    }
    let long = grower.random.noise(600);
    let set =
        pairs(&[("user.empty", vec![]), ("trusted.overlay.opaque", b"y".to_vec()), ("user.long", long)]);
    grower.add("attributes/dir", NodeKind::Directory, set)?;
    for (link, target) in
        [("other-name", "large.txt"), ("dir0/third-name", "large.txt"), ("same-fifo", "fifo")]
    {
        let path = |text: &str| ImagePath::parse(text.as_bytes());
        grower.tree.link(&path(link)?, path(target)?)?;
    }
    grower.finish()
}

/// A few files, for what lies within something else.
fn plain_tree() -> Result<(Tree, Held)> {
    let mut grower = Grower::new();
    for (name, len) in [("a", 10_000), ("dir/b", 300), ("dir/c", 0)] {
        let bytes = grower.random.text(len);
        grower.file(name, bytes, Xattrs::new())?;
    }
    grower.finish()
}

/// A directory that needs an index, and more inodes than one metadata block holds.
fn many_tree() -> Result<(Tree, Held)> {
    let mut grower = Grower::new();
    for index in 0..400 {
        let name = format!("many/a-rather-long-name-to-fill-blocks-{index:05}");
        let bytes = grower.random.text(index % 90);
        grower.file(&name, bytes, Xattrs::new())?;
    }
    let text = grower.random.text(30_000);
    grower.file("large", text, Xattrs::new())?;
    grower.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_base_is_clean_and_the_same_in_every_run() {
        let folder = tempfile::tempdir().unwrap();
        for format in crate::image_kinds() {
            let made = || images(format, folder.path()).unwrap();
            let (first, second) = (made(), made());
            for (base, again) in first.iter().zip(&second) {
                assert!(base.bytes == again.bytes, "{}", base.name);
                assert!(base.bytes.len() <= 256 << 10, "{}: {} bytes", base.name, base.bytes.len());
                let pit = crate::Sandpit::new().unwrap();
                let judged = crate::judge(&base.bytes, &pit, 1, None);
                assert_eq!(judged.breach, None, "{format} {}", base.name);
                assert_eq!(judged.error, None, "{format} {}", base.name);
            }
        }
    }
}
