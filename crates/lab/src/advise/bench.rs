//! What every candidate is measured with: the tree, parts that stand for it, the files that are read, and room for images.

use super::kernels::Kernel;
use super::sample::Sample;
use super::scratch::{memory_folder, scratch};
use super::{Question, sample};
use packfs::source::{Loaded, Trace};
use packfs::{Error, ImagePath, NodeId, Result};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// How much is packed: at first and with `--quick`.
const SAMPLE_LEN: [u64; 2] = [64 << 20, 32 << 20];
/// How many samples that is.
const SAMPLES: [usize; 2] = [4, 4];
/// Trees up to this are packed as a whole by every candidate.
const WHOLE_LEN: [u64; 2] = [64 << 20, 32 << 20];
/// How much of a longer tree is packed with the quick codec.
const REFERENCE_LEN: [u64; 2] = [8 << 30, 2 << 30];
/// And how many nodes of it, since small ones cost more than their bytes.
const REFERENCE_NODES: [u64; 2] = [2_000_000, 250_000];
/// Room for an image of that in memory; incompressible files take a little more than they have.
const MEMORY_LEN: [u64; 2] = [2 * WHOLE_LEN[0], 2 * WHOLE_LEN[1]];

/// All that every candidate is measured with.
pub(super) struct Bench<'a> {
    pub(super) question: &'a Question,
    /// The kernel that is to mount the image.
    pub(super) kernel: Kernel,
    /// The tree.
    pub(super) all: Arc<Loaded>,
    /// As much of it as is packed with the quick codec, and how many times as much there is.
    pub(super) whole: Arc<Loaded>,
    pub(super) times: f64,
    /// Parts that stand for that; none: it is short enough itself.
    pub(super) samples: Vec<Sample>,
    /// The workload.
    pub(super) files: Vec<ImagePath>,
    pub(super) jobs: usize,
    pub(super) scratch: TempDir,
    /// A folder in memory, where the kernel may mount for us.
    pub(super) memory: Option<TempDir>,
}

impl<'a> Bench<'a> {
    /// Takes samples and picks files.
    ///
    /// Errors: those of reading the trace and of making the scratch folder; `Usage` for a trace that names no file.
    pub(super) fn new(question: &'a Question, kernel: Kernel, all: &Arc<Loaded>) -> Result<Bench<'a>> {
        let quick = usize::from(question.quick);
        let weight = sample::weight(&all.tree);
        let nodes = u64::from(all.tree.node_count());
        let of_nodes = (weight as f64 * REFERENCE_NODES[quick] as f64 / nodes.max(1) as f64) as u64;
        let budget = REFERENCE_LEN[quick].min(of_nodes);
        let (whole, times) = if weight > budget {
            let taken = sample::take(all, budget, 1, question.seed)?;
            let taken = taken.into_iter().next().ok_or_else(|| Error::failed("internal: an empty sample"))?;
            let times = weight as f64 / sample::weight(&taken.loaded.tree).max(1) as f64;
            (taken.loaded, times)
        } else {
            (Arc::clone(all), 1.0)
        };
        let samples = if sample::weight(&whole.tree) > WHOLE_LEN[quick] {
            sample::take(&whole, SAMPLE_LEN[quick], SAMPLES[quick], question.seed)?
        } else {
            Vec::new()
        };
        let traced = match &question.trace {
            Some(path) => Trace::read(path)?.nodes(&whole.tree).0,
            None => Vec::new(),
        };
        if question.trace.is_some() && traced.is_empty() {
            return Err(Error::usage("the trace names no file of the tree"));
        }
        let files = question.want.files(&whole.tree, &traced, question.seed);
        let files = files.into_iter().map(|id: NodeId| whole.tree.path(id)).collect();
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Bench {
            question,
            kernel,
            all: Arc::clone(all),
            whole,
            times,
            samples,
            files,
            jobs: if question.jobs == 0 { processors() } else { question.jobs },
            scratch: scratch(question.scratch.as_deref())?,
            memory: memory_folder(MEMORY_LEN[quick]),
        })
    }

    /// Where images of samples are made: in memory, if the kernel is to read them.
    pub(super) fn sample_image(&self) -> PathBuf {
        self.memory.as_ref().unwrap_or(&self.scratch).path().join("sample")
    }
}
