//! Carrying out a plan: step by step, each run noted as it comes.
//!
//! `steps` says in which order, purely; [`Bench`] does it to the machine; `record` keeps it. What
//! cannot be measured is noted with the reason, and the rest goes on.

mod bench;
mod own;
mod plan;
mod record;
mod spec;
mod steps;
mod trouble;
mod watch;

use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

use packfs::{Error, Result};

pub use bench::{Lab, LabOptions, check_device, device_names};
pub use own::{Depth, OwnRequest, own_plan};
pub use plan::{Cell, Plan, SubjectKey, recipe_label, subject_id};
pub use spec::{earlier_tree, parse_recipe};
pub use trouble::Trouble;
pub use watch::Watch;

use crate::results::{CpuLimit, DeviceFacts, Machine, Missing, Program, Results, Run, Subject};
use record::{Record, add_once};
use steps::{Step, Steps};
use watch::spell_seconds;

/// A measured run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOutcome {
    /// The command, as one would type it.
    pub command: String,
    /// Its figures; none where nothing is timed.
    pub run: Option<Run>,
    /// Facts of the subject, if the run told.
    pub subject: Option<Subject>,
}

/// Room for images, in bytes that may be there at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// In the scratch, where each has its place.
    pub scratch: u64,
    /// In memory, for copies of them; none where a plan has nothing there.
    pub memory: Option<u64>,
}

/// Machine that carries out a plan.
pub trait Bench {
    /// Makes the image of a subject unless it is there; returns what is known of it then.
    fn make(&mut self, subject: &SubjectKey) -> Result<Option<Subject>, Trouble>;

    /// True if the image of a subject is there.
    fn is_made(&self, subject: &SubjectKey) -> bool;

    /// One run of a cell.
    fn run(&mut self, cell: &Cell) -> Result<RunOutcome, Trouble>;

    /// Removes whatever was made for a subject.
    fn remove(&mut self, subject: &SubjectKey) -> Result<()>;

    /// Programs and drivers that took part so far.
    fn programs(&self) -> Vec<Program>;

    /// Devices that were used so far.
    fn devices(&self) -> Vec<DeviceFacts>;

    /// Returns the room for images of this plan.
    fn room(&self, plan: &Plan) -> Result<Room>;

    /// Returns an upper estimate of the length of an image.
    fn len_guess(&self, subject: &SubjectKey) -> u64;

    /// Returns the limit of programs; none for all processors.
    fn cpu_limit(&self) -> Option<&CpuLimit>;

    /// Returns the facts of the machine, now.
    fn machine(&self) -> Machine;

    /// Returns the folder of images, for messages.
    fn place_name(&self) -> String;
}

/// Carries out a plan, or the rest of it, and returns all that was measured; tables are for the
/// caller to add.
///
/// Errors: the bench limits programs otherwise than the plan says, the file in `folder` is of
/// another plan or cannot be written, the scratch is full, or the user stopped it; then the file
/// holds what was measured so far.
pub fn run(plan: &Plan, folder: &Path, bench: &mut dyn Bench, watch: &dyn Watch) -> Result<Results> {
    check_limit(plan, bench)?;
    let record = Record::open(folder, plan, bench.machine())?;
    if record.is_resumed() {
        watch.note(&format!("goes on with the session in {folder:?}"));
    }
    let room = room_for(plan, bench)?;
    let steps = Steps::of(plan, &record.done(plan), room, |subject| bench.len_guess(subject));
    let mut session = Session { plan, bench, watch, record, missing: HashSet::new() };
    session.save()?;
    session.carry_out(&steps)?;
    session.record.facts().machine.finished = Some(session.bench.machine().started);
    session.save()?;
    Ok(session.record.into_results())
}

/// That programs have what the plan says they have: a record of another limit would be worse than
/// none.
fn check_limit(plan: &Plan, bench: &dyn Bench) -> Result<()> {
    let (planned, found) = (plan.settings.cpu_limit.as_ref(), bench.cpu_limit());
    if planned == found {
        return Ok(());
    }
    let spelled = |limit: Option<&CpuLimit>| limit.map_or_else(|| "all processors".into(), CpuLimit::spelled);
    let what = format!("programs have {}, and the plan has {}", spelled(found), spelled(planned));
    Err(Error::failed(what))
}

/// Room for images that are there at the same time. The scratch has to do for the longest of them;
/// what is too long for memory is missing there, and nothing else.
fn room_for(plan: &Plan, bench: &dyn Bench) -> Result<u64> {
    let Room { scratch: room, memory } = bench.room(plan)?;
    let longest = plan.subjects().iter().map(|subject| bench.len_guess(subject)).max().unwrap_or(0);
    if room >= longest {
        return Ok(memory.map_or(room, |memory| memory.min(room)));
    }
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let what = format!("{} has room for {} MiB of images", bench.place_name(), mib(room));
    Err(Error::failed(format!("{what}, and the longest of this session may need {}", mib(longest)))
        .hint("free some space, have --scratch DIR name another place, or take a smaller tree"))
}

struct Session<'a> {
    plan: &'a Plan,
    bench: &'a mut dyn Bench,
    watch: &'a dyn Watch,
    record: Record,
    missing: HashSet<usize>,
}

impl Session<'_> {
    fn carry_out(&mut self, steps: &Steps) -> Result<()> {
        let (total, start, mut number) = (steps.run_count(), Instant::now(), 0);
        for &step in &steps.steps {
            if self.watch.is_stopped() {
                return Err(Error::cancelled());
            }
            match step {
                Step::Make { subject } => self.make(&steps.subjects[subject])?,
                Step::Remove { subject } => self.bench.remove(&steps.subjects[subject])?,
                Step::Run { cell, round } => {
                    number += 1;
                    let word = self.run(cell, round)?;
                    let mut line = format!("[{number}/{total}] {}: {word}", self.plan.cells[cell].label());
                    let left = start.elapsed().as_secs_f64() / number as f64 * (total - number) as f64;
                    if number < total {
                        line += &format!(" (about {} left)", spell_seconds(left));
                    }
                    self.watch.note(&line);
                }
            }
        }
        Ok(())
    }

    fn make(&mut self, subject: &SubjectKey) -> Result<()> {
        let is_of_it = |&index: &usize| self.plan.cells[index].subject() == *subject;
        let cells: Vec<_> = (0..self.plan.cells.len()).filter(is_of_it).collect();
        if cells.iter().all(|cell| self.missing.contains(cell)) {
            return Ok(());
        }
        if !self.bench.is_made(subject) {
            self.watch.note(&format!("making {}", subject.id()));
        }
        match self.bench.make(subject) {
            Ok(made) => made.into_iter().for_each(|made| self.record.add_subject(made)),
            Err(trouble) => {
                let why = self.note_trouble(trouble, &subject.id(), cells)?;
                self.watch.note(&format!("{}: not measured: {why}", subject.id()));
            }
        }
        self.save()
    }

    /// Returns the time of a run, or that it was not measured, in words.
    fn run(&mut self, index: usize, round: u32) -> Result<String> {
        if self.missing.contains(&index) {
            return Ok("not measured".into());
        }
        let cell = &self.plan.cells[index];
        let RunOutcome { command, run, subject } = match self.bench.run(cell) {
            Ok(ran) => ran,
            Err(trouble) => {
                let why = self.note_trouble(trouble, &cell.label(), vec![index])?;
                self.save()?;
                return Ok(format!("not measured: {why}"));
            }
        };
        subject.into_iter().for_each(|subject| self.record.add_subject(subject));
        let word = match run {
            None => {
                self.record.add_counted(cell);
                "counted".into()
            }
            Some(run) if round < self.plan.settings.warm_ups() => format!("{:.3} s, to warm up", run.wall),
            Some(run) => {
                self.record.add_run(index, cell, command, run);
                format!("{:.3} s", run.wall)
            }
        };
        self.save()?;
        Ok(word)
    }

    /// Notes that `what`, these cells, cannot be measured, and returns why.
    fn note_trouble(&mut self, trouble: Trouble, what: &str, cells: Vec<usize>) -> Result<String> {
        // Failures during the removal of everything are not reported.
        if self.watch.is_stopped() {
            return Err(Error::cancelled());
        }
        match trouble {
            Trouble::Stop(error) => Err(error),
            Trouble::Missing(why) => {
                self.missing.extend(&cells);
                self.record.add_missing(Missing { what: what.to_owned(), why: why.clone() });
                Ok(why)
            }
        }
    }

    fn save(&mut self) -> Result<()> {
        let facts = self.record.facts();
        self.bench.programs().into_iter().for_each(|it| add_once(&mut facts.programs, it));
        self.bench.devices().into_iter().for_each(|it| add_once(&mut facts.devices, it));
        self.record.save()
    }
}

#[cfg(test)]
mod tests;
