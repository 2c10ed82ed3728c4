//! Carrying out a plan: step by step, each run noted as it comes.
//!
//! `steps` says in which order, purely; [`Bench`] does it to the machine; `journal` keeps it. What
//! cannot be measured is noted with the reason, and the rest goes on.

mod bench;
mod entry;
mod journal;
mod own;
mod plan;
mod recorded;
mod spec;
mod steps;
mod trouble;
mod watch;

use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

use packfs::{Error, Result};

pub use bench::{Lab, LabOptions, check_device, device_names};
pub use journal::NAME as JOURNAL;
pub use own::{Depth, OwnRequest, own_plan};
pub use plan::{Cell, Plan, SubjectKey, recipe_label, subject_id};
pub use spec::{earlier_tree, parse_recipe};
pub use trouble::Trouble;
pub use watch::Watch;

use crate::results::{CpuLimit, DeviceFacts, Machine, Missing, Program, Results, Run, Subject};
use entry::Entry;
use journal::Journal;
use steps::{Step, Steps};
use watch::{Forecast, spell_seconds};

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
/// Errors: the bench limits programs otherwise than the plan says, the journal in `folder` is of
/// another plan or cannot be written, the scratch is full, or the user stopped it; then the journal
/// holds what was measured so far.
pub fn run(plan: &Plan, folder: &Path, bench: &mut dyn Bench, watch: &dyn Watch) -> Result<Results> {
    check_limit(plan, bench)?;
    let mut journal = Journal::open(folder, plan)?;
    if journal.is_resumed() {
        watch.note(&format!("goes on with the session in {folder:?}"));
    }
    journal.check_place(&bench.machine())?;
    journal.append(Entry::Machine(bench.machine()))?;
    let room = room_for(plan, bench)?;
    let steps = Steps::of(plan, &journal.done(), room, |subject| bench.len_guess(subject));
    let mut session = Session { plan, bench, watch, journal, missing: HashSet::new() };
    session.carry_out(&steps)?;
    session.note_end()?;
    Ok(session.journal.results())
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
    journal: Journal,
    missing: HashSet<usize>,
}

impl Session<'_> {
    fn carry_out(&mut self, steps: &Steps) -> Result<()> {
        let (total, mut number) = (steps.run_count(), 0);
        let mut forecast = Forecast::default();
        for (index, &step) in steps.steps.iter().enumerate() {
            if self.watch.is_stopped() {
                return Err(Error::cancelled());
            }
            let start = Instant::now();
            match step {
                Step::Make { subject } => {
                    if self.make(&steps.subjects[subject])? {
                        forecast.add(self.plan, step, start.elapsed());
                    }
                }
                Step::Remove { subject } => self.bench.remove(&steps.subjects[subject])?,
                Step::Run { cell, round } => {
                    number += 1;
                    let outcome = self.run(cell, round)?;
                    // The time of a run that was not measured says nothing.
                    if outcome.is_ok() {
                        forecast.add(self.plan, step, start.elapsed());
                    }
                    let word = outcome.unwrap_or_else(|why| why);
                    let label = self.plan.cells[cell].label();
                    let mut line = format!("[{number}/{total}] {label}: {word}");
                    let left = forecast.left(self.plan, &self.still_due(&steps.steps[index + 1..]));
                    if let Some(left) = left.filter(|_| number < total) {
                        line += &format!(" (about {} left)", spell_seconds(left));
                    }
                    self.watch.note(&line);
                }
            }
        }
        Ok(())
    }

    /// Steps that take time still: not those of cells that turned out to be missing.
    fn still_due(&self, steps: &[Step]) -> Vec<Step> {
        let is_due = |step: &Step| !matches!(step, Step::Run { cell, .. } if self.missing.contains(cell));
        steps.iter().copied().filter(is_due).collect()
    }

    /// Returns whether an image was made, and not there already or missing.
    fn make(&mut self, subject: &SubjectKey) -> Result<bool> {
        let is_of_it = |&index: &usize| self.plan.cells[index].subject() == *subject;
        let cells: Vec<_> = (0..self.plan.cells.len()).filter(is_of_it).collect();
        if cells.iter().all(|cell| self.missing.contains(cell)) {
            return Ok(false);
        }
        let was_there = self.bench.is_made(subject);
        if !was_there {
            self.watch.note(&format!("making {}", subject_id(&subject.tree, &subject.recipe)));
        }
        match self.bench.make(subject) {
            Ok(made) => {
                made.map_or(Ok(()), |made| self.note_subject(made))?;
                Ok(!was_there)
            }
            Err(trouble) => {
                let id = subject_id(&subject.tree, &subject.recipe);
                let why = self.note_trouble(trouble, &id, cells)?;
                self.watch.note(&format!("{id}: not measured: {why}"));
                Ok(false)
            }
        }
    }

    /// Returns the time of a run, or that it was not measured, in words.
    fn run(&mut self, cell: usize, round: u32) -> Result<Result<String, String>> {
        if self.missing.contains(&cell) {
            return Ok(Err("not measured".into()));
        }
        let ran = match self.bench.run(&self.plan.cells[cell]) {
            Ok(ran) => ran,
            Err(trouble) => {
                let why = self.note_trouble(trouble, &self.plan.cells[cell].label(), vec![cell])?;
                return Ok(Err(format!("not measured: {why}")));
            }
        };
        if let Some(subject) = ran.subject {
            self.note_subject(subject)?;
        }
        let Some(run) = ran.run else {
            self.journal.append_once(Entry::Counted { cell })?;
            return Ok(Ok("counted".into()));
        };
        if round < self.plan.settings.warm_ups() {
            return Ok(Ok(format!("{:.3} s, to warm up", run.wall)));
        }
        self.note_programs()?;
        self.journal.append(Entry::Run { cell, round, command: ran.command, run })?;
        Ok(Ok(format!("{:.3} s", run.wall)))
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
                let missing = Missing { what: what.to_owned(), why: why.clone() };
                self.journal.append(Entry::Missing { cells, missing })?;
                Ok(why)
            }
        }
    }

    fn note_subject(&mut self, subject: Subject) -> Result<()> {
        self.note_programs()?;
        if self.journal.subject(&subject.id) == Some(&subject) {
            return Ok(());
        }
        self.journal.append(Entry::Subject(subject))
    }

    fn note_programs(&mut self) -> Result<()> {
        for program in self.bench.programs() {
            self.journal.append_once(Entry::Program(program))?;
        }
        for device in self.bench.devices() {
            self.journal.append_once(Entry::Device(device))?;
        }
        Ok(())
    }

    fn note_end(&mut self) -> Result<()> {
        self.note_programs()?;
        let mut machine = self.bench.machine();
        machine.finished = Some(machine.started.clone());
        self.journal.append(Entry::Machine(machine))
    }
}

#[cfg(test)]
mod tests;
