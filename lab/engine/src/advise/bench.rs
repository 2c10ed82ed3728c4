//! Equipment for every candidate: the tree, parts that stand for it, the files that are read, and
//! room for images.

use super::candidates::Candidate;
use super::kernels::Kernel;
use super::measure::{self, Packed};
use super::sample::Sample;
use super::scratch::{memory_folder, scratch};
use super::{Question, sample};
use crate::scratch::Scratch;
use packfs::source::{Loaded, Trace};
use packfs::{Error, ImagePath, NodeId, Progress, Result, Tree, processor_count};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that are packed: at first and with `--quick`.
const SAMPLE_LEN: [u64; 2] = [64 << 20, 32 << 20];
/// Number of samples.
const SAMPLES: [usize; 2] = [4, 4];
/// Trees up to this are packed as a whole by every candidate.
const WHOLE_LEN: [u64; 2] = [64 << 20, 32 << 20];
/// Bytes of a longer tree that are packed with the quick codec.
const REFERENCE_LEN: [u64; 2] = [8 << 30, 2 << 30];
/// And how many nodes of it, since small ones cost more than their bytes.
const REFERENCE_NODES: [u64; 2] = [2_000_000, 250_000];
/// Room for an image of that in memory; incompressible files take a little more than they have.
const MEMORY_LEN: [u64; 2] = [2 * WHOLE_LEN[0], 2 * WHOLE_LEN[1]];

pub(super) struct Bench<'a> {
    pub(super) question: &'a Question,
    /// The kernel that is to mount the image.
    pub(super) kernel: Kernel,
    pub(super) all: Arc<Loaded>,
    pub(super) whole: Arc<Loaded>,
    pub(super) times: f64,
    /// Parts that stand for that; none: it is short enough itself.
    pub(super) samples: Vec<Sample>,
    /// A list of what is read, which is packed in front; none: nothing that was given is read.
    pub(super) trace: Option<&'a Path>,
    pub(super) files: Vec<ImagePath>,
    pub(super) jobs: usize,
    pub(super) scratch: Scratch,
    /// A folder in memory, where the kernel may mount for us.
    pub(super) memory: Option<Scratch>,
}

impl<'a> Bench<'a> {
    /// Takes samples and picks files.
    ///
    /// Errors: those of reading the trace and of making the scratch folder; `Usage` for a trace
    /// that names no file.
    pub(super) fn new(question: &'a Question, kernel: Kernel, all: &Arc<Loaded>) -> Result<Bench<'a>> {
        Bench::with_budget(question, kernel, all, budget(&all.tree, question.quick))
    }

    /// Like [`Bench::new`], with what is packed of a tree that weighs more, as [`sample::weight`]
    /// weighs.
    pub(super) fn with_budget(
        question: &'a Question,
        kernel: Kernel,
        all: &Arc<Loaded>,
        budget: u64,
    ) -> Result<Bench<'a>> {
        let quick = usize::from(question.quick);
        let trace = question.trace.as_deref().filter(|_| question.want.reads_trace());
        let traced = trace.map_or(Ok(Vec::new()), |path| traced(path, question, &all.tree))?;
        let (whole, times) = cut_down(all, budget, &traced, question.seed)?;
        let samples = if sample::weight(&whole.tree) > WHOLE_LEN[quick] {
            sample::take(&whole, SAMPLE_LEN[quick], SAMPLES[quick], question.seed)?
        } else {
            Vec::new()
        };
        let paths = |tree: &Tree, ids: Vec<NodeId>| ids.into_iter().map(|id| tree.path(id)).collect();
        let files = if trace.is_some() {
            paths(&all.tree, traced)
        } else {
            paths(&whole.tree, question.want.files(&whole.tree, &[], question.seed))
        };
        Ok(Bench {
            question,
            kernel,
            all: Arc::clone(all),
            whole,
            times,
            samples,
            trace,
            files,
            jobs: if question.jobs == 0 { processor_count() } else { question.jobs },
            scratch: scratch(question.scratch.as_deref())?,
            memory: memory_folder(MEMORY_LEN[quick]),
        })
    }

    /// Makes an image, as [`measure::pack`].
    pub(super) fn pack(
        &self,
        loaded: &Arc<Loaded>,
        candidate: &Candidate,
        trace: Option<&Path>,
        image: &Path,
        progress: &dyn Progress,
    ) -> Result<Packed> {
        measure::pack(loaded, candidate, trace, image, self.jobs, progress)
    }

    /// Returns the place of sample images: in memory, if the kernel is to read them.
    pub(super) fn sample_image(&self) -> PathBuf {
        self.memory.as_ref().unwrap_or(&self.scratch).path("sample")
    }
}

/// The files of a trace that are read, in its order.
///
/// Errors: those of reading it; `Usage` if none of them is in the tree.
fn traced(path: &Path, question: &Question, tree: &Tree) -> Result<Vec<NodeId>> {
    let nodes = Trace::read(path)?.nodes(tree).0;
    let files = if nodes.is_empty() { nodes } else { question.want.files(tree, &nodes, question.seed) };
    if files.is_empty() {
        let message = format!("the trace {path:?} names no file of the tree with a byte in it");
        return Err(Error::usage(message).hint("it lists one path a line, from the root of the tree on"));
    }
    Ok(files)
}

/// Returns the weight of a tree that is packed with the quick codec ([`sample::weight`]).
fn budget(tree: &Tree, quick: bool) -> u64 {
    let quick = usize::from(quick);
    let nodes = f64::from(tree.node_count().max(1));
    let of_nodes = sample::weight(tree) as f64 * REFERENCE_NODES[quick] as f64 / nodes;
    REFERENCE_LEN[quick].min(of_nodes as u64)
}

/// Returns as much of a tree as the budget allows with all of `kept`, and the quotient of all to
/// it.
fn cut_down(all: &Arc<Loaded>, budget: u64, kept: &[NodeId], seed: u64) -> Result<(Arc<Loaded>, f64)> {
    let weight = sample::weight(&all.tree);
    if weight <= budget {
        return Ok((Arc::clone(all), 1.0));
    }
    let part = sample::part(all, budget, kept, seed)?;
    let times = weight as f64 / sample::weight(&part.loaded.tree).max(1) as f64;
    Ok((part.loaded, times))
}
