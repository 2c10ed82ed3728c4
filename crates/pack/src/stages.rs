//! The stages of packing; each produces the input of the next.

use crate::PackOptions;
use crate::base::{Kept, Reuse};
use crate::context::{Boundaries, Context};
use crate::coverage::Coverage;
use crate::data_row::DataRow;
use crate::digest_log::DigestLog;
use crate::duplicates::{self, Duplicates};
use crate::engine::{Engine, Job, Stored};
use crate::output::Output;
use crate::report::{PackReport, StageTime, Stored as BeforeAndAfter};
use crate::size_limit::Place;
use crate::survey::Figures;
use crate::verify::Written;
use crate::{limits, losses, order};
use packfs_core::{Contents, Error, NodeId, Progress, Result, Stage, Tree};
use packfs_format::{DataFile, Layout, PackFormat, Placed, Plan};
use std::path::Path;
use std::time::Instant;

pub(crate) struct Packing<'a> {
    pub tree: &'a Tree,
    pub contents: &'a dyn Contents,
    pub format: &'a dyn PackFormat,
    pub output: &'a Path,
    pub options: &'a PackOptions,
    pub progress: &'a dyn Progress,
}

impl Packing<'_> {
    /// Data goes to `data_files`, or to the image if there are none.
    pub(crate) fn run<E: Engine>(
        &self,
        layout: &dyn Layout<E>,
        data_files: &[DataFile],
    ) -> Result<PackReport> {
        let plan = self.plan(layout, data_files)?;
        let mut clock = Clock::start();
        let reuse = self.look_at_base(&plan)?;
        let reuse = reuse.as_ref();
        clock.passed_if(Stage::Base, reuse.is_some());
        let Ordered { plan, boundaries, far_apart } = self.order(plan, reuse)?;
        clock.passed(Stage::Order);
        let Compared { plan, duplicates, parts } = self.compare(plan, &boundaries)?;
        clock.passed(Stage::Dedupe);

        let mut files = self.create(&plan, data_files)?;
        let mut seen = DigestLog::new(self.options.verify.is_some(), self.tree.node_count());
        let context = &self.context(&plan, &boundaries);
        let (options, progress) = (self.options, self.progress);
        let job = Job {
            context,
            reuse,
            duplicates: &duplicates,
            parts: &parts,
            options,
            progress,
            output: self.output,
        };
        let mut stored = E::place(&job, files.row(E::block_len(&plan.data)), &mut seen)?;
        clock.passed(Stage::Data);
        let coverage = self.lay_out(layout, &plan, &stored.placed, &mut files)?;
        self.note_space(&plan, &mut stored, &coverage);
        self.end(&mut files)?;
        clock.passed_if(Stage::Metadata, options.verify.is_some());
        if options.verify.is_some() {
            duplicates.check_unchanged(context, &mut seen)?;
        }
        let walk = E::walk(context, &stored.placed);
        let hole_bytes = E::hole_bytes(context, &stored.placed);
        // The places of all files are freed before the image is read back.
        let failed = std::mem::take(&mut stored.placed.failed);
        let report = PackReport::new(self.tree, plan, &stored.placed, &coverage);
        let report = self.report(report, stored, reuse);
        drop((duplicates, parts));
        self.verify(&files, &failed, &seen)?;
        self.contents.check_unchanged()?;
        options.base.iter().try_for_each(|base| base.check_unchanged())?;
        let image_len = files.finish(options.sync)?;
        clock.passed(if options.verify.is_some() { Stage::Verify } else { Stage::Metadata });
        let data_files = data_files.iter().map(|file| file.path.clone()).collect();
        Ok(PackReport { image_len, walk, hole_bytes, far_apart, data_files, stages: clock.stages, ..report })
    }

    fn context<'c, E: Engine>(&'c self, plan: &'c Plan<E>, boundaries: &'c Boundaries) -> Context<'c, E> {
        Context { tree: self.tree, contents: self.contents, plan, boundaries }
    }

    fn plan<E: Engine>(&self, layout: &dyn Layout<E>, data_files: &[DataFile]) -> Result<Plan<E>> {
        let format = self.format.format().name;
        let plan = layout.plan(self.tree, &self.options.first_used)?;
        self.format.warnings(self.tree).iter().for_each(|warning| self.progress.warn(warning));
        let settled = E::settle(&self.context(&plan, &Boundaries::default()), format)?;
        let plan = settled.unwrap_or(plan);
        limits::check_verify(self.options, self.tree.node_count())?;
        losses::accept(format, &plan.losses, self.options.lossy, self.progress)?;
        check_names(data_files, self.output)?;
        Ok(plan)
    }

    fn look_at_base<E: Engine>(&self, plan: &Plan<E>) -> Result<Option<Reuse<'_, E::Kept>>> {
        let Some(base) = &self.options.base else { return Ok(None) };
        base.check(self.format)?;
        let boundaries = Boundaries::default();
        let context = self.context(plan, &boundaries);
        let find_kept = |reuse: &_| E::find_kept(&context, reuse, self.options, self.progress);
        Reuse::find(&context, base, find_kept).map(Some)
    }

    fn order<E: Engine>(&self, plan: Plan<E>, reuse: Option<&Reuse<'_, E::Kept>>) -> Result<Ordered<E>> {
        let stays = |node: NodeId| reuse.is_some_and(|reuse| reuse.kept.keeps_tail_of(node));
        let boundaries = Boundaries::default();
        let order = order::sort(&self.context(&plan, &boundaries), stays, self.options, self.progress)?;
        let plan = Plan { files: order.files, ..plan };
        Ok(Ordered { plan, boundaries: order.boundaries, far_apart: order.far_apart })
    }

    fn compare<E: Engine>(&self, mut plan: Plan<E>, boundaries: &Boundaries) -> Result<Compared<E>> {
        let Packing { format, options, progress, output, .. } = *self;
        let context = self.context(&plan, boundaries);
        let duplicates = duplicates::find(&context, format, options, progress)?;
        let parts = E::find_parts(&context, &duplicates, options, progress, output)?;
        E::amend(&parts, &mut plan);
        Ok(Compared { plan, duplicates, parts })
    }

    fn create<'f, E: Engine>(&self, plan: &Plan<E>, data_files: &'f [DataFile]) -> Result<Files<'f>> {
        let PackOptions { offset: base, size_limit, .. } = *self.options;
        let place = Place { base, size_limit, len_bound: len_bound(self.tree, plan) };
        let image = Output::create(self.output, &place, plan.data_start, self.progress)?;
        let create = |file: &DataFile| Output::create(&file.path, &Place::default(), 0, self.progress);
        let data = data_files.iter().map(create).collect::<Result<_>>()?;
        Ok(Files { image, image_len: 0, data, data_files, padding: self.format.padding() })
    }

    fn lay_out<E: Engine>(
        &self,
        layout: &dyn Layout<E>,
        plan: &Plan<E>,
        placed: &Placed<E>,
        files: &mut Files<'_>,
    ) -> Result<Coverage> {
        self.progress.begin(Stage::Metadata, 0, 0);
        let cancelled = || if self.progress.cancelled() { Err(Error::cancelled()) } else { Ok(()) };
        let mut coverage = Coverage::default();
        layout.lay_out(self.tree, plan, placed, &mut |section| {
            cancelled()?;
            coverage.add(&section);
            files.image.write_section(&section)
        })?;
        let data = if files.data.is_empty() { plan.data_start..placed.data_end } else { 0..0 };
        coverage.check(data, E::leads(&plan.data, placed).into_iter())?;
        cancelled()?;
        Ok(coverage)
    }

    /// Records the space before the length is checked, so that a survey sees images that are too
    /// long.
    fn note_space<E: Engine>(&self, plan: &Plan<E>, stored: &mut Stored<E>, coverage: &Coverage) {
        let Some(survey) = &self.options.survey else { return };
        let mut report = PackReport::default();
        E::add_to_report(&stored.placed, &mut report);
        survey.note(Figures {
            data_len: stored.placed.data_end - plan.data_start,
            metadata_len: coverage.by_owner().iter().map(|(_, len)| len).sum(),
            plain_len: report.plain_bytes,
            spaces: std::mem::take(&mut stored.classes.nodes),
        });
    }

    /// Files lack only their names afterwards.
    fn end(&self, files: &mut Files<'_>) -> Result<()> {
        files.end()?;
        for section in self.format.seal(&files.image.written())? {
            files.image.overwrite(&section)?;
        }
        Ok(())
    }

    fn verify(&self, files: &Files<'_>, failed: &[NodeId], seen: &DigestLog) -> Result<()> {
        let Some(verify) = &self.options.verify else { return Ok(()) };
        let written = Written {
            image: files.image.written(),
            data_files: files.data.iter().map(Output::written).collect(),
            format: self.format,
            tree: self.tree,
            failed,
            contents: seen.rows(),
            jobs: limits::verify_jobs(self.options),
        };
        verify.verify(&written, self.progress).inspect_err(|_| files.image.spoil())
    }

    fn report<E: Engine>(
        &self,
        mut report: PackReport,
        stored: Stored<E>,
        reuse: Option<&Reuse<'_, E::Kept>>,
    ) -> PackReport {
        let (base_blocks, base_bytes) = reuse.map_or((0, 0), |reuse| {
            reuse.warn(self.progress);
            reuse.copied.get()
        });
        // Names alone do not tell the classes.
        let is_blind = reuse.is_some_and(Reuse::is_blind);
        let classes = if is_blind { Vec::new() } else { stored.classes.rows };
        E::add_to_report(&stored.placed, &mut report);
        PackReport {
            format: self.format.format().name,
            driver: self.format.driver(),
            metadata_advice: self.format.metadata_advice(self.tree),
            default_advice: self.format.default_advice(),
            codec: self.format.codec_name(),
            skipped: stored.skipped,
            classes,
            fragments: BeforeAndAfter { bytes: stored.classes.shared_bytes, ..report.fragments },
            base_blocks,
            base_bytes,
            ..report
        }
    }
}

struct Ordered<E: Engine> {
    plan: Plan<E>,
    boundaries: Boundaries,
    far_apart: bool,
}

struct Compared<E: Engine> {
    plan: Plan<E>,
    duplicates: Duplicates,
    parts: E::Parts,
}

struct Files<'a> {
    image: Output,
    image_len: u64,
    data: Vec<Output>,
    data_files: &'a [DataFile],
    padding: u64,
}

impl Files<'_> {
    fn row(&mut self, block_len: u32) -> DataRow<'_> {
        if self.data.is_empty() {
            DataRow::in_image(&mut self.image)
        } else {
            DataRow::in_files(&mut self.data, self.data_files, block_len, self.padding)
        }
    }

    fn end(&mut self) -> Result<()> {
        for file in &mut self.data {
            file.end(self.padding)?;
        }
        self.image_len = self.image.end(self.padding)?;
        Ok(())
    }

    /// Returns the length of the image.
    fn finish(self, sync: bool) -> Result<u64> {
        // Data first: an image without it is useless.
        for file in self.data {
            file.finish(sync)?;
        }
        self.image.finish(sync)?;
        Ok(self.image_len)
    }
}

/// A rough upper bound: nothing is deduplicated or shrinks.
fn len_bound<E: Engine>(tree: &Tree, plan: &Plan<E>) -> u64 {
    // A file may leave most of a block unused, and has an inode and a name.
    const NODE_LEN: u64 = 5 << 10;
    const SPARE: u64 = 1 << 20;
    let nodes = u64::from(tree.node_count()).saturating_mul(NODE_LEN);
    let files = tree.bytes_total();
    [nodes, files, files / 64, SPARE].into_iter().fold(plan.data_start, u64::saturating_add)
}

/// Errors: `Usage` for two outputs with the same path.
fn check_names(files: &[DataFile], output: &Path) -> Result<()> {
    if files.iter().any(|file| file.path == output) {
        return Err(Error::usage(format!("cannot write {output:?}: it is both the image and its data file")));
    }
    let is_again =
        |(index, file): &(usize, &DataFile)| files[..*index].iter().any(|other| other.path == file.path);
    match files.iter().enumerate().find(is_again) {
        Some((_, file)) => {
            Err(Error::usage(format!("cannot write {:?}: it is named for two data files", file.path)))
        }
        None => Ok(()),
    }
}

struct Clock {
    last: Instant,
    stages: Vec<StageTime>,
}

impl Clock {
    fn start() -> Self {
        Clock { last: Instant::now(), stages: Vec::new() }
    }

    fn passed(&mut self, stage: Stage) {
        let now = Instant::now();
        self.stages.push(StageTime { stage, took: now - self.last });
        self.last = now;
    }

    fn passed_if(&mut self, stage: Stage, is_over: bool) {
        if is_over {
            self.passed(stage);
        }
    }
}
