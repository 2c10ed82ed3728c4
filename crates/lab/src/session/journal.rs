//! What a session has done so far: one line a step, appended as it happens, so that an interrupted session goes on.
//!
//! The first line is the plan. A line that was being written when the machine went down is left out; any other line that
//! cannot be read is refused, for a journal is nobody's to edit.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use packfs::{Error, Result, ResultExt};
use serde::{Deserialize, Serialize};

use super::plan::{Cell, Plan, SubjectKey};
use super::steps::Done;
use crate::results::{
    CpuLimit, DeviceFacts, Machine, Measurement, Missing, Program, Results, Run, SCHEMA, Subject,
};

/// What the journal is called in the output folder.
pub const NAME: &str = "session.jsonl";

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Entry {
    /// The first one.
    Plan(Box<Plan>),
    /// Where it is measured; again each time it is taken up.
    Machine(Machine),
    /// A program took part.
    Program(Program),
    /// A device is used.
    Device(DeviceFacts),
    /// A subject was made; a later line about it holds.
    Subject(Subject),
    /// A run was measured.
    Run { cell: usize, round: u32, command: String, run: Run },
    /// Cells cannot be measured.
    Missing { cells: Vec<usize>, missing: Missing },
}

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
    /// Errors: `Failed` if the one that is there is of another plan; `Corrupt` if it cannot be read.
    pub(super) fn open(folder: &Path, plan: &Plan) -> Result<Self> {
        std::fs::create_dir_all(folder).or_io(|| format!("cannot make {folder:?}"))?;
        let path = folder.join(NAME);
        let cannot = || format!("cannot open {path:?}");
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).write(true).create(true).truncate(false).open(&path).or_io(cannot)?;
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
        let (title, limit) = match self.entries.first() {
            Some(Entry::Plan(found)) => (found.settings.command.clone(), found.settings.cpu_limit.as_ref()),
            _ => ("something else".into(), None),
        };
        let mut what = format!("{:?} is the journal of another session: {title}", self.path);
        if limit != asked.settings.cpu_limit.as_ref() {
            // The way may differ though the command does not.
            let had = limit.map_or_else(|| "all processors".into(), CpuLimit::spelled);
            what += &format!("; its programs had {had}");
        }
        Error::failed(what).hint("--output names another folder; remove this one if nobody needs it")
    }

    /// Whether something was done before.
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

    /// What need not be done again. Cells that could not be measured are tried again when a session is taken up.
    pub(super) fn done(&self) -> Done {
        let mut done = Done::default();
        for entry in &self.entries {
            match entry {
                Entry::Run { cell, round, .. } => drop(done.runs.insert((*cell, *round))),
                Entry::Subject(subject) => {
                    let key = SubjectKey { tree: subject.tree.clone(), recipe: subject.recipe.clone() };
                    done.subjects.insert(key);
                }
                _ => {}
            }
        }
        done
    }

    /// What is known of a subject.
    pub(super) fn subject(&self, id: &str) -> Option<&Subject> {
        self.entries.iter().rev().find_map(|entry| match entry {
            Entry::Subject(subject) if subject.id == id => Some(subject),
            _ => None,
        })
    }

    /// All that was measured, but for the tables.
    pub(super) fn results(&self) -> Results {
        results(&self.entries)
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

fn results(entries: &[Entry]) -> Results {
    let mut results = Results { schema: SCHEMA.into(), ..Results::default() };
    let mut cells: Vec<Cell> = Vec::new();
    let mut runs: Vec<Vec<(u32, &String, Run)>> = Vec::new();
    for entry in entries {
        match entry {
            Entry::Plan(plan) => {
                results.title.clone_from(&plan.title);
                results.settings = plan.settings.clone();
                results.trees = plan.trees.iter().map(|tree| tree.facts.clone()).collect();
                results.missing.clone_from(&plan.missing);
                cells.clone_from(&plan.cells);
                runs = vec![Vec::new(); cells.len()];
            }
            Entry::Machine(machine) => {
                let started = std::mem::take(&mut results.machine.started);
                results.machine = machine.clone();
                if !started.is_empty() {
                    results.machine.started = started;
                }
            }
            Entry::Program(program) if !results.programs.contains(program) => {
                results.programs.push(program.clone());
            }
            Entry::Device(device) if !results.devices.contains(device) => {
                results.devices.push(device.clone())
            }
            Entry::Program(_) | Entry::Device(_) => {}
            Entry::Subject(subject) => {
                results.subjects.retain(|known| known.id != subject.id);
                results.subjects.push(subject.clone());
            }
            Entry::Run { cell, round, command, run } => {
                if let Some(runs) = runs.get_mut(*cell) {
                    runs.push((*round, command, *run));
                }
            }
            Entry::Missing { missing, .. } if !results.missing.contains(missing) => {
                results.missing.push(missing.clone());
            }
            Entry::Missing { .. } => {}
        }
    }
    for (cell, mut runs) in cells.iter().zip(runs) {
        runs.sort_by_key(|(round, ..)| *round);
        let Some((_, command, _)) = runs.first() else { continue };
        results.measurements.push(Measurement {
            workload: cell.workload.name().into(),
            subject: super::plan::subject_id(&cell.tree, &cell.recipe),
            reader: cell.reader.clone(),
            device: cell.device.clone(),
            jobs: cell.jobs,
            command: (*command).clone(),
            runs: runs.iter().map(|(_, _, run)| *run).collect(),
        });
    }
    results.missing.retain(|missing| !is_measured_later(entries, missing));
    results
}

/// Whether what was missing was there after all, in a later attempt.
fn is_measured_later(entries: &[Entry], missing: &Missing) -> bool {
    let is_it = |entry: &Entry| matches!(entry, Entry::Missing { missing: found, .. } if found == missing);
    let Some(place) = entries.iter().rposition(is_it) else { return false };
    let Entry::Missing { cells, .. } = &entries[place] else { return false };
    entries[place..].iter().any(|entry| match entry {
        Entry::Run { cell, .. } => cells.contains(cell),
        Entry::Subject(subject) => subject.id == missing.what,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Recipe, Settings};
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
    fn goes_on_where_it_was_and_leaves_out_a_torn_line() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(dir.path(), &plan()).unwrap();
        assert!(!journal.is_resumed());
        journal.append(run(0, 2, 2.0)).unwrap();
        journal.append(run(0, 1, 1.0)).unwrap();
        let path = dir.path().join(NAME);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"run\":{\"cell\":1,").unwrap();
        let mut again = plan();
        again.settings.command = "packfs lab run t --output x".into();
        let mut journal = Journal::open(dir.path(), &again).unwrap();
        assert!(journal.is_resumed());
        assert_eq!(journal.done().runs, [(0, 1), (0, 2)].into());
        journal.append(run(1, 1, 3.0)).unwrap();
        let results = Journal::open(dir.path(), &plan()).unwrap().results();
        let walls = |index: usize| results.measurements[index].runs.iter().map(|run| run.wall).collect();
        let walls: [Vec<f64>; 2] = [walls(0), walls(1)];
        assert_eq!(walls, [vec![1.0, 2.0], vec![3.0]]);
        assert_eq!(results.measurements[0].subject, "a of t");
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
    fn a_line_that_is_no_entry_is_told_by_its_number() {
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
    }
}
