//! Advice: which format, codec and block size for a tree on a device, as a command to run.
//!
//! In this order: `candidates` lists what is worth a look and can be mounted; the whole tree is packed once in each layout with a
//! quick codec; `sample` takes parts that stand for the whole; `measure` packs and decodes them with each candidate, and
//! `reading` has the kernel read them; `forecast` says what that means for the whole, on the device; `choice` picks, and
//! `answer` says so. `check` makes the images and reads them, to hold the forecast against.
//!
//! Owns no program and no format. Choices are the same for the same seed; times are measured on this machine, and so may choose
//! otherwise on another.

mod answer;
mod candidates;
mod chance;
mod check;
mod choice;
mod forecast;
mod kernels;
mod measure;
mod mounted;
mod reading;
mod sample;
mod want;

pub use answer::{Answer, Looked, Row};
pub use candidates::{Candidate, Layout, LeftOut};
pub use check::Truth;
pub use forecast::build::Build;
pub use forecast::size::Size;
pub use forecast::time::ReadTime;
pub use kernels::Kernel;
pub use want::Want;

use forecast::device::Modelled;
use forecast::pattern::Pattern;
use forecast::size::{Pair, Ratios, Whole};
use forecast::time::{Cost, Scaling};
use measure::{Decoding, Packed};
use packfs::source::{Loaded, Shape, Trace};
use packfs::{Error, ImagePath, NodeId, OpenOptions, Progress, Result, ResultExt, Source};
use packfs_device::DeviceSpec;
use reading::Measured;
use sample::Sample;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
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
/// Where images are that a kernel reads from memory.
const MEMORY_FOLDER: &str = "/dev/shm";

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// What is to be packed: a directory, or any other source.
    pub tree: PathBuf,
    /// What the image will lie on.
    pub device: DeviceSpec,
    /// How the user names it.
    pub device_name: String,
    /// What the image is wanted for.
    pub want: Want,
    /// The kernel that is to mount it; none: the running one.
    pub kernel: Option<Kernel>,
    /// Whether less is measured.
    pub quick: bool,
    /// Formats to consider; none: SquashFS and EROFS.
    pub formats: Vec<String>,
    /// A list of the files that are read, for [`Want::Boot`].
    pub trace: Option<PathBuf>,
    /// Where images are made; none: where temporary files go.
    pub scratch: Option<PathBuf>,
    /// Threads that pack; 0: one a processor.
    pub jobs: usize,
    /// Where random choices begin.
    pub seed: u64,
    /// Whether the first two are made and read, to hold the forecast against.
    pub check: bool,
}

/// Answers a question.
///
/// Errors: `Usage` for a format that there is not or a kernel that mounts none; `Failed` for a tree without a byte; those of reading
/// the tree and of writing to the scratch folder; `Cancelled`.
pub fn advise(question: &Question, progress: &dyn Progress) -> Result<Answer> {
    let start = Instant::now();
    let kernel = question.kernel.map_or_else(Kernel::running, Ok)?;
    let (candidates, left_out) =
        candidates::candidates(question.want, &question.formats, kernel, question.quick)?;
    if candidates.is_empty() {
        let reasons: Vec<String> = left_out.iter().map(|left| left.reason.clone()).collect();
        return Err(Error::usage(format!(
            "Linux {kernel} mounts nothing that could be made: {}",
            reasons.join("; ")
        )));
    }
    let shape = Shape { keep_going: true, ..Shape::default() };
    let loaded = Arc::new(Source::detect(&question.tree)?.load(&shape, progress)?);
    if loaded.tree.bytes_total() == 0 {
        let message =
            format!("{:?} holds no file with a byte in it: every image of it is as good", question.tree);
        return Err(Error::failed(message).hint("any format packs it: packfs pack DIR IMAGE"));
    }
    let lab = Bench::new(question, &loaded)?;
    let mut rows = Vec::new();
    let mut kernel_missing = None;
    let mut layouts: Vec<Layout> = candidates.iter().map(|candidate| candidate.layout).collect();
    layouts.dedup();
    let mut done: Vec<Layout> = Vec::new();
    for layout in layouts {
        if done.contains(&layout) {
            continue;
        }
        done.push(layout);
        let of_layout: Vec<&Candidate> = candidates.iter().filter(|it| it.layout == layout).collect();
        rows.extend(lab.layout(&of_layout, &mut kernel_missing, progress)?);
    }
    let order = choice::rank(question.want, &rows);
    let front = choice::front(&rows);
    rows.iter_mut().zip(front).for_each(|(row, on_front)| row.on_front = on_front);
    let reasons = choice::reasons(question.want, &question.device_name, &rows, &order);
    let rows: Vec<Row> = order.into_iter().map(|index| rows[index].clone()).collect();
    let truth = if question.check { check::check(&lab, &rows, progress)? } else { Vec::new() };
    let notes = lab.notes(kernel, kernel_missing);
    Ok(Answer {
        command: lab.command(&rows[0].candidate),
        want: question.want,
        device: question.device_name.clone(),
        device_title: question.device.title.clone(),
        kernel: kernel.to_string(),
        workload: question.want.workload_words(lab.files.len(), question.trace.is_some()),
        looked: lab.looked(),
        rows,
        reasons,
        left_out,
        notes,
        truth,
        took: start.elapsed().as_secs_f64(),
    })
}

/// All that every candidate is measured with.
struct Bench<'a> {
    question: &'a Question,
    /// The tree.
    all: Arc<Loaded>,
    /// As much of it as is packed with the quick codec, and how many times as much there is.
    whole: Arc<Loaded>,
    times: f64,
    /// Parts that stand for that; none: it is short enough itself.
    samples: Vec<Sample>,
    /// The workload.
    files: Vec<ImagePath>,
    jobs: usize,
    scratch: TempDir,
    /// A folder in memory, where the kernel may mount for us.
    memory: Option<TempDir>,
}

/// What is known of a candidate before it is set against the device.
struct Costs {
    decoding: Vec<Decoding>,
    measured: Vec<Measured>,
}

impl<'a> Bench<'a> {
    fn new(question: &'a Question, all: &Arc<Loaded>) -> Result<Bench<'a>> {
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
            all: Arc::clone(all),
            whole,
            times,
            samples,
            files,
            jobs: if question.jobs == 0 { processors() } else { question.jobs },
            scratch: scratch(question.scratch.as_deref())?,
            memory: packfs::mount::is_root().then(|| folder_in(Path::new(MEMORY_FOLDER)).ok()).flatten(),
        })
    }

    /// Measures all candidates of one layout.
    fn layout(
        &self,
        candidates: &[&Candidate],
        kernel_missing: &mut Option<String>,
        progress: &dyn Progress,
    ) -> Result<Vec<Row>> {
        let Some(first) = candidates.first() else { return Ok(Vec::new()) };
        if self.samples.is_empty() {
            return candidates.iter().map(|it| self.as_a_whole(it, kernel_missing, progress)).collect();
        }
        let reference = first.reference();
        let image = self.scratch.path().join("whole");
        let packed = measure::pack(&self.whole, &reference, &image, self.jobs, progress)?;
        let pattern = self.pattern(&image)?;
        remove(&image)?;
        let whole = Whole { packed, times: self.times };
        let mut references = Vec::new();
        let image = self.sample_image();
        for sample in &self.samples {
            references.push(measure::pack(&sample.loaded, &reference, &image, self.jobs, progress)?);
            remove(&image)?;
        }
        let mut rows = Vec::new();
        for candidate in candidates {
            let mut pairs = Vec::new();
            let mut costs = Costs { decoding: Vec::new(), measured: Vec::new() };
            for (sample, reference) in self.samples.iter().zip(&references) {
                let packed = measure::pack(&sample.loaded, candidate, &image, self.jobs, progress)?;
                self.cost(candidate, &sample.loaded, &image, &mut costs, kernel_missing, progress)?;
                remove(&image)?;
                pairs.push(Pair { reference: reference.clone(), candidate: packed });
            }
            let stored = candidate.codec.as_deref() == Some("none");
            let size = if stored { forecast::size::stored } else { forecast::size::forecast };
            let size = size(&whole, &pairs);
            let build = forecast::build::forecast(&whole, &pairs, self.jobs);
            let ratios = forecast::size::ratios(&whole, &pairs);
            rows.push(self.row(candidate, &pattern, ratios, size, build, &costs));
        }
        Ok(rows)
    }

    /// Measures a candidate on the whole tree.
    fn as_a_whole(
        &self,
        candidate: &Candidate,
        kernel_missing: &mut Option<String>,
        progress: &dyn Progress,
    ) -> Result<Row> {
        let image = self.sample_image();
        let packed: Packed = measure::pack(&self.whole, candidate, &image, self.jobs, progress)?;
        let mut costs = Costs { decoding: Vec::new(), measured: Vec::new() };
        self.cost(candidate, &self.whole, &image, &mut costs, kernel_missing, progress)?;
        let pattern = self.pattern(&image)?;
        remove(&image)?;
        let size = Size { bytes: packed.image_len, error: 0.0 };
        let build = forecast::build::of_cpu(packed.cpu, self.jobs);
        Ok(self.row(candidate, &pattern, Ratios { data: 1.0, metadata: 1.0 }, size, build, &costs))
    }

    /// What decoding an image costs packfs, and the kernel where it mounts for us.
    fn cost(
        &self,
        candidate: &Candidate,
        loaded: &Loaded,
        image: &Path,
        costs: &mut Costs,
        kernel_missing: &mut Option<String>,
        progress: &dyn Progress,
    ) -> Result<()> {
        costs.decoding.push(measure::decode(image, progress)?);
        let Some(memory) = &self.memory else { return Ok(()) };
        if !matches!(candidate.layout.format, "squashfs" | "erofs") {
            return Ok(());
        }
        match reading::by_kernel(image, &loaded.tree, candidate, memory.path(), progress) {
            Ok(measured) => costs.measured.push(measured),
            Err(error) if error.kind() == packfs::ErrorKind::Cancelled => return Err(error),
            // This kernel may lack what another has: the forecast goes by packfs's own decoding then.
            Err(error) => {
                kernel_missing.get_or_insert_with(|| format!("{candidate}: {error}"));
            }
        }
        Ok(())
    }

    fn row(
        &self,
        candidate: &Candidate,
        pattern: &Pattern,
        ratios: Ratios,
        size: Size,
        build: Build,
        costs: &Costs,
    ) -> Row {
        let kernel_measured = !costs.measured.is_empty();
        let cost: Cost = if kernel_measured {
            reading::cost_measured(&costs.measured)
        } else {
            reading::cost_guessed(candidate, &costs.decoding)
        };
        let cluster = u64::from(candidate.layout.block.unwrap_or(0));
        let scaling = Scaling { data: ratios.data, metadata: ratios.metadata, cluster };
        let mut device = Modelled::new(&self.question.device);
        let read = forecast::time::forecast(pattern, &scaling, &cost, &mut device);
        let decoded: u64 = costs.decoding.iter().map(|one| one.bytes).sum();
        let cpu: f64 = costs.decoding.iter().map(|one| one.cpu).sum();
        Row {
            candidate: candidate.clone(),
            size,
            build,
            read,
            decodes_mib_per_second: decoded as f64 / f64::from(1 << 20) / cpu.max(1e-6),
            kernel_measured,
            on_front: false,
        }
    }

    fn pattern(&self, image: &Path) -> Result<Pattern> {
        Pattern::of(&OpenOptions::new().jobs(1).open(image)?, &self.files)
    }

    /// Where images of samples are made: in memory, if the kernel is to read them.
    fn sample_image(&self) -> PathBuf {
        self.memory.as_ref().unwrap_or(&self.scratch).path().join("sample")
    }

    fn looked(&self) -> Looked {
        let whole = self.samples.is_empty() && self.times <= 1.0;
        Looked {
            bytes: self.all.tree.bytes_total(),
            files: self.all.tree.file_count(),
            sampled: if self.samples.is_empty() {
                self.whole.tree.bytes_total()
            } else {
                self.samples.iter().map(|sample| sample.bytes).sum()
            },
            samples: self.samples.len().max(1),
            whole,
            seed: self.question.seed,
        }
    }

    fn notes(&self, kernel: Kernel, kernel_missing: Option<String>) -> Vec<String> {
        let mut notes = vec![format!(
            "Read times: which blocks Linux {kernel} asks for and when, played through the model of {} ({}).",
            self.question.device_name, self.question.device.title
        )];
        notes.push(match (&self.memory, kernel_missing) {
            (Some(_), None) => {
                "Decoding was measured in this machine's kernel; a slower processor takes longer.".into()
            }
            (Some(_), Some(why)) => {
                format!("Not measured in this machine's kernel, told from packfs's own decoding: {why}.")
            }
            (None, _) => {
                "Decoding was told from packfs's own: only root can have the kernel read the samples."
                    .to_string()
            }
        });
        if self.times > 1.0 {
            notes.push(format!("The tree is long: 1 part in {:.1} of it was packed at all.", self.times));
        }
        let unreadable = &self.all.notes.unreadable;
        if let Some(first) = unreadable.first() {
            notes
                .push(format!("Left out, as it cannot be read: {} in all, first {first}.", unreadable.len()));
        }
        notes
    }

    /// The command that makes the image.
    fn command(&self, candidate: &Candidate) -> String {
        let tree = &self.question.tree;
        let name = tree.canonicalize().ok().and_then(|path| path.file_name().map(|name| name.to_os_string()));
        let stem = name.map_or_else(|| "image".to_string(), |name| name.to_string_lossy().into_owned());
        let format = packfs::formats::by_name(candidate.layout.format);
        let extension = format.and_then(|format| format.extensions().first().copied()).unwrap_or("img");
        let mut words = vec!["packfs".to_string(), "pack".into(), tree.to_string_lossy().into_owned()];
        words.push(format!("{stem}.{extension}"));
        words.extend(candidate.options());
        if let Some(trace) = &self.question.trace {
            words.extend(["--trace".to_string(), trace.to_string_lossy().into_owned()]);
        }
        if !self.all.notes.unreadable.is_empty() {
            words.push("--keep-going".into());
        }
        words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,=:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// A folder for images, gone with what is returned.
///
/// Errors: `Io` if nothing can be written there.
fn scratch(chosen: Option<&Path>) -> Result<TempDir> {
    let folder = chosen.map_or_else(packfs::temporary_folder, Path::to_path_buf);
    folder_in(&folder)
        .map_err(|error| error.hint("--scratch DIR names another folder for images that are measured"))
}

fn folder_in(folder: &Path) -> Result<TempDir> {
    let made = tempfile::Builder::new().prefix("packfs-advise-").tempdir_in(folder);
    made.or_io(|| format!("cannot make a folder in {folder:?}"))
}

fn remove(image: &Path) -> Result<()> {
    std::fs::remove_file(image).or_io(|| format!("cannot remove {image:?}"))
}

#[cfg(test)]
mod tests;
