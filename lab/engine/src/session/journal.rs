//! Journal of a session: one line a step, appended as it happens, so that an interrupted session
//! goes on.
//!
//! The first line is the plan. A line that was being written when the machine went down is left
//! out; any other line that cannot be read is refused, because a journal is not edited.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use packfs::{Error, Result, ResultExt};
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::entry::Entry;
use super::plan::{Plan, SubjectKey};
use super::recorded;
use super::steps::Done;
use crate::results::{CpuLimit, Machine, Results, Settings, Subject};

/// Name of the journal in the output folder.
pub const NAME: &str = "session.jsonl";

/// A journal, open at its end.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    entries: Vec<Entry>,
}

impl Journal {
    /// Begins one for `plan` in `folder`, or goes on with the one that is there.
    ///
    /// It is locked until this is dropped: lines of two sessions in one file would belong to
    /// neither.
    ///
    /// Errors: `Failed` if the one that is there is of another plan, or another session is at it;
    /// `Corrupt` if it cannot be read.
    pub(super) fn open(folder: &Path, plan: &Plan) -> Result<Self> {
        std::fs::create_dir_all(folder).or_io(|| format!("cannot make {folder:?}"))?;
        let path = folder.join(NAME);
        let cannot = || format!("cannot open {path:?}");
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).write(true).create(true).truncate(false).open(&path).or_io(cannot)?;
        lock(&file, folder)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).or_io(|| format!("cannot read {path:?}"))?;
        let (entries, len) = parse(&text).map_err(|error| error.at(format!("{path:?}")))?;
        file.set_len(len).or_io(|| format!("cannot shorten {path:?}"))?;
        file.seek(SeekFrom::End(0)).or_io(cannot)?;
        let mut journal = Self { path, file, entries };
        match journal.entries.first() {
            None => journal.append(Entry::Plan(Box::new(plan.clone())))?,
            Some(Entry::Plan(found)) if found.is_same(plan) => {}
            Some(_) => return Err(journal.of_another_plan(plan)),
        }
        Ok(journal)
    }

    fn of_another_plan(&self, asked: &Plan) -> Error {
        let had = match self.entries.first() {
            Some(Entry::Plan(found)) => found.settings.clone(),
            _ => Settings { command: "something else".into(), ..Settings::default() },
        };
        let mut what = format!("{:?} is the journal of another session: {}", self.path, had.command);
        // Both may differ though the command does not.
        if had.cpu_limit != asked.settings.cpu_limit {
            let had = had.cpu_limit.as_ref().map_or_else(|| "all processors".into(), CpuLimit::spelled);
            what += &format!("; its programs had {had}");
        }
        if let Some(jobs) = had.jobs.filter(|_| had.jobs != asked.settings.jobs) {
            what += &format!("; its programs had --jobs {jobs}");
        }
        Error::failed(what).hint("--output names another folder; remove this one if nobody needs it")
    }

    /// That images lie where those did that were measured before: figures of two places are not one
    /// table's.
    ///
    /// Errors: `Failed` if they do not.
    pub(super) fn check_place(&self, machine: &Machine) -> Result<()> {
        let before = self.entries.iter().rev().find_map(|entry| match entry {
            Entry::Machine(found) if self.is_resumed() => Some(&found.scratch),
            _ => None,
        });
        let Some(before) = before.filter(|&before| *before != machine.scratch) else { return Ok(()) };
        let now = &machine.scratch;
        let what = format!("images of the session in {:?} lay on {before}, and now on {now}", self.path);
        Err(Error::failed(what)
            .hint("--scratch DIR names a folder of the former place; --output begins another session"))
    }

    /// True if something was done before.
    pub(super) fn is_resumed(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry, Entry::Run { .. } | Entry::Subject(_)))
    }

    /// Adds a line; once this returns it is in the file.
    pub(super) fn append(&mut self, entry: Entry) -> Result<()> {
        let mut line = serde_json::to_vec(&entry)
            .map_err(|error| Error::failed(format!("cannot spell a line of {:?}: {error}", self.path)))?;
        line.push(b'\n');
        self.file.write_all(&line).or_io(|| format!("cannot write {:?}", self.path))?;
        self.entries.push(entry);
        Ok(())
    }

    /// Adds a line unless there is one like it.
    pub(super) fn append_once(&mut self, entry: Entry) -> Result<()> {
        if self.entries.contains(&entry) { Ok(()) } else { self.append(entry) }
    }

    /// Returns the steps that need not be done again. Cells that could not be measured are tried
    /// again when a session is taken up.
    pub(super) fn done(&self) -> Done {
        let mut done = Done::default();
        for entry in &self.entries {
            match entry {
                Entry::Run { cell, round, .. } => drop(done.runs.insert((*cell, *round))),
                Entry::Counted { cell } => drop(done.counted.insert(*cell)),
                Entry::Subject(subject) => {
                    let key = SubjectKey { tree: subject.tree.clone(), recipe: subject.recipe.clone() };
                    done.subjects.insert(key);
                }
                _ => {}
            }
        }
        done
    }

    /// Returns the facts of a subject.
    pub(super) fn subject(&self, id: &str) -> Option<&Subject> {
        self.entries.iter().rev().find_map(|entry| match entry {
            Entry::Subject(subject) if subject.id == id => Some(subject),
            _ => None,
        })
    }

    /// All that was measured, but for the tables.
    pub(super) fn results(&self) -> Results {
        recorded::results(&self.entries)
    }
}

fn lock(file: &File, folder: &Path) -> Result<()> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(Error::failed(format!("a session is at work in {folder:?}"))
            .hint("wait until it has ended, or have --output name another folder")),
        // Some file systems have no locks; there the user has to take care.
        _ => Ok(()),
    }
}

/// Lines, and where the last whole one ends.
fn parse(text: &[u8]) -> Result<(Vec<Entry>, u64)> {
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let mut entries = Vec::new();
    for (index, line) in text[..whole].split_inclusive(|&byte| byte == b'\n').enumerate() {
        let entry = serde_json::from_slice(line)
            .map_err(|error| Error::corrupt("journal", format!("line {}: {error}", index + 1)))?;
        entries.push(entry);
    }
    Ok((entries, whole as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Recipe;
    use crate::results::{Missing, Run};
    use crate::session::Cell;
    use crate::workload::Workload;

    fn plan() -> Plan {
        let cell = |maker: &str| Cell {
            tree: "t".into(),
            recipe: Recipe { maker: maker.into(), ..Recipe::default() },
            reader: Some("kernel".into()),
            workload: Workload::List,
            device: "disk".into(),
            jobs: None,
        };
        let settings = Settings { runs: 2, command: "packfs lab run t".into(), ..Settings::default() };
        Plan { title: "t".into(), settings, cells: vec![cell("a"), cell("b")], ..Plan::default() }
    }

    fn run(cell: usize, round: u32, wall: f64) -> Entry {
        Entry::Run { cell, round, command: "ls".into(), run: Run { wall, ..Run::default() } }
    }

    #[test]
    fn resumes_and_skips_an_incomplete_line() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(dir.path(), &plan()).unwrap();
        assert!(!journal.is_resumed());
        journal.append(run(0, 2, 2.0)).unwrap();
        journal.append(run(0, 1, 1.0)).unwrap();
        let path = dir.path().join(NAME);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"run\":{\"cell\":1,").unwrap();
        drop(journal);
        let mut again = plan();
        again.settings.command = "packfs lab run t --output x".into();
        let mut journal = Journal::open(dir.path(), &again).unwrap();
        assert!(journal.is_resumed());
        assert_eq!(journal.done().runs, [(0, 1), (0, 2)].into());
        journal.append(run(1, 1, 3.0)).unwrap();
        drop(journal);
        let results = Journal::open(dir.path(), &plan()).unwrap().results();
        let walls = |index: usize| results.measurements[index].runs.iter().map(|run| run.wall).collect();
        let walls: [Vec<f64>; 2] = [walls(0), walls(1)];
        assert_eq!(walls, [vec![1.0, 2.0], vec![3.0]]);
        assert_eq!(results.measurements[0].subject, "a of t");
    }

    #[test]
    fn a_folder_is_of_one_session_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(dir.path(), &plan()).unwrap();
        let error = Journal::open(dir.path(), &plan()).unwrap_err();
        assert!(error.to_string().contains("a session is at work"), "{error}");
        assert!(error.hints()[0].contains("--output"), "{error:?}");
        drop(journal);
        assert!(Journal::open(dir.path(), &plan()).is_ok());
    }

    #[test]
    fn another_number_of_threads_is_another_session_where_it_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let with = |jobs: Option<u32>| {
            let mut plan = plan();
            plan.settings.jobs = jobs;
            plan
        };
        drop(Journal::open(dir.path(), &with(Some(1))).unwrap());
        let error = Journal::open(dir.path(), &with(Some(4))).unwrap_err();
        assert!(error.to_string().ends_with("its programs had --jobs 1"), "{error}");
        assert!(Journal::open(dir.path(), &with(Some(1))).is_ok());
        let dir = tempfile::tempdir().unwrap();
        drop(Journal::open(dir.path(), &with(None)).unwrap());
        assert!(Journal::open(dir.path(), &with(Some(4))).is_ok());
    }

    #[test]
    fn images_of_a_session_stay_where_they_lay() {
        let dir = tempfile::tempdir().unwrap();
        let machine = |scratch: &str| Machine { scratch: scratch.into(), ..Machine::default() };
        let mut journal = Journal::open(dir.path(), &plan()).unwrap();
        journal.append(Entry::Machine(machine("ext4 on /dev/vda"))).unwrap();
        // Nothing was measured there.
        assert!(journal.check_place(&machine("tmpfs on tmpfs")).is_ok());
        journal.append(run(0, 1, 1.0)).unwrap();
        assert!(journal.check_place(&machine("ext4 on /dev/vda")).is_ok());
        let error = journal.check_place(&machine("tmpfs on tmpfs")).unwrap_err();
        assert!(error.to_string().contains("lay on ext4 on /dev/vda"), "{error}");
        assert!(error.hints()[0].contains("--scratch"), "{error:?}");
    }

    #[test]
    fn another_plan_is_refused_with_a_way_out() {
        let dir = tempfile::tempdir().unwrap();
        drop(Journal::open(dir.path(), &plan()).unwrap());
        let mut other = plan();
        other.settings.runs = 3;
        let error = Journal::open(dir.path(), &other).unwrap_err();
        assert!(error.to_string().contains("packfs lab run t"), "{error}");
        assert!(error.hints()[0].contains("--output"), "{error:?}");
    }

    #[test]
    fn another_limit_of_processors_is_another_session() {
        let dir = tempfile::tempdir().unwrap();
        let limited = |cpus: f64, way: &str| {
            let mut plan = plan();
            plan.settings.cpu_limit = Some(CpuLimit { cpus, way: way.into() });
            plan
        };
        let half = limited(0.333, "cgroup v1");
        drop(Journal::open(dir.path(), &half).unwrap());
        assert!(Journal::open(dir.path(), &half).is_ok());
        for other in [plan(), limited(0.334, "cgroup v1"), limited(0.333, "affinity")] {
            let error = Journal::open(dir.path(), &other).unwrap_err();
            assert!(error.to_string().ends_with("its programs had 0.333 processors by cgroup v1"), "{error}");
        }
        let dir = tempfile::tempdir().unwrap();
        drop(Journal::open(dir.path(), &plan()).unwrap());
        let error = Journal::open(dir.path(), &half).unwrap_err();
        assert!(error.to_string().ends_with("its programs had all processors"), "{error}");
    }

    #[test]
    fn reports_invalid_lines_by_number() {
        let dir = tempfile::tempdir().unwrap();
        drop(Journal::open(dir.path(), &plan()).unwrap());
        let path = dir.path().join(NAME);
        let text = std::fs::read_to_string(&path).unwrap() + "{\"walk\":1}\n";
        std::fs::write(&path, text).unwrap();
        let error = Journal::open(dir.path(), &plan()).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
        assert_eq!(error.kind(), packfs::ErrorKind::Corrupt);
    }

    #[test]
    fn what_was_missing_and_is_measured_later_is_not_missing() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(dir.path(), &plan()).unwrap();
        let missing = |index: usize| Missing { what: plan().cells[index].label(), why: "no luck".into() };
        for cell in [0, 1] {
            journal.append(Entry::Missing { cells: vec![cell], missing: missing(cell) }).unwrap();
        }
        journal.append(run(0, 1, 1.0)).unwrap();
        assert_eq!(journal.results().missing, [missing(1)]);
        journal.append(Entry::Counted { cell: 1 }).unwrap();
        assert_eq!(journal.results().missing, []);
        assert_eq!(journal.done().counted, [1].into());
    }
}
