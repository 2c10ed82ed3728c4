//! One session: for each case both programs warm up once, then run in turn, so that whatever else the machine does
//! falls on both.
//!
//! Images that are only read are made by the rival, once. What a run wrote is removed before the next, unmeasured.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::case::{Case, Verb};
use super::judge::{Verdict, judge};
use super::machine::{self, Machine};
use super::measure::{self, Sample};
use super::scratch::Scratch;
use super::summary::Summary;
use super::{Options, content, report};
use crate::corpus::{Corpus, Counts};
use crate::failure::{Failure, Result};
use crate::rivals::{Format, FsckErofs, MkfsErofs, Mksquashfs, Packfs, Rival, Sqfs2tar, Task, Unsquashfs};
use crate::shell;

/// All that was measured, and with what.
pub struct Session {
    pub machine: Machine,
    pub scratch: String,
    /// Where outputs were written, gone by now.
    pub scratch_dir: PathBuf,
    pub runs: usize,
    pub jobs: usize,
    pub load_before: String,
    pub load_after: String,
    pub versions: Vec<(&'static str, String)>,
    pub corpora: Vec<(Corpus, Counts)>,
    pub outcomes: Vec<Outcome>,
    /// Cases that could not be measured, and why.
    pub failures: Vec<String>,
}

/// One case, measured.
pub struct Outcome {
    pub case: Case,
    pub rival: Measured,
    /// None if packfs was left out.
    pub packfs: Option<Measured>,
    pub verdicts: Vec<Verdict>,
}

/// One program's part in a case.
pub struct Measured {
    pub program: &'static str,
    pub command: Vec<OsString>,
    pub samples: Vec<Sample>,
    pub summary: Summary,
}

struct Rivals {
    mksquashfs: Mksquashfs,
    unsquashfs: Unsquashfs,
    sqfs2tar: Sqfs2tar,
    mkfs_erofs: MkfsErofs,
    fsck_erofs: FsckErofs,
}

impl Rivals {
    fn find() -> Result<Self> {
        Ok(Self {
            mksquashfs: Mksquashfs::find()?,
            unsquashfs: Unsquashfs::find()?,
            sqfs2tar: Sqfs2tar::find()?,
            mkfs_erofs: MkfsErofs::find()?,
            fsck_erofs: FsckErofs::find()?,
        })
    }

    fn all(&self) -> [&dyn Rival; 5] {
        [&self.mksquashfs, &self.unsquashfs, &self.sqfs2tar, &self.mkfs_erofs, &self.fsck_erofs]
    }

    fn packer(&self, format: Format) -> &dyn Rival {
        match format {
            Format::Squashfs => &self.mksquashfs,
            Format::Erofs => &self.mkfs_erofs,
        }
    }

    fn of(&self, case: &Case) -> &dyn Rival {
        match (case.verb, case.format) {
            (Verb::Pack, format) => self.packer(format),
            (Verb::Unpack, Format::Squashfs) => &self.unsquashfs,
            (Verb::Unpack, Format::Erofs) => &self.fsck_erofs,
            (Verb::Tar, _) => &self.sqfs2tar,
        }
    }
}

pub fn run(options: &Options, packfs: Option<&Packfs>) -> Result<Session> {
    let rivals = Rivals::find()?;
    let used = |corpus: &Corpus| options.cases.iter().any(|case| case.corpus == *corpus);
    let corpora = ensure(Corpus::ALL.into_iter().filter(used).collect())?;
    let scratch = Scratch::new(options.scratch.as_deref())?;
    let load_before = machine::load();
    let mut images = Images { scratch: &scratch, rivals: &rivals, jobs: options.jobs, made: HashMap::new() };
    let packfs = packfs.map(|packfs| packfs as &dyn Rival);
    let (mut outcomes, mut failures) = (vec![], vec![]);
    for case in &options.cases {
        let image = if case.verb == Verb::Pack { None } else { Some(images.of(case)?) };
        let bench = Bench { case, image, scratch: &scratch, runs: options.runs, jobs: options.jobs };
        let entries =
            corpora.iter().find(|(corpus, _)| *corpus == case.corpus).map_or(0, |(_, counts)| counts.entries);
        match bench.run(rivals.of(case), packfs, entries) {
            Ok(outcome) => {
                eprintln!("{}", report::line(&outcome));
                outcomes.push(outcome);
            }
            Err(failure) => {
                eprintln!("{}: {failure}", case.label());
                failures.push(format!("{}: {failure}", case.label()));
            }
        }
    }
    let used =
        |rival: &&dyn Rival| outcomes.iter().any(|outcome: &Outcome| outcome.rival.program == rival.name());
    let shown: Vec<_> = rivals.all().into_iter().filter(used).chain(packfs).collect();
    Ok(Session {
        machine: Machine::here(),
        scratch: scratch.description.clone(),
        scratch_dir: scratch.dir.clone(),
        runs: options.runs,
        jobs: options.jobs,
        load_before,
        load_after: machine::load(),
        versions: shown.iter().map(|program| (program.name(), program.version().to_owned())).collect(),
        corpora,
        outcomes,
        failures,
    })
}

/// Makes the corpora that are missing, in another process: measuring needs this one small.
pub fn ensure(needed: Vec<Corpus>) -> Result<Vec<(Corpus, Counts)>> {
    let program =
        std::env::current_exe().map_err(|error| Failure::new(format!("cannot find myself: {error}")))?;
    let names = needed.iter().map(|corpus| corpus.name());
    shell::run_quietly(Command::new(program).arg("corpus").args(names))?;
    needed.into_iter().map(|corpus| Ok((corpus, corpus.ensure()?))).collect()
}

/// Reads every file of a tree, so that whoever is measured next finds it in memory: no program's speed is the disk's.
pub fn warm(tree: &Path) -> Result<()> {
    let mut dirs = vec![tree.to_owned()];
    while let Some(dir) = dirs.pop() {
        let failed = |error| Failure::io("read", &dir, error);
        for entry in fs::read_dir(&dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (path, file_type) = (entry.path(), entry.file_type().map_err(failed)?);
            if file_type.is_dir() {
                dirs.push(path);
            } else if file_type.is_file() {
                let failed = |error| Failure::io("read", &path, error);
                let mut file = fs::File::open(&path).map_err(failed)?;
                std::io::copy(&mut file, &mut std::io::sink()).map_err(failed)?;
            }
        }
    }
    Ok(())
}

/// Images to read, each made when first needed.
struct Images<'a> {
    scratch: &'a Scratch,
    rivals: &'a Rivals,
    jobs: usize,
    made: HashMap<String, PathBuf>,
}

impl Images<'_> {
    fn of(&mut self, case: &Case) -> Result<PathBuf> {
        let (corpus, format) = (case.corpus.name(), case.format.name());
        let name = format!("{corpus}-{}-{}.{format}", case.codec.label(), case.layout().replace(' ', "-"));
        if let Some(path) = self.made.get(&name) {
            return Ok(path.clone());
        }
        let image = self.scratch.path(&name);
        let task = Task::Pack {
            source: case.corpus.path(),
            image: image.clone(),
            format: case.format,
            sharing: case.sharing,
            codec: case.codec,
            block_len: case.block_len,
            jobs: self.jobs,
        };
        measure::run(&command(self.rivals.packer(case.format), &task)?, None)?;
        self.made.insert(name, image.clone());
        Ok(image)
    }
}

/// One case about to be measured.
struct Bench<'a> {
    case: &'a Case,
    /// What is read; None if the case packs.
    image: Option<PathBuf>,
    scratch: &'a Scratch,
    runs: usize,
    jobs: usize,
}

impl Bench<'_> {
    fn run(&self, rival: &dyn Rival, packfs: Option<&dyn Rival>, entries: u64) -> Result<Outcome> {
        let rival_runs_max = self.case.rival_runs_max();
        let (mut theirs, mut ours) = (vec![], vec![]);
        // A rival too slow to be run often has no time to warm up either; packfs has read the source by then.
        let warm = |program: &dyn Rival| self.sample(program).map(|_| ());
        if let Some(packfs) = packfs {
            warm(packfs)?;
        }
        if rival_runs_max.is_none() {
            warm(rival)?;
        }
        for round in 0..self.runs {
            if rival_runs_max.is_none_or(|most| round < most) {
                theirs.push(self.sample(rival)?);
            }
            if let Some(packfs) = packfs {
                ours.push(self.sample(packfs)?);
            }
        }
        self.check_same(rival, packfs)?;
        let rival = self.measured(rival, theirs)?;
        let packfs = packfs.map(|packfs| self.measured(packfs, ours)).transpose()?;
        let verdicts = match &packfs {
            Some(packfs) => judge(self.case, entries, &rival.summary, &packfs.summary),
            None => vec![],
        };
        Ok(Outcome { case: *self.case, rival, packfs, verdicts })
    }

    fn sample(&self, program: &dyn Rival) -> Result<Sample> {
        let output = self.output(program);
        remove(&output)?;
        let stdout = (self.case.verb == Verb::Tar).then_some(output.as_path());
        let mut sample = measure::run(&command(program, &self.task(program))?, stdout)?;
        if self.case.verb != Verb::Unpack {
            let meta = output.metadata().map_err(|error| Failure::io("look at", &output, error))?;
            sample.output_len = Some(meta.len());
        }
        Ok(sample)
    }

    fn measured(&self, program: &dyn Rival, samples: Vec<Sample>) -> Result<Measured> {
        let summary = Summary::of(&samples).ok_or_else(|| Failure::new("nothing was measured"))?;
        let command = command(program, &self.task(program))?;
        Ok(Measured { program: program.name(), command, samples, summary })
    }

    /// What both wrote last has to be as much, or the times say nothing. Removes both.
    fn check_same(&self, rival: &dyn Rival, packfs: Option<&dyn Rival>) -> Result<()> {
        let theirs = self.output(rival);
        if let Some(packfs) = packfs {
            let ours = self.output(packfs);
            content::check_same(self.case, &ours, &theirs)?;
            remove(&ours)?;
        }
        remove(&theirs)
    }

    fn output(&self, program: &dyn Rival) -> PathBuf {
        self.scratch.path(&format!("{}.out", program.name()))
    }

    fn task(&self, program: &dyn Rival) -> Task {
        let (case, jobs) = (self.case, self.jobs);
        let (image, output) = (self.image.clone().unwrap_or_default(), self.output(program));
        match case.verb {
            Verb::Pack => {
                let Case { format, sharing, codec, block_len, .. } = *case;
                Task::Pack {
                    source: case.corpus.path(),
                    image: output,
                    format,
                    sharing,
                    codec,
                    block_len,
                    jobs,
                }
            }
            Verb::Unpack => Task::Unpack { image, dir: output, jobs },
            Verb::Tar => Task::Tar { image, jobs },
        }
    }
}

fn command(program: &dyn Rival, task: &Task) -> Result<Vec<OsString>> {
    program.command(task).ok_or_else(|| Failure::new(format!("{} does no {task:?}", program.name())))
}

/// Removes a file or a tree; it need not exist.
pub fn remove(path: &Path) -> Result<()> {
    if path.is_dir() {
        return crate::workspace::remove_dir(path);
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Failure::io("remove", path, error)),
        _ => Ok(()),
    }
}
