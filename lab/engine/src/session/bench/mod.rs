//! Plans carried out on this machine.

mod counts;
mod images;
mod large;
mod place;
mod reading;
mod simulated;
mod sources;
mod writing;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use packfs::{Result, processor_count};

use super::plan::{Cell, Plan, SubjectKey};
use super::trouble::Space;
use super::{Bench, Room, RunOutcome, Trouble};
use crate::machine;
use crate::process::{self, Confinement, Invocation, Limit, Output};
use crate::programs::Wanted;
use crate::results::{CpuLimit, DeviceFacts, Machine, Program, Run, Subject};
use crate::scratch::Scratch;
use crate::subject::{Maker, Subjects, is_unpacker, is_writable};
use crate::trees::{PlannedTree, TreeKind};
use crate::workload::{Need, Workload};

pub use place::{check_device, device_names};

use images::Images;
use place::Place;
use sources::Sources;
use writing::Disks;

/// Default folder of images.
const SCRATCH: &str = "/var/tmp";
/// The reader that mounts by the kernel's drivers.
const KERNEL: &str = "kernel";
/// File systems in memory on Linux.
const MEMORY: &str = "/dev/shm";
/// Bytes that a scratch has to have free beside images, for lists and logs.
const SPARE: u64 = 64 << 20;

/// Options of the lab on this machine.
#[derive(Clone, Debug, Default)]
pub struct LabOptions {
    /// The program `packfs-lab`, which reads files in pieces where fio is missing.
    pub lab: PathBuf,
    /// Folder of images; none for `/var/tmp`.
    pub scratch: Option<PathBuf>,
    /// Threads of programs where a workload does not vary them; 0 for one a processor.
    pub jobs: u32,
    /// Seed of random choices.
    pub seed: u64,
}

/// This machine, ready to measure.
pub struct Lab {
    subjects: Rc<Subjects>,
    // Undone before the scratch they lie in.
    disks: Disks,
    images: Images,
    scratch: Scratch,
    memory: Option<Scratch>,
    sources: Sources,
    places: HashMap<String, Place>,
    /// Paths that a run writes and that do not outlive it.
    temporary: Vec<PathBuf>,
    used: Vec<Program>,
    tools: HashMap<&'static str, Option<Program>>,
    lab: PathBuf,
    jobs: u32,
    seed: u64,
    // Ends after whatever runs within it.
    limit: Option<Limit>,
}

impl Lab {
    /// Makes the scratch. All that is measured runs within `limit`.
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
        Ok(Self {
            subjects: Rc::new(subjects),
            disks: Disks::default(),
            images: Images::default(),
            scratch,
            memory,
            sources: Sources::new(trees, options.seed),
            places: HashMap::new(),
            temporary: Vec::new(),
            used: Vec::new(),
            tools: HashMap::new(),
            lab: options.lab.clone(),
            jobs: if options.jobs == 0 { processor_count() as u32 } else { options.jobs },
            seed: options.seed,
            limit,
        })
    }

    fn within(&self) -> Confinement {
        self.limit.as_ref().map(|limit| limit.within().clone()).unwrap_or_default()
    }

    fn run_limited(&self, invocation: &Invocation, output: &Output, servers: &[u32]) -> Result<Run> {
        let within = self.within();
        let output = match output {
            Output::Through(next) => Output::Through(within.of(next)),
            Output::Null | Output::File(_) => output.clone(),
        };
        process::run(&within.of(invocation), &output, servers)
    }

    fn place(&mut self, device: &str) -> Result<Place> {
        if !self.places.contains_key(device) {
            self.places.insert(device.to_owned(), Place::find(device)?);
        }
        Ok(self.places[device].clone())
    }

    fn note(&mut self, program: &Program) {
        if !self.used.contains(program) {
            self.used.push(program.clone());
        }
    }

    fn note_tool(&mut self, name: &'static str) {
        let found = self
            .tools
            .entry(name)
            .or_insert_with(|| Wanted { name, version_option: "--version", from: "this system" }.find().ok());
        if let Some(program) = found.clone() {
            self.note(&program);
        }
    }

    fn settled<T>(&mut self, outcome: Result<T, Trouble>) -> Result<T, Trouble> {
        let outcome = outcome
            .map_err(|trouble| trouble.judged(Space::of(&self.scratch), self.memory.as_ref().map(Space::of)));
        self.temporary.drain(..).for_each(|path| images::remove(&path));
        outcome
    }

    /// Bytes of the tars that the makers of a plan take and that are not there.
    fn tars_len(&self, plan: &Plan) -> u64 {
        let subjects = plan.subjects();
        let needs_tar =
            |subject: &&SubjectKey| self.subjects.maker(&subject.recipe.maker).is_ok_and(Maker::needs_tar);
        let trees: HashSet<_> = subjects.iter().filter(needs_tar).map(|subject| &*subject.tree).collect();
        trees.into_iter().map(|tree| self.sources.tar_len(tree)).sum()
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

    fn memory(&self) -> Result<&Scratch, Trouble> {
        let why = || format!("{MEMORY} is not there, or cannot be written");
        Ok(self.memory.as_ref().ok_or_else(why)?)
    }

    /// Returns the folder in memory if it has room for something of this length.
    fn memory_for(&self, what: &str, needed: u64) -> Result<&Scratch, Trouble> {
        let memory = self.memory()?;
        let free = memory.free().map_err(Trouble::Stop)?;
        if free < needed {
            return Err(
                format!("the {what} takes {needed} bytes, and {:?} has {free} free", memory.dir()).into()
            );
        }
        Ok(memory)
    }

    fn run_cell(&mut self, cell: &Cell) -> Result<RunOutcome, Trouble> {
        if cell.workload == Workload::Unpack && cell.reader.as_deref() == Some(KERNEL) {
            // It unpacks by a copy from its mount.
            return self.run_cell(&Cell { workload: Workload::CpRead, ..cell.clone() });
        }
        if is_writable(&cell.recipe.format) {
            return self.run_on_disk(cell);
        }
        match need(cell) {
            Need::Maker => self.build(cell),
            Need::Unpacker => self.decode(cell),
            Need::Mount | Need::LargeFile => self.read(cell),
            Need::Image => Ok(RunOutcome { command: String::new(), run: None, subject: None }),
            Need::Writable => Err(format!("{} images cannot be written", cell.recipe.format).into()),
        }
    }
}

/// Things that a cell needs: those of its workload, but that unpackers list without a mount.
fn need(cell: &Cell) -> Need {
    match cell.workload {
        Workload::List if cell.reader.as_deref().is_some_and(is_unpacker) => Need::Unpacker,
        workload => workload.need(),
    }
}

impl Bench for Lab {
    fn make(&mut self, subject: &SubjectKey) -> Result<Option<Subject>, Trouble> {
        if is_writable(&subject.recipe.format) {
            return Ok(None);
        }
        let image = self.image_of(subject);
        self.settled(image).map(|image| Some(image.facts))
    }

    fn is_made(&self, subject: &SubjectKey) -> bool {
        // What is written has no image to be made.
        is_writable(&subject.recipe.format) || self.images.is_made(subject)
    }

    fn run(&mut self, cell: &Cell) -> Result<RunOutcome, Trouble> {
        let ran = self.run_cell(cell);
        self.settled(ran)
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
        let places = self.places.iter();
        let mut devices: Vec<_> = places.map(|(name, place)| place.facts(name, &self.scratch)).collect();
        devices.sort_by(|a, b| a.id.cmp(&b.id));
        devices
    }

    fn cpu_limit(&self) -> Option<&CpuLimit> {
        self.limit.as_ref().map(Limit::facts)
    }

    fn machine(&self) -> Machine {
        machine::here(self.scratch.dir())
    }

    fn room(&self, plan: &Plan) -> Result<Room> {
        let scratch = self.scratch.free()?.saturating_sub(SPARE) / 10 * 9;
        let is_in_memory = plan.cells.iter().any(|cell| cell.device == "memory");
        // Without memory its cells say so, and the others need none.
        let memory = self.memory.as_ref().filter(|_| is_in_memory);
        let memory = memory.map(|memory| memory.free().map(|free| free / 10 * 9)).transpose()?;
        Ok(Room { scratch: scratch.saturating_sub(self.tars_len(plan)), memory })
    }

    fn len_guess(&self, subject: &SubjectKey) -> u64 {
        let bytes = self.sources.bytes(&subject.tree);
        let percent = match subject.recipe.codec.as_str() {
            // Small files take whole blocks, and a codec may find nothing to compress.
            _ if is_writable(&subject.recipe.format) => 120,
            "none" => 105,
            _ if subject.tree == TreeKind::Media.row().name => 105,
            // What these codecs leave of trees of programs and texts, and rather more.
            "lz4" | "lz4hc" | "lzo" => 70,
            _ => 55,
        };
        bytes / 100 * percent + (1 << 20)
    }

    fn place_name(&self) -> String {
        format!("{:?}", self.scratch.dir().parent().unwrap_or(Path::new("/")))
    }
}
