//! The pack engine: orders files, reads their data, shares what is the same, compresses on all cores and writes in one
//! fixed order.
//!
//! Owns everything between a format's [`packfs_format::Plan`] and its metadata. Invariant: the image depends on the tree,
//! the plan and the contents alone, never on the number of threads or the order in which they finish. It does not
//! know any format: what lies around the data comes from [`packfs_format::PackFormat::layout`].
#![forbid(unsafe_code)]

mod base;
mod by_class;
mod class;
mod clusters;
mod context;
mod coverage;
mod cut;
mod data;
mod data_row;
mod destination;
mod effort;
mod failures;
mod gain;
mod limits;
mod losses;
mod noise;
mod order;
mod output;
mod parallel;
mod probe;
mod queue;
mod report;
mod room;
mod runs;
mod seen;
mod spans;
mod spool;
mod tails;
mod twins;
mod verify;
mod witness;
mod worth;

pub use base::{Base, Proof};
pub use by_class::ClassRow;
pub use class::{Class, Machine};
pub use destination::temporary_folder;
pub use effort::Effort;
pub use gain::Gain;
pub use order::Order;
pub use report::{PackReport, Stored};
pub use room::Room;
pub use verify::{Verify, Written, WrittenFile};

use base::Reuse;
use context::Context;
use coverage::Coverage;
use data_row::DataRow;
use output::Output;
use packfs_core::{Contents, Error, NodeId, Progress, Result, Stage, Tree};
use packfs_format::{Cut, DataFile, InlineTail, InlineTails, PackFormat, Plan};
use room::Place;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use witness::Testimony;

/// How to pack, besides what the format decides.
#[derive(Clone, Debug)]
pub struct PackOptions {
    /// Worker threads; 0: one for each processor.
    pub jobs: usize,
    /// Most memory to take, in bytes, the tree included; `None`: what the control groups of this process allow. Short memory
    /// costs workers, never a different image.
    pub memory: Option<u64>,
    /// Bytes before the image in the output file; those of an existing file are kept, others are zeros.
    pub image_offset: u64,
    /// Most bytes that the image may have.
    pub room: Room,
    /// Whether a file that cannot be read is stored empty and reported, instead of ending the work.
    pub keep_going: bool,
    /// Whether what the format cannot hold may be lost.
    pub lossy: bool,
    /// Whether the image is on the disk before it gets its name.
    pub sync: bool,
    /// In which order small files are placed.
    pub order: Order,
    /// What is used first, in that order: its data and metadata lie in front, apart from all others.
    pub first_used: Vec<NodeId>,
    /// One priority a node, instead of that order: higher ones are placed first, equal ones as the tree goes.
    pub priorities: Option<Vec<i16>>,
    /// What compressing has to save, or data is stored as it is.
    pub gain: Gain,
    /// How much work a block is worth.
    pub effort: Effort,
    /// An earlier image whose compressed blocks are copied where they hold what the new one is to hold.
    pub base: Option<Arc<Base>>,
    /// Who looks at the image before it gets its name. Then hashes of contents are taken as they are read.
    pub verify: Option<Arc<dyn Verify>>,
}

impl Default for PackOptions {
    fn default() -> Self {
        PackOptions {
            jobs: 0,
            memory: None,
            image_offset: 0,
            room: Room::default(),
            keep_going: false,
            lossy: false,
            sync: true,
            order: Order::default(),
            first_used: Vec::new(),
            priorities: None,
            gain: Gain::default(),
            effort: Effort::default(),
            base: None,
            verify: None,
        }
    }
}

/// Packs a tree into an image file.
///
/// The image is written beside `output` and renamed when it is complete, so a failure leaves what was there before.
/// A block device is written in place. A fifo, or standard output if `output` is `-`, gets the image once it is complete;
/// until then it is kept in [`temporary_folder`]. Where the format keeps data in files of their own
/// ([`PackFormat::data_files`]), those are written in the same way.
///
/// Errors: `Failed` for what the format cannot hold (unless [`PackOptions::lossy`]), `Io` and `Failed` from reading
/// contents and writing the image, `Cancelled`.
pub fn pack(
    tree: &Tree,
    contents: &dyn Contents,
    format: &dyn PackFormat,
    output: &Path,
    options: &PackOptions,
    progress: &dyn Progress,
) -> Result<PackReport> {
    let mut plan = format.plan(tree, &options.first_used)?;
    format.warnings(tree).iter().for_each(|warning| progress.warn(warning));
    let context = Context { tree, contents, plan: &plan, reuse: None };
    if let Some(settled) = clusters::settle_sparse(&context, format.format().name)? {
        plan = settled;
    }
    limits::check_verify(options, tree.node_count())?;
    losses::accept(format.format().name, &plan.losses, options.lossy, progress)?;
    let wishes = format.data_files();
    check_data_files(wishes, output, &plan)?;
    let mut clock = Clock::start();
    let reuse = match &options.base {
        Some(base) => {
            base.check(format)?;
            let context = Context { tree, contents, plan: &plan, reuse: None };
            Some(Reuse::find(&context, base, options, progress)?)
        }
        None => None,
    };
    let reuse = reuse.as_ref();
    if reuse.is_some() {
        clock.passed(Stage::Base);
    }
    let order = order::sort(&Context { tree, contents, plan: &plan, reuse }, options, progress)?;
    (plan.files, plan.first_used_files) = (order.files, order.first_used_count);
    plan.stretch_starts = order.stretch_starts;
    let far_apart = order.far_apart;
    clock.passed(Stage::Order);
    let context = &Context { tree, contents, plan: &plan, reuse };
    let twins = twins::find(context, format, options, progress)?;
    let runs = runs::find(context, &twins, options, progress, output)?;
    runs.move_tails(&mut plan);
    let context = &Context { tree, contents, plan: &plan, reuse };
    clock.passed(Stage::Dedupe);

    let place = Place { base: options.image_offset, room: options.room, len_bound: len_bound(tree, &plan) };
    let mut out = Output::create(output, &place, plan.data_start, progress)?;
    let mut data_files: Vec<Output> = wishes
        .iter()
        .map(|file| Output::create(&file.path, &Place::default(), 0, progress))
        .collect::<Result<_>>()?;
    let mut testimony = Testimony::new(options.verify.is_some(), tree.node_count());
    let (placed, skipped, classes, tails): (_, _, _, Box<dyn InlineTails>) = match &plan.cut {
        Cut::FixedInput { .. } => {
            let (placed, skipped, classes) =
                data::place(context, (&twins, &runs), options, progress, &mut out, &mut testimony)?;
            (placed, skipped, classes, Box::new(NoInlineTails))
        }
        Cut::FixedOutput(cut) => {
            let job = clusters::Job { context, twins: &twins, options, progress, output };
            let row = match data_files.is_empty() {
                true => DataRow::in_image(&mut out),
                false => DataRow::in_files(&mut data_files, wishes, cut.block_len, format.padding()),
            };
            let (placed, skipped, tails, classes) = clusters::place(&job, cut, row, &mut testimony)?;
            (placed, skipped, classes, Box::new(tails))
        }
    };
    clock.passed(Stage::Data);
    progress.begin(Stage::Metadata, 0, 0);
    let mut coverage = Coverage::default();
    format.layout(tree, &plan, &placed, tails.as_ref(), &mut |section| {
        if progress.cancelled() {
            return Err(Error::cancelled());
        }
        coverage.add(&section);
        out.write_section(&section)
    })?;
    let data = if wishes.is_empty() { plan.data_start..placed.data_end } else { 0..0 };
    coverage.check(data, placed.leads(plan.lead))?;
    if progress.cancelled() {
        return Err(Error::cancelled());
    }
    for file in &mut data_files {
        file.end(format.padding())?;
    }
    let image_len = out.end(format.padding())?;
    for section in format.seal(&out.written())? {
        out.overwrite(&section)?;
    }
    if let Some(verify) = &options.verify {
        clock.passed(Stage::Metadata);
        runs.testify(&mut testimony);
        twins.check_unchanged(context, &mut testimony)?;
        let written = Written {
            image: out.written(),
            data_files: data_files.iter().map(Output::written).collect(),
            format,
            tree,
            failed: &placed.failed,
            contents: testimony.rows(),
            jobs: limits::verify_jobs(options),
        };
        let verified = verify.verify(&written, progress);
        if verified.is_err() {
            out.spoil();
        }
        verified?;
    }
    // Data first: an image without them is worth nothing.
    for file in data_files {
        file.finish(options.sync)?;
    }
    out.finish(options.sync)?;
    let (base_blocks, base_bytes) = reuse.map_or((0, 0), |reuse| {
        reuse.warn(progress);
        reuse.copied.get()
    });
    let report = PackReport::new(tree, plan, &placed, &coverage, skipped, image_len);
    let report = PackReport { base_blocks, base_bytes, far_apart, ..report };
    clock.passed(if options.verify.is_some() { Stage::Verify } else { Stage::Metadata });
    let data_files = wishes.iter().map(|file| file.path.clone()).collect();
    let stages = clock.stages;
    let (driver, codec) = (format.driver(), format.codec_name());
    let metadata_advice = format.metadata_advice(tree);
    let format = format.format().name;
    let shared = Stored { bytes: classes.shared_bytes, ..report.shared };
    let report = PackReport { data_files, classes: classes.rows, shared, stages, ..report };
    Ok(PackReport { format, driver, metadata_advice, codec, ..report })
}

/// More bytes than an image of a tree has, roughly, if nothing of it is shared or shrinks.
fn len_bound(tree: &Tree, plan: &Plan) -> u64 {
    // Each file may leave most of a block free, and has an inode and a name.
    const NODE_LEN: u64 = 5 << 10;
    const SPARE: u64 = 1 << 20;
    let nodes = u64::from(tree.node_count()).saturating_mul(NODE_LEN);
    let files = tree.bytes_total();
    [nodes, files, files / 64, SPARE].into_iter().fold(plan.data_start, u64::saturating_add)
}

/// How long each stage takes.
struct Clock {
    last: Instant,
    stages: Vec<(Stage, Duration)>,
}

impl Clock {
    fn start() -> Self {
        Clock { last: Instant::now(), stages: Vec::new() }
    }

    /// A stage is over.
    fn passed(&mut self, stage: Stage) {
        let now = Instant::now();
        self.stages.push((stage, now - self.last));
        self.last = now;
    }
}

/// Errors: `Usage` for two outputs in one file.
fn check_data_files(files: &[DataFile], output: &Path, plan: &Plan) -> Result<()> {
    if files.iter().any(|file| file.path == output) {
        return Err(Error::usage(format!("{output:?} cannot be both the image and the file of its data")));
    }
    let is_again =
        |(index, file): &(usize, &DataFile)| files[..*index].iter().any(|other| other.path == file.path);
    if let Some((_, file)) = files.iter().enumerate().find(is_again) {
        return Err(Error::usage(format!("{:?} cannot be two files of data", file.path)));
    }
    let holds = files.is_empty() || plan.data_start == 0 && matches!(plan.cut, Cut::FixedOutput(_));
    if holds { Ok(()) } else { Err(Error::failed("internal: these data cannot lie in files of their own")) }
}

/// For formats that store every tail in the data.
struct NoInlineTails;

impl InlineTails for NoInlineTails {
    fn read(&self, _: InlineTail, _: &mut Vec<u8>) -> Result<()> {
        Err(Error::failed("internal: no tail was kept for the format"))
    }
}
