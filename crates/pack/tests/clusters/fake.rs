//! A format that plans as a test requests and keeps the engine's answers.

use packfs_codec::CodecSettings;
use packfs_core::{
    ContentId, ContentReader, Contents, Error, ImagePath, Loss, Meta, NodeId, NodeKind, Progress, Result,
    Silent, Tree, TreeBuilder, Xattrs,
};
use packfs_format::{
    AnyLayout, ClusterPlan, ClusterRecipe, ClusterStorage, Clusters, ClustersPlaced, FileJob, InlineTail,
    Layout, PackFormat, Placed, Plan, Recipe, Section, Tail, TailPlace,
};
use packfs_format::{Capabilities, FormatInfo};
use packfs_pack::{PackOptions, PackReport, pack};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Mutex;

/// Sizes of a small format: blocks of 512 bytes, clusters of four blocks.
pub const BLOCK_LEN: u32 = 512;
pub const CLUSTER_LEN: u32 = 2048;
pub const SEGMENT_LEN: u64 = 16 << 10;

pub fn cut(codec: CodecSettings, cluster_len: u32) -> ClusterPlan {
    ClusterPlan {
        block_len: BLOCK_LEN,
        recipes: vec![
            Recipe::Clusters(ClusterRecipe { codec, second: None, cluster_len }),
            Recipe::Flat { sparse_chunk_len: None },
            Recipe::Chunks { chunk_len: 2 * u64::from(BLOCK_LEN) },
        ],
        packed_recipe: 0,
        segment_len: SEGMENT_LEN,
        byte_aligned: false,
        interlaced: false,
        share_ranges: false,
        decoded_len_max: 8 * CLUSTER_LEN,
        share_tails: true,
        inline_flat_max: BLOCK_LEN / 4 * 3,
        sparse: None,
    }
}

/// Files in memory, by [`ContentId`]; if `sparse`, every block of zeros is reported as a hole.
#[derive(Default)]
pub struct Files {
    pub all: Vec<Vec<u8>>,
    pub sparse: bool,
    /// Files whose last byte cannot be read.
    pub broken: Vec<usize>,
    /// Places of files in the source.
    pub places: HashMap<usize, u64>,
}

impl Files {
    pub fn new(all: Vec<Vec<u8>>) -> Self {
        Files { all, ..Files::default() }
    }

    pub fn tree(&self) -> Tree {
        let mut builder = TreeBuilder::new(Meta::default());
        for (index, bytes) in self.all.iter().enumerate() {
            let path = ImagePath::parse(format!("f{index:05}").as_bytes()).unwrap();
            let kind = NodeKind::File { len: bytes.len() as u64, content: ContentId(index as u64) };
            builder.add(&path, kind, Meta::default(), Xattrs::new()).unwrap();
        }
        builder.finish().unwrap()
    }
}

struct Opened<'a> {
    bytes: &'a [u8],
    sparse: bool,
    broken: bool,
}

impl Contents for Files {
    fn open(&self, id: ContentId) -> Result<Box<dyn ContentReader + '_>> {
        let index = id.0 as usize;
        let broken = self.broken.contains(&index);
        Ok(Box::new(Opened { bytes: &self.all[index], sparse: self.sparse, broken }))
    }

    fn place(&self, id: ContentId) -> Option<Box<[u64]>> {
        Some([*self.places.get(&(id.0 as usize))?].into())
    }
}

impl ContentReader for Opened<'_> {
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let range = offset as usize..offset as usize + buf.len();
        if self.broken && range.end == self.bytes.len() {
            return Err(Error::failed("the disk is broken"));
        }
        buf.copy_from_slice(&self.bytes[range]);
        Ok(())
    }

    fn next_data(&mut self, offset: u64) -> Result<Option<Range<u64>>> {
        let len = self.bytes.len() as u64;
        if !self.sparse {
            return Ok((offset < len).then_some(offset..len));
        }
        let block = u64::from(BLOCK_LEN);
        let is_hole = |at: u64| {
            let start = at / block * block;
            self.bytes[start as usize..(start + block).min(len) as usize].iter().all(|&b| b == 0)
        };
        let mut start = offset;
        while start < len && is_hole(start) {
            start = (start / block + 1) * block;
        }
        let mut end = start;
        while end < len && !is_hole(end) {
            end = (end / block + 1) * block;
        }
        Ok((start < len).then(|| start..end.min(len)))
    }
}

/// Places, and inline tails by their id.
pub type Answer = (Placed<Clusters>, HashMap<u64, Vec<u8>>);

pub struct Fake {
    pub cut: ClusterPlan,
    pub job: fn(u64) -> (Tail, u16),
    pub dedupe: bool,
    pub holes: bool,
    pub answer: Mutex<Option<Answer>>,
}

impl Fake {
    pub fn new(cut: ClusterPlan, job: fn(u64) -> (Tail, u16)) -> Self {
        Fake { cut, job, dedupe: true, holes: true, answer: Mutex::new(None) }
    }
}

const DATA_START: u64 = 4096;

impl PackFormat for Fake {
    fn format(&self) -> &'static FormatInfo {
        static INFO: FormatInfo = FormatInfo { name: "fake", ..FormatInfo::EMPTY };
        &INFO
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    fn codec_name(&self) -> String {
        String::new()
    }

    fn layout(&self) -> AnyLayout<'_> {
        AnyLayout::Clusters { layout: self, data_files: &[] }
    }

    fn padding(&self) -> u64 {
        1
    }
}

impl Layout<Clusters> for Fake {
    fn plan(&self, tree: &Tree, _first_used: &[NodeId]) -> Result<Plan<Clusters>> {
        let files = tree.nodes().filter_map(|(node, row)| match row.kind {
            NodeKind::File { len, content } if len > 0 => {
                let (tail, recipe) = (self.job)(content.0);
                Some(FileJob { node, storage: ClusterStorage { tail, recipe, data_file: 0 } })
            }
            _ => None,
        });
        Ok(Plan {
            data_start: DATA_START,
            files: files.collect(),
            first_used: Vec::new(),
            reorder_len: u64::MAX,
            dedupe: self.dedupe,
            holes: self.holes,
            losses: Vec::<Loss>::new(),
            data: self.cut.clone(),
        })
    }

    fn lay_out(
        &self,
        _: &Tree,
        _: &Plan<Clusters>,
        placed: &Placed<Clusters>,
        put: &mut dyn FnMut(Section) -> Result<()>,
    ) -> Result<()> {
        let mut inline = HashMap::new();
        for place in &placed.files {
            if let Some(TailPlace::Inline(tail)) = place.tail {
                let InlineTail { id, stored_len, .. } = tail;
                let mut bytes = Vec::new();
                placed.data.tails.read(tail, &mut bytes)?;
                assert_eq!(bytes.len(), stored_len as usize);
                inline.insert(id, bytes);
            }
        }
        let ClustersPlaced { clusters, packed, hash, .. } = &placed.data;
        let data = ClustersPlaced {
            clusters: clusters.clone(),
            packed: *packed,
            hash: *hash,
            ..ClustersPlaced::default()
        };
        let kept = Placed { files: placed.files.clone(), failed: placed.failed.clone(), data, ..*placed };
        *self.answer.lock().unwrap() = Some((kept, inline));
        put(Section { owner: "head", offset: 0, bytes: vec![0; DATA_START as usize] })
    }
}

/// Result of packing.
pub struct Packed {
    pub tree: Tree,
    pub cut: ClusterPlan,
    pub plan: Plan<Clusters>,
    pub placed: Placed<Clusters>,
    pub inline: HashMap<u64, Vec<u8>>,
    pub image: Vec<u8>,
    pub report: PackReport,
}

pub fn try_pack(
    format: &Fake,
    files: &Files,
    options: &PackOptions,
    progress: &dyn Progress,
) -> Result<Packed> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    let tree = files.tree();
    let options = PackOptions { sync: false, ..options.clone() };
    let result = pack(&tree, files, format, &path, &options, progress);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), usize::from(result.is_ok()));
    let report = result?;
    let (placed, inline) = format.answer.lock().unwrap().take().unwrap();
    let plan = format.plan(&tree, &[])?;
    let image = std::fs::read(&path).unwrap();
    Ok(Packed { tree, cut: format.cut.clone(), plan, placed, inline, image, report })
}

pub fn pack_with(format: &Fake, files: &Files, jobs: usize) -> Packed {
    try_pack(format, files, &PackOptions { jobs, ..PackOptions::default() }, &Silent).unwrap()
}
