//! Makes shards: files of holes at places of their own, and at the end some of known contents.
//!
//! Formats lay out metadata for places that they are told, so nothing of the data is written.

use packfs_codec::{CodecSettings, Lz4Settings, ZlibSettings, encoder};
use packfs_core::{ContentId, ImagePath, Meta, NodeKind, Tree, TreeBuilder, Xattrs};
use packfs_format::{
    AnyLayout, BlocksPlaced, Cluster, ClusterForm, Clusters, ClustersPlaced, DataKind, FileForm, FilePlace,
    Layout, PackFormat, PackSettings, Placed, Plan, StoredBlock,
};
use packfs_testkit::Random;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Stored bytes of a cluster of which nothing is written, and of a block of SquashFS.
const STORED_LEN: u64 = 1 << 20;
/// Bytes that such a cluster would decode to.
const DECODED_LEN: u64 = 2 << 20;
/// Bytes of a file in each cluster with contents.
const CLUSTER_LEN: usize = 64 << 10;

/// Figures of shards.
pub struct Figures {
    pub count: usize,
    /// Unit of addresses of EROFS.
    block: &'static str,
    /// Uncompressed files and their length.
    flat: (usize, u64),
    /// Compressed files of every other shard, instead of uncompressed ones if there are any, and
    /// the clusters of each.
    compressed: (usize, u64),
}

/// The number of shards of 32 GB that the environment asks for.
fn asked() -> Option<Figures> {
    let count = std::env::var("PACKFS_FAR").ok()?.parse().expect("PACKFS_FAR: a number");
    Some(Figures { count, block: "4096", flat: (305, 100 << 20), compressed: (305, 100) })
}

impl Figures {
    pub fn erofs() -> Self {
        asked().unwrap_or(Figures { count: 10, block: "512", flat: (4, 128 << 30), compressed: (0, 0) })
    }

    pub fn squashfs() -> Self {
        asked().unwrap_or(Figures { count: 3, block: "", flat: (2, 4 << 30), compressed: (0, 0) })
    }

    pub fn block_len(&self) -> u64 {
        self.block.parse().unwrap()
    }
}

/// A shard that was made.
#[derive(Clone)]
pub struct Shard {
    pub path: PathBuf,
    /// Paths and contents.
    pub known: Vec<(String, Vec<u8>)>,
    /// Path and length of an uncompressed file of zeros, or of a known one's hole.
    pub hole: Option<(String, u64)>,
}

/// A shard in the making: lengths of its files, those of known contents last.
struct Making {
    tree: Tree,
    names: Vec<String>,
    known: Vec<(String, Vec<u8>)>,
}

impl Making {
    /// Several shards share a directory.
    fn new(index: usize, lens: &[u64]) -> Self {
        let folder = format!("dir{:02}/shard{index:04}", index % 25);
        let mut random = Random::new(index as u64 + 1);
        let known = vec![
            (format!("{folder}/known-noise"), random.noise(70_001)),
            // The last cluster takes more bytes than it holds.
            (format!("{folder}/known-text"), random.text(3 * CLUSTER_LEN + 300)),
        ];
        let mut names: Vec<String> = (0..lens.len()).map(|file| format!("{folder}/file{file:03}")).collect();
        names.extend(known.iter().map(|row| row.0.clone()));
        let lens = lens.iter().copied().chain(known.iter().map(|row| row.1.len() as u64));
        let mut builder = TreeBuilder::new(Meta { mode: 0o755, ..Meta::default() });
        for (name, len) in names.iter().zip(lens) {
            let kind = NodeKind::File { len, content: ContentId(0) };
            let meta = Meta { mode: 0o644, ..Meta::default() };
            builder.add(&ImagePath::parse(name.as_bytes()).unwrap(), kind, meta, Xattrs::new()).unwrap();
        }
        Making { tree: builder.finish().unwrap(), names, known }
    }

    /// Writes the image around the files' places, which come in the order of their names.
    fn write<K: DataKind>(
        self,
        packer: &dyn PackFormat,
        layout: &dyn Layout<K>,
        plan: &Plan<K>,
        placed: Placed<K>,
        (file, path): (File, PathBuf),
        hole: Option<(String, u64)>,
    ) -> Shard {
        let mut files = vec![FilePlace::default(); self.tree.node_count() as usize];
        for (name, row) in self.names.iter().zip(placed.files) {
            let node = self.tree.find(&ImagePath::parse(name.as_bytes()).unwrap()).unwrap();
            files[node.index()] = row;
        }
        let placed = Placed { files, ..placed };
        let put = &mut |section: packfs_format::Section| {
            file.write_all_at(&section.bytes, section.offset).unwrap();
            Ok(())
        };
        layout.lay_out(&self.tree, plan, &placed, put).unwrap();
        let len = file.metadata().unwrap().len();
        file.set_len(len.next_multiple_of(packer.padding().max(1))).unwrap();
        Shard { path, known: self.known, hole }
    }
}

fn packer(
    format: &str,
    codec: &str,
    block_size: Option<u32>,
    options: &[(&str, &str)],
) -> Box<dyn PackFormat> {
    let options = options.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let codec = Some(codec.to_owned());
    let settings = PackSettings { codec, block_size, made_at: 0, options, ..PackSettings::default() };
    packfs_formats::by_name(format).unwrap().packer(&settings).unwrap()
}

/// Makes an EROFS shard. Every other one has 48-bit addresses.
pub fn erofs_shard(index: usize, figures: &Figures, folder: &Path) -> Shard {
    let (block_len, wide) = (figures.block_len(), index.is_multiple_of(2));
    let common = [("block", figures.block), ("fragments", "off")];
    let own: &[_] = if wide {
        &[("48bit", "on"), ("index", "extents"), ("kernel", "6.18")]
    } else {
        &[("kernel", "6.8")]
    };
    let packer = packer("erofs", "lz4", None, &[&common, own].concat());
    let AnyLayout::Clusters { layout, .. } = packer.layout() else { panic!("erofs fills clusters") };
    let compressed = figures.compressed.0 > 0 && wide;
    let (count, len) =
        if compressed { (figures.compressed.0, figures.compressed.1 * DECODED_LEN) } else { figures.flat };
    let making = Making::new(index, &vec![len; count]);
    let plan = layout.plan(&making.tree, &[]).unwrap();
    let path = folder.join(format!("shard{index:04}.erofs"));
    let file = File::create(&path).unwrap();
    let mut at = plan.data_start;
    let (mut rows, mut clusters) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let row = FilePlace { start: at, first: clusters.len() as u64, ..FilePlace::<Clusters>::default() };
        if compressed {
            let cluster = |number: u64| Cluster {
                offset: at + number * STORED_LEN,
                len: DECODED_LEN,
                stored_len: STORED_LEN as u32,
                form: ClusterForm::Compressed,
                second: false,
            };
            clusters.extend((0..figures.compressed.1).map(cluster));
            rows.push(FilePlace { count: figures.compressed.1 as u32, ..row });
            at += figures.compressed.1 * STORED_LEN;
        } else {
            rows.push(FilePlace { form: FileForm::Flat, ..row });
            at += len;
        }
    }
    let (noise, text) = (&making.known[0].1, &making.known[1].1);
    file.write_all_at(noise, at).unwrap();
    rows.push(FilePlace { start: at, form: FileForm::Flat, ..FilePlace::default() });
    at += (noise.len() as u64).next_multiple_of(block_len);
    let first = clusters.len();
    let end = write_clusters(&file, at, text, block_len, &mut clusters);
    let count = (clusters.len() - first) as u32;
    rows.push(FilePlace { first: first as u64, count, ..FilePlace::default() });
    let data = ClustersPlaced { clusters, hash: index as u128, ..ClustersPlaced::default() };
    let placed = Placed { files: rows, data_end: end, data, ..Placed::default() };
    let hole = (!compressed).then(|| (making.names[0].clone(), len));
    making.write(&*packer, layout, &plan, placed, (file, path), hole)
}

/// Writes bytes in clusters of LZ4; returns their end.
fn write_clusters(file: &File, start: u64, bytes: &[u8], block_len: u64, rows: &mut Vec<Cluster>) -> u64 {
    let mut encoder = encoder(&CodecSettings::Lz4(Lz4Settings { acceleration: 1 })).unwrap();
    let mut at = start;
    for part in bytes.chunks(CLUSTER_LEN) {
        let mut stored = vec![0; part.len()];
        let stored_len = encoder.compress(part, &mut stored).unwrap().expect("text shrinks");
        // Zeros stand in front.
        let end = at + (stored_len as u64).next_multiple_of(block_len);
        file.write_all_at(&stored[..stored_len], end - stored_len as u64).unwrap();
        let (len, stored_len) = (part.len() as u64, stored_len as u32);
        rows.push(Cluster { offset: at, len, stored_len, form: ClusterForm::Compressed, second: false });
        at = end;
    }
    at
}

/// Makes a SquashFS shard.
pub fn squash_shard(index: usize, figures: &Figures, folder: &Path) -> Shard {
    let packer = packer("squashfs", "gzip", Some(STORED_LEN as u32), &[("fragments", "off")]);
    let AnyLayout::Blocks(layout) = packer.layout() else { panic!("squashfs fills blocks") };
    let (count, len) = figures.flat;
    let making = Making::new(index, &vec![len; count]);
    let plan = layout.plan(&making.tree, &[]).unwrap();
    let path = folder.join(format!("shard{index:04}.sqfs"));
    let file = File::create(&path).unwrap();
    let mut at = plan.data_start;
    let (mut rows, mut blocks) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let count = len / STORED_LEN;
        rows.push(FilePlace {
            start: at,
            first: blocks.len() as u64,
            count: count as u32,
            ..FilePlace::default()
        });
        let block = StoredBlock { stored_len: STORED_LEN as u32, compressed: false };
        blocks.extend((0..count).map(|_| block));
        at += len;
    }
    let mut encoder =
        encoder(&CodecSettings::Zlib(ZlibSettings { level: 6, window_log: 15, strategies: Vec::new() }))
            .unwrap();
    for (_, bytes) in &making.known {
        let mut stored = vec![0; bytes.len()];
        let shrunk = encoder.compress(bytes, &mut stored).unwrap();
        let stored = shrunk.map_or(bytes.as_slice(), |len| &stored[..len]);
        file.write_all_at(stored, at).unwrap();
        rows.push(FilePlace { start: at, first: blocks.len() as u64, count: 1, ..FilePlace::default() });
        blocks.push(StoredBlock { stored_len: stored.len() as u32, compressed: shrunk.is_some() });
        at += stored.len() as u64;
    }
    let placed = Placed {
        files: rows,
        data_end: at,
        data: BlocksPlaced { blocks, ..BlocksPlaced::default() },
        ..Placed::default()
    };
    let hole = Some((making.names[0].clone(), len));
    making.write(&*packer, layout, &plan, placed, (file, path), hole)
}
