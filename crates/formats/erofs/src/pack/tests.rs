//! Random clusters, laid out without any data, must read back as they were placed, whatever form
//! their index has.

use crate::Erofs;
use crate::options::Options;
use packfs_codec::Algorithm;
use packfs_core::{ContentId, Image, ImagePath, Meta, NodeKind, Result, TreeBuilder, Xattrs};
use packfs_format::{
    Cluster, ClusterForm, ClustersPlaced, DirCursor, Extent, ExtentFrom, FileForm, FilePlace, Format,
    InlineTail, InlineTails, Layout, PackSettings, Placed, TailPlace, Volume,
};
use packfs_testkit::{BytesImage, Random};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Tails of one repeated byte.
#[derive(Debug)]
struct Tails;

const TAIL_BYTE: u8 = 0x5a;

impl InlineTails for Tails {
    fn read(&self, tail: InlineTail, out: &mut Vec<u8>) -> Result<()> {
        out.resize(out.len() + tail.stored_len as usize, TAIL_BYTE);
        Ok(())
    }
}

/// Variations of the clusters of a test.
#[derive(Clone, Copy, Debug)]
struct Kind {
    block_len: u64,
    index: &'static str,
    blocks_max: u64,
    /// Lets files share clusters and parts of them, with gaps between clusters.
    scattered: bool,
}

const PACKED_LEN: u64 = 100_000;

/// Clusters of a file, its tail and its length.
fn random_file(random: &mut Random, kind: Kind, start: u64) -> (Vec<Cluster>, Option<TailPlace>, u64, u64) {
    let block = kind.block_len;
    let (mut clusters, mut at, mut size): (Vec<Cluster>, u64, u64) = (Vec::new(), start, 0);
    let first_len = if random.below(10) == 0 { 2500 } else { 12 };
    for count in 0..random.below(60) {
        if kind.scattered && random.below(4) == 0 {
            at += block * random.below(3);
        }
        let shared = clusters.get(random.below(count + 1) as usize).copied();
        let cluster = match (random.below(4), shared) {
            (0, _) => {
                let len = block * (1 + random.below(5));
                let (stored_len, form) = (len as u32, ClusterForm::Plain);
                Cluster { offset: at, len, stored_len, form, second: false }
            }
            (1, Some(shared)) if kind.scattered && shared.form == ClusterForm::Compressed => {
                let space = u64::from(shared.stored_len).next_multiple_of(block);
                let len = space + 1 + random.below(shared.len - space);
                Cluster { len, form: ClusterForm::CompressedPart, ..shared }
            }
            _ => {
                let blocks = 1 + random.below(kind.blocks_max);
                let stored_len = (blocks * block - random.below(block)) as u32;
                let longest = if count == 0 { first_len } else { 12 };
                let len = blocks * block + 1 + random.below(longest * block);
                Cluster {
                    offset: at,
                    len,
                    stored_len,
                    form: ClusterForm::Compressed,
                    second: random.below(2) == 0,
                }
            }
        };
        if cluster.offset == at {
            at += u64::from(cluster.stored_len).next_multiple_of(block);
        }
        size += cluster.len;
        clusters.push(cluster);
    }
    // After plain blocks or clusters a tail starts in a separate block only if it is long enough
    // or the last.
    let tail = match random.below(4) {
        0 => {
            size += block + random.below(block);
            Some(TailPlace::Packed { offset: random.below(PACKED_LEN - 2 * block) })
        }
        1 if kind.index != "extents" && block == 4096 => {
            size += block + 1 + random.below(3 * block);
            let stored_len = 1 + random.below(block - 40) as u32;
            Some(TailPlace::Inline(InlineTail { id: 0, stored_len, compressed: true }))
        }
        _ => {
            let len = 1 + random.below(block);
            let (stored_len, form) = (len as u32, ClusterForm::Plain);
            clusters.push(Cluster { offset: at, len, stored_len, form, second: false });
            at += block;
            size += len;
            None
        }
    };
    (clusters, tail, size, at)
}

/// Lays out an image of one file, and returns what its reader says of the file.
fn round_trip(random: &mut Random, kind: Kind) {
    let settings = PackSettings {
        codec: Some("zstd:3+lz4".into()),
        block_size: Some((kind.blocks_max * kind.block_len) as u32),
        made_at: 0,
        options: [("kernel", "6.18"), ("index", kind.index), ("block", &kind.block_len.to_string())]
            .map(|(name, value)| (name.into(), value.into()))
            .into(),
        ..PackSettings::default()
    };
    let packer = super::ErofsPacker { options: Options::new(&settings).unwrap(), merged: None };
    let start = super::plan::head_len(&packer.options);
    let (clusters, tail, size, packed_start) =
        random_file(random, kind, start.next_multiple_of(kind.block_len));
    let mut builder = TreeBuilder::new(Meta::default());
    let file = NodeKind::File { len: size, content: ContentId(0) };
    builder.add(&ImagePath::parse(b"file").unwrap(), file, Meta::default(), Xattrs::new()).unwrap();
    let tree = builder.finish().unwrap();
    let plan = packer.plan(&tree, &[]).unwrap();
    let place = FilePlace {
        count: clusters.len() as u32,
        form: FileForm::Clusters { recipe: 0 },
        tail,
        ..FilePlace::default()
    };
    let packed = FilePlace { start: packed_start, form: FileForm::Flat, ..FilePlace::default() };
    let placed = Placed {
        files: vec![FilePlace::default(), place],
        data_end: packed_start + PACKED_LEN,
        data: ClustersPlaced {
            clusters: clusters.clone(),
            packed: Some((packed, PACKED_LEN)),
            tails: Box::new(Tails),
            ..ClustersPlaced::default()
        },
        ..Placed::default()
    };
    let mut image = vec![0; placed.data_end as usize];
    packer
        .lay_out(&tree, &plan, &placed, &mut |section| {
            let end = section.offset as usize + section.bytes.len();
            image.resize(image.len().max(end), 0);
            image[section.offset as usize..end].copy_from_slice(&section.bytes);
            Ok(())
        })
        .unwrap_or_else(|e| panic!("{kind:?}: {e}"));
    let image = Arc::new(BytesImage(image));
    let volume = Erofs.open(Arc::clone(&image) as Arc<dyn Image>).unwrap();
    let expected = Expected { clusters: &clusters, tail, packed_start, kind, image: &image.0 };
    let mut end = 0;
    let id = file_id(&*volume);
    let mut visit = |extent: Extent| {
        assert_eq!(extent.offset, end, "{kind:?}");
        end += extent.len;
        expected.check(extent);
        ControlFlow::Continue(())
    };
    volume.extents(id, 0..size, &mut visit).unwrap_or_else(|e| panic!("{kind:?}: {e}"));
    assert_eq!(end, size);
    // From anywhere in the middle too, where a reader looks back for the head.
    for _ in 0..5 {
        let from = random.below(size);
        let mut visit = |extent: Extent| {
            expected.check(extent);
            ControlFlow::Break(())
        };
        volume.extents(id, from..size, &mut visit).unwrap_or_else(|e| panic!("{kind:?}: {e}"));
    }
}

fn file_id(volume: &dyn Volume) -> packfs_format::InodeId {
    let mut id = volume.root();
    let mut visit = |entry: packfs_format::DirEntry, _| {
        id = entry.id;
        ControlFlow::Break(())
    };
    volume.read_dir(volume.root(), DirCursor::default(), &mut visit).unwrap();
    id
}

struct Expected<'a> {
    clusters: &'a [Cluster],
    tail: Option<TailPlace>,
    packed_start: u64,
    kind: Kind,
    image: &'a [u8],
}

impl Expected<'_> {
    #[track_caller]
    fn check(&self, extent: Extent) {
        let kind = self.kind;
        let mut start = 0;
        for cluster in self.clusters {
            let end = start + cluster.len;
            if extent.offset < end {
                let within = extent.offset - start;
                assert!(extent.offset + extent.len <= end || cluster.form == ClusterForm::Plain, "{kind:?}");
                match (cluster.form, extent.from) {
                    (ClusterForm::Plain, ExtentFrom::Stored(at)) => {
                        assert_eq!(at, cluster.offset + within, "{kind:?}");
                    }
                    (
                        ClusterForm::Compressed | ClusterForm::CompressedPart,
                        ExtentFrom::Block { block, start },
                    ) => {
                        let space = u64::from(cluster.stored_len).next_multiple_of(kind.block_len);
                        let stored_end = block.offset + u64::from(block.stored_len);
                        assert_eq!(u64::from(start), within, "{kind:?}");
                        assert_eq!(stored_end, cluster.offset + space, "{kind:?}");
                        assert_eq!(u64::from(block.decoded_len), cluster.len, "{kind:?}");
                        let algorithm = if cluster.second { Algorithm::Lz4 } else { Algorithm::Zstd };
                        assert_eq!(block.algorithm, Some(algorithm), "{kind:?}");
                    }
                    (form, from) => panic!("{kind:?}: {form:?} reads as {from:?}"),
                }
                return;
            }
            start = end;
        }
        match (self.tail, extent.from) {
            (Some(TailPlace::Packed { offset }), ExtentFrom::Stored(at)) => {
                assert_eq!(at, self.packed_start + offset + extent.offset - start, "{kind:?}");
            }
            (Some(TailPlace::Inline(tail)), ExtentFrom::Block { block, .. }) => {
                assert_eq!(block.stored_len, tail.stored_len, "{kind:?}");
                let stored = &self.image[block.offset as usize..][..tail.stored_len as usize];
                assert!(stored.iter().all(|&byte| byte == TAIL_BYTE), "{kind:?}");
            }
            (tail, from) => panic!("{kind:?}: {tail:?} reads as {from:?}"),
        }
    }
}

#[test]
fn random_clusters_read_back_from_every_form_of_index() {
    let mut random = Random::new(7);
    for block_len in [4096, 512] {
        for index in ["auto", "full", "compact", "extents"] {
            for blocks_max in [1, 2, 16] {
                for scattered in [false, true] {
                    for _ in 0..25 {
                        round_trip(&mut random, Kind { block_len, index, blocks_max, scattered });
                    }
                }
            }
        }
    }
}
