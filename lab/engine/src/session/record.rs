//! Record of a session: the file of results, kept up to date step by step, so that an interrupted
//! session goes on.

use std::fs::File;
use std::path::{Path, PathBuf};

use packfs::{Error, Result, ResultExt};
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::plan::{Cell, Plan, SubjectKey};
use super::steps::Done;
use crate::results::file::write_whole;
use crate::results::{CpuLimit, FILE, Machine, Measurement, Missing, Results, Run, Settings, Subject};

#[derive(Debug)]
pub(super) struct Record {
    path: PathBuf,
    _lock: File,
    results: Results,
    /// By cells of the plan; none where nothing was measured.
    measured: Vec<Option<Measurement>>,
}

impl Record {
    /// Begins one for `plan` in `folder`, or goes on with the one that is there.
    ///
    /// Errors: `Failed` if the one that is there is of another plan, or was measured elsewhere, or
    /// another session is at it; `Corrupt` if it cannot be read.
    pub(super) fn open(folder: &Path, plan: &Plan, machine: Machine) -> Result<Self> {
        std::fs::create_dir_all(folder).or_io(|| format!("cannot make {folder:?}"))?;
        let lock = lock(folder)?;
        let path = folder.join(FILE);
        let mut results = of_plan(plan, machine);
        let mut measured = vec![None; plan.cells.len()];
        if path.exists() {
            let found = Results::read(&path)?;
            check_plan(&found, &results, &path)?;
            check_place(&found, &results, &path)?;
            for (cell, measured) in plan.cells.iter().zip(&mut measured) {
                *measured = found.measurements.iter().find(|found| cell.is_of(found)).cloned();
            }
            // Cells that could not be measured are tried again.
            let missing = std::mem::take(&mut results.missing);
            let (settings, started) = (results.settings, found.machine.started.clone());
            let machine = Machine { started, ..results.machine };
            results = Results { settings, machine, missing, tables: vec![], ..found };
        }
        Ok(Self { path, _lock: lock, results, measured })
    }

    /// True if something was done before.
    pub(super) fn is_resumed(&self) -> bool {
        has_begun(&self.results)
    }

    /// Returns the steps that need not be done again.
    pub(super) fn done(&self, plan: &Plan) -> Done {
        let mut done = Done::default();
        let first = plan.settings.warm_ups();
        for (index, (cell, measured)) in plan.cells.iter().zip(&self.measured).enumerate() {
            let count = measured.as_ref().map_or(0, |measured| measured.runs.len());
            done.runs.extend((first..).take(count).map(|round| (index, round)));
            if self.results.counted.contains(&cell.label()) {
                done.counted.insert(index);
            }
        }
        let key = |it: &Subject| SubjectKey { tree: it.tree.clone(), recipe: it.recipe.clone() };
        done.subjects = self.results.subjects.iter().map(key).collect();
        done
    }

    pub(super) fn add_run(&mut self, index: usize, cell: &Cell, command: String, run: Run) {
        let begin = || Measurement { command, ..cell.measurement() };
        self.measured[index].get_or_insert_with(begin).runs.push(run);
        self.found(&cell.label());
        self.found(&cell.subject().id());
    }

    /// Notes that an untimed cell was counted; its subject holds the result.
    pub(super) fn add_counted(&mut self, cell: &Cell) {
        add_once(&mut self.results.counted, cell.label());
        self.found(&cell.label());
    }

    /// Notes a subject; what is said later about it holds.
    pub(super) fn add_subject(&mut self, subject: Subject) {
        self.found(&subject.id);
        match self.results.subjects.iter_mut().find(|known| known.id == subject.id) {
            Some(known) => *known = subject,
            None => self.results.subjects.push(subject),
        }
    }

    pub(super) fn add_missing(&mut self, missing: Missing) {
        add_once(&mut self.results.missing, missing);
    }

    fn found(&mut self, what: &str) {
        self.results.missing.retain(|missing| missing.what != what);
    }

    /// The results so far but for measurements, of which only the record may make some.
    pub(super) fn facts(&mut self) -> &mut Results {
        &mut self.results
    }

    /// Writes all that was added; once this returns it is in the file.
    pub(super) fn save(&mut self) -> Result<()> {
        self.results.measurements = self.measured.iter().flatten().cloned().collect();
        write_whole(&self.path, self.results.json()?.as_bytes())
    }

    pub(super) fn into_results(self) -> Results {
        self.results
    }
}

/// Adds what is not there yet.
pub(super) fn add_once<T: PartialEq>(all: &mut Vec<T>, one: T) {
    if !all.contains(&one) {
        all.push(one);
    }
}

fn of_plan(plan: &Plan, machine: Machine) -> Results {
    Results {
        title: plan.title.clone(),
        settings: plan.settings.clone(),
        machine,
        trees: plan.trees.iter().map(|tree| tree.facts.clone()).collect(),
        cells: plan.cells.iter().map(Cell::label).collect(),
        missing: plan.missing.clone(),
        ..Results::new()
    }
}

fn has_begun(results: &Results) -> bool {
    !results.measurements.is_empty() || !results.subjects.is_empty()
}

/// That results are of the same plan, but for what may differ when a session is taken up again: how
/// it was called, and what is missing.
fn check_plan(found: &Results, asked: &Results, path: &Path) -> Result<()> {
    let plan = |it: &Results| {
        let settings = Settings { command: String::new(), ..it.settings.clone() };
        (it.title.clone(), settings, it.trees.clone(), it.cells.clone())
    };
    if plan(found) == plan(asked) {
        return Ok(());
    }
    let (had, asked) = (&found.settings, &asked.settings);
    let mut what = format!("{path:?} is of another session: {}", had.command);
    // Both may differ though the command does not.
    if had.cpu_limit != asked.cpu_limit {
        let had = had.cpu_limit.as_ref().map_or_else(|| "all processors".into(), CpuLimit::spelled);
        what += &format!("; its programs had {had}");
    }
    if let Some(jobs) = had.jobs.filter(|_| had.jobs != asked.jobs) {
        what += &format!("; its programs had --jobs {jobs}");
    }
    Err(Error::failed(what).hint("--output names another folder; remove this one if nobody needs it"))
}

/// That images lie where those did that were measured before: figures of two places are not one
/// table's.
fn check_place(found: &Results, asked: &Results, path: &Path) -> Result<()> {
    let (before, now) = (&found.machine.scratch, &asked.machine.scratch);
    if before == now || !has_begun(found) {
        return Ok(());
    }
    let what = format!("images of the session in {path:?} lay on {before}, and now on {now}");
    Err(Error::failed(what)
        .hint("--scratch DIR names a folder of the former place; --output begins another session"))
}

fn lock(folder: &Path) -> Result<File> {
    let lock = File::open(folder).or_io(|| format!("cannot open {folder:?}"))?;
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(Error::failed(format!("a session is at work in {folder:?}"))
            .hint("wait until it has ended, or have --output name another folder")),
        // Some file systems have no locks; there the user has to take care.
        _ => Ok(lock),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Recipe;
    use crate::workload::Workload;

    fn plan() -> Plan {
        let cell = |maker: &str| Cell {
            recipe: Recipe { maker: maker.into(), ..Recipe::default() },
            ..Cell::of_workload("t", Workload::List)
        };
        let settings = Settings { runs: 2, command: "packfs lab run t".into(), ..Settings::default() };
        Plan { title: "t".into(), settings, cells: vec![cell("a"), cell("b")], ..Plan::default() }
    }

    fn with(change: impl FnOnce(&mut Settings)) -> Plan {
        let mut plan = plan();
        change(&mut plan.settings);
        plan
    }

    fn open(dir: &tempfile::TempDir, plan: &Plan) -> Result<Record> {
        Record::open(dir.path(), plan, Machine::default())
    }

    fn saved(dir: &tempfile::TempDir, plan: &Plan) {
        open(dir, plan).unwrap().save().unwrap();
    }

    fn run(record: &mut Record, cell: usize, wall: f64) {
        record.add_run(cell, &plan().cells[cell], "ls".into(), Run { wall, ..Run::default() });
        record.save().unwrap();
    }

    #[test]
    fn goes_on_where_it_stopped() {
        let dir = tempfile::tempdir().unwrap();
        let mut record = open(&dir, &plan()).unwrap();
        assert!(!record.is_resumed());
        run(&mut record, 1, 3.0);
        run(&mut record, 0, 1.0);
        run(&mut record, 0, 2.0);
        drop(record);
        let mut record = open(&dir, &with(|it| it.command = "packfs lab run t --output x".into())).unwrap();
        assert!(record.is_resumed());
        assert_eq!(record.done(&plan()).runs, [(0, 1), (0, 2), (1, 1)].into());
        record.save().unwrap();
        let measurements = record.into_results().measurements;
        let walls = |index: usize| measurements[index].runs.iter().map(|run| run.wall).collect::<Vec<_>>();
        assert_eq!([walls(0), walls(1)], [vec![1.0, 2.0], vec![3.0]]);
        assert_eq!(measurements[0].subject, "a of t");
    }

    #[test]
    fn a_folder_is_of_one_session_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let record = open(&dir, &plan()).unwrap();
        let error = open(&dir, &plan()).unwrap_err();
        assert!(error.to_string().contains("a session is at work"), "{error}");
        assert!(error.hints()[0].contains("--output"), "{error:?}");
        drop(record);
        assert!(open(&dir, &plan()).is_ok());
    }

    #[test]
    fn images_of_a_session_stay_where_they_lay() {
        let dir = tempfile::tempdir().unwrap();
        let on = |scratch: &str| {
            Record::open(dir.path(), &plan(), Machine { scratch: scratch.into(), ..Machine::default() })
        };
        on("ext4 on /dev/vda").unwrap().save().unwrap();
        // Nothing was measured there.
        run(&mut on("tmpfs on tmpfs").unwrap(), 0, 1.0);
        assert!(on("tmpfs on tmpfs").is_ok());
        let error = on("ext4 on /dev/vda").unwrap_err();
        assert!(error.to_string().contains("lay on tmpfs on tmpfs"), "{error}");
        assert!(error.hints()[0].contains("--scratch"), "{error:?}");
    }

    #[test]
    fn another_plan_is_refused_with_a_way_out() {
        let limit = |cpus, way: &str| Some(CpuLimit { cpus, way: way.into() });
        let all = plan();
        let half = with(|it| it.cpu_limit = limit(0.333, "cgroup v1"));
        let one = with(|it| it.jobs = Some(1));
        for (had, other, why) in [
            (&all, with(|it| it.runs = 3), ": packfs lab run t"),
            (&one, with(|it| it.jobs = Some(4)), "had --jobs 1"),
            (&all, half.clone(), "had all processors"),
            (&half, plan(), "had 0.333 processors by cgroup v1"),
            (&half, with(|it| it.cpu_limit = limit(0.334, "cgroup v1")), "had 0.333 processors by cgroup v1"),
            (&half, with(|it| it.cpu_limit = limit(0.333, "affinity")), "had 0.333 processors by cgroup v1"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            saved(&dir, had);
            assert!(open(&dir, had).is_ok());
            let error = open(&dir, &other).unwrap_err();
            assert!(error.to_string().ends_with(why), "{error}");
            assert!(error.hints()[0].contains("--output"), "{error:?}");
        }
    }

    #[test]
    fn what_was_missing_and_is_measured_later_is_not_missing() {
        let dir = tempfile::tempdir().unwrap();
        let mut record = open(&dir, &plan()).unwrap();
        let missing = |index: usize| Missing { what: plan().cells[index].label(), why: "no luck".into() };
        [0, 1].into_iter().for_each(|index| record.add_missing(missing(index)));
        run(&mut record, 0, 1.0);
        assert_eq!(record.facts().missing, [missing(1)]);
        record.add_counted(&plan().cells[1]);
        assert_eq!(record.facts().missing, []);
        assert_eq!(record.done(&plan()).counted, [1].into());
    }
}
