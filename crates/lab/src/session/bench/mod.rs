//! Doing to this machine what a plan says.

mod counts;
mod images;
mod large;
mod place;
mod reading;
mod simulated;
mod sources;
mod writing;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use packfs::{Error, Result};

use super::plan::{Cell, PlannedTree, SubjectKey};
use super::{Bench, Ran, Trouble};
use crate::machine;
use crate::process::{self, Invocation, Limit, Output, Within};
use crate::programs::Wanted;
use crate::results::{CpuLimit, DeviceFacts, Machine, Missing, Program, Run, Subject};
use crate::scratch::Scratch;
use crate::subject::Subjects;
use crate::workload::{Need, Workload};

pub use place::{check_device, device_names};

use images::Images;
use place::Place;
use sources::Sources;
use writing::Disks;

/// Where images lie if nobody says.
const SCRATCH: &str = "/var/tmp";
/// File systems in memory on Linux.
const MEMORY: &str = "/dev/shm";
/// What a scratch has to have free beside images, for lists and logs.
const SPARE: u64 = 64 << 20;

/// How the lab works on this machine.
#[derive(Clone, Debug, Default)]
pub struct LabOptions {
    /// The program that stands for packfs.
    pub packfs: PathBuf,
    /// Where images lie; none for `/var/tmp`.
    pub scratch: Option<PathBuf>,
    /// Threads of programs where a workload does not vary them; 0 for one a processor.
    pub jobs: u32,
    /// Where random choices begin.
    pub seed: u64,
}

/// This machine, ready to measure.
pub struct Lab {
    subjects: Subjects,
    // Undone before the scratch they lie in.
    disks: Disks,
    images: Images,
    scratch: Scratch,
    memory: Option<Scratch>,
    sources: Sources,
    places: HashMap<String, Result<Place, Missing>>,
    used: Vec<Program>,
    tools: HashMap<&'static str, Option<Program>>,
    packfs: PathBuf,
    jobs: u32,
    seed: u64,
    // Ends after whatever runs within it.
    limit: Option<Limit>,
}

impl Lab {
    /// Makes the scratch. Whatever is measured runs within `limit`.
    ///
    /// Errors: `Io` if nothing can be written there.
    pub fn new(
        options: &LabOptions,
        subjects: Subjects,
        trees: &[PlannedTree],
        limit: Option<Limit>,
    ) -> Result<Self> {
        let scratch = Scratch::new(options.scratch.as_deref().unwrap_or(Path::new(SCRATCH)))?;
        // Without a file system in memory, what needs one says so.
        let memory = Path::new(MEMORY).is_dir().then(|| Scratch::new(Path::new(MEMORY)).ok()).flatten();
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let jobs = if options.jobs == 0 { u32::try_from(processors).unwrap_or(1) } else { options.jobs };
        Ok(Self {
            subjects,
            disks: Disks::default(),
            images: Images::default(),
            scratch,
            memory,
            sources: Sources::new(trees, options.seed),
            places: HashMap::new(),
            used: Vec::new(),
            tools: HashMap::new(),
            packfs: options.packfs.clone(),
            jobs,
            seed: options.seed,
            limit,
        })
    }

    /// What programs that are measured and their servers run within.
    fn within(&self) -> Within {
        self.limit.as_ref().map(|limit| limit.within().clone()).unwrap_or_default()
    }

    /// Runs what is measured: all of it within the limit.
    fn run_limited(&self, invocation: &Invocation, output: &Output, servers: &[u32]) -> Result<Run> {
        let within = self.within();
        let output = match output {
            Output::Through(next) => Output::Through(within.of(next)),
            Output::Null | Output::File(_) => output.clone(),
        };
        process::run(&within.of(invocation), &output, servers)
    }

    fn place(&mut self, device: &str) -> Result<Place, Missing> {
        self.places.entry(device.to_owned()).or_insert_with(|| Place::find(device)).clone()
    }

    fn note(&mut self, program: &Program) {
        if !self.used.contains(program) {
            self.used.push(program.clone());
        }
    }

    /// Notes a program of the system, such as tar, with its version.
    fn note_tool(&mut self, name: &'static str) {
        let found = self
            .tools
            .entry(name)
            .or_insert_with(|| Wanted { name, version_option: "--version", from: "this system" }.find().ok());
        if let Some(program) = found.clone() {
            self.note(&program);
        }
    }

    /// A failure of a program: usually its own; but on a full disk nothing else can go on.
    fn trouble(&self, what: &str, error: &Error) -> Trouble {
        let text = [&[error.to_string()], error.hints()].concat().join("; ");
        let is_full = |scratch: &Scratch| scratch.free().is_ok_and(|free| free < 1 << 20);
        let is_no_room = text.contains("No space left") || text.contains("disk is full");
        let full = [Some(&self.scratch), self.memory.as_ref()].into_iter().flatten().find(|s| is_full(s));
        if is_no_room || full.is_some() {
            let dir = full.unwrap_or(&self.scratch).dir();
            let stop = Error::failed(format!("the scratch in {dir:?} is full: {text}"))
                .hint("free some space, or have --scratch DIR name another place; the same command goes on");
            return Trouble::Stop(stop);
        }
        Trouble::Missing(Missing { what: what.into(), why: text })
    }

    /// A command without the paths that differ from session to session.
    fn tidy(&self, spelled: &str, image: &Path) -> String {
        let text = spelled.replace(&*image.to_string_lossy(), "IMAGE");
        let text = self.sources.tidy(&text);
        let memory = self.memory.as_ref().map(Scratch::dir);
        [Some(self.scratch.dir()), memory]
            .into_iter()
            .flatten()
            .fold(text, |text, dir| text.replace(&*dir.to_string_lossy(), "SCRATCH"))
    }

    /// The folder in memory, or why there is none.
    fn memory(&self, what: &str) -> Result<&Scratch, Missing> {
        let why =
            || Missing { what: what.into(), why: format!("{MEMORY} is not there, or cannot be written") };
        self.memory.as_ref().ok_or_else(why)
    }
}

impl Bench for Lab {
    fn make(&mut self, subject: &SubjectKey) -> Result<Option<Subject>, Trouble> {
        if self.is_writable(subject) {
            return Ok(None);
        }
        let image = self.image_of(subject)?;
        Ok(Some(image.facts))
    }

    fn is_made(&self, subject: &SubjectKey) -> bool {
        // What is written has no image to be made.
        self.is_writable(subject) || self.images.is_made(subject)
    }

    fn run(&mut self, cell: &Cell) -> Result<Ran, Trouble> {
        if self.is_writable(&cell.subject()) {
            return self.run_on_disk(cell);
        }
        match (cell.workload.need(), cell.workload) {
            (Need::Maker, _) => self.build(cell),
            (Need::Unpacker, _) => self.decode(cell),
            (Need::Mount | Need::LargeFile, _) => self.read(cell),
            (Need::Image, _) => Ok(Ran { command: String::new(), run: None, subject: None }),
            (Need::Writable, Workload::Write | Workload::DiskUsage) | (Need::Writable, _) => {
                let why = format!("{} images cannot be written", cell.recipe.format);
                Err(Missing { what: cell.label(), why }.into())
            }
        }
    }

    fn remove(&mut self, subject: &SubjectKey) -> Result<()> {
        self.images.remove(subject);
        self.disks.remove(subject);
        Ok(())
    }

    fn programs(&self) -> Vec<Program> {
        self.used.clone()
    }

    fn devices(&self) -> Vec<DeviceFacts> {
        let found = |(name, place): (&String, &Result<Place, Missing>)| {
            place.as_ref().ok().map(|place| place.facts(name, &self.scratch))
        };
        let mut devices: Vec<_> = self.places.iter().filter_map(found).collect();
        devices.sort_by(|a, b| a.id.cmp(&b.id));
        devices
    }

    fn cpu_limit(&self) -> Option<&CpuLimit> {
        self.limit.as_ref().map(Limit::facts)
    }

    fn machine(&self) -> Machine {
        machine::here(self.scratch.dir())
    }

    fn room(&self) -> Result<u64> {
        Ok(self.scratch.free()?.saturating_sub(SPARE) / 10 * 9)
    }

    fn len_guess(&self, subject: &SubjectKey) -> u64 {
        let bytes = self.sources.bytes(&subject.tree);
        // What these codecs leave of trees of programs and texts, and rather more.
        let percent = match subject.recipe.codec.as_str() {
            "none" => 105,
            "lz4" | "lz4hc" | "lzo" => 70,
            _ => 55,
        };
        bytes / 100 * percent + (1 << 20)
    }

    fn place_name(&self) -> String {
        format!("{:?}", self.scratch.dir().parent().unwrap_or(Path::new("/")))
    }
}
