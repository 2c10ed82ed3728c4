//! Sessions without a machine: a bench that only notes what it is asked for.

use super::*;
use crate::results::{CpuLimit, Machine, Recipe, Settings};
use crate::workload::Workload;

/// Keeps the calls in order; it fails where it is told to.
#[derive(Default)]
struct Fake {
    asked: Vec<String>,
    /// The number of the run that stops, as a full disk does.
    stops_at: Option<usize>,
    runs: usize,
    /// It builds nothing, as on a simulated device.
    builds_nothing: bool,
    made: HashSet<SubjectKey>,
    broken_maker: Option<&'static str>,
    broken_reader: Option<&'static str>,
    room: Option<u64>,
    memory: Option<u64>,
    limit: Option<CpuLimit>,
}

impl Bench for Fake {
    fn make(&mut self, subject: &SubjectKey) -> Result<Option<Subject>, Trouble> {
        self.asked.push(format!("make {}", subject.recipe.maker));
        if self.broken_maker == Some(subject.recipe.maker.as_str()) {
            return Err(Missing { what: "a program".into(), why: "it is not here".into() }.into());
        }
        self.made.insert(subject.clone());
        Ok(Some(facts(subject)))
    }

    fn is_made(&self, subject: &SubjectKey) -> bool {
        self.made.contains(subject)
    }

    fn run(&mut self, cell: &Cell) -> Result<RunOutcome, Trouble> {
        self.runs += 1;
        if self.stops_at == Some(self.runs) {
            return Err(Trouble::Stop(Error::failed("the scratch is full")));
        }
        let reader = cell.reader.clone().unwrap_or_default();
        self.asked.push(format!("{} {}", cell.recipe.maker, reader));
        if self.broken_reader == Some(reader.as_str()) {
            return Err(Missing { what: reader, why: "no driver".into() }.into());
        }
        let builds = cell.workload == Workload::Build;
        if builds && self.builds_nothing {
            return Err(Trouble::Missing("nobody builds there".into()));
        }
        if builds {
            self.made.insert(cell.subject());
        }
        let run = Run { wall: self.runs as f64, ..Run::default() };
        Ok(RunOutcome {
            command: "ls".into(),
            run: Some(run),
            subject: builds.then(|| facts(&cell.subject())),
        })
    }

    fn remove(&mut self, subject: &SubjectKey) -> Result<()> {
        self.asked.push(format!("remove {}", subject.recipe.maker));
        self.made.remove(subject);
        Ok(())
    }

    fn programs(&self) -> Vec<Program> {
        vec![Program { name: "ls".into(), version: "1".into(), path: None }]
    }

    fn devices(&self) -> Vec<DeviceFacts> {
        vec![]
    }

    fn room(&self, _: &Plan) -> Result<Room> {
        Ok(Room { scratch: self.room.unwrap_or(u64::MAX), memory: self.memory })
    }

    fn len_guess(&self, _: &SubjectKey) -> u64 {
        100 << 20
    }

    fn cpu_limit(&self) -> Option<&CpuLimit> {
        self.limit.as_ref()
    }

    fn machine(&self) -> Machine {
        Machine { kernel: "Linux".into(), started: "2026-11-22T00:00:00Z".into(), ..Machine::default() }
    }

    fn place_name(&self) -> String {
        "\"/scratch\"".into()
    }
}

fn facts(subject: &SubjectKey) -> Subject {
    Subject {
        id: subject_id(&subject.tree, &subject.recipe),
        tree: subject.tree.clone(),
        recipe: subject.recipe.clone(),
        command: "make".into(),
        stored_len: Some(10),
        usage: vec![],
    }
}

/// Lines that are shown; it wants to stop once there are so many.
struct Shown<'a>(std::sync::Mutex<&'a mut Vec<String>>, Option<usize>);

impl Watch for Shown<'_> {
    fn note(&self, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }

    fn is_stopped(&self) -> bool {
        self.1.is_some_and(|count| self.0.lock().unwrap().len() >= count)
    }
}

fn plan(runs: u32) -> Plan {
    let cell = |maker: &str, reader: &str| Cell {
        tree: "t".into(),
        recipe: Recipe { maker: maker.into(), format: "f".into(), codec: "c".into(), ..Recipe::default() },
        reader: Some(reader.into()),
        workload: Workload::List,
        device: "disk".into(),
        jobs: None,
    };
    let cells = vec![cell("a", "kernel"), cell("a", "fuse"), cell("b", "kernel")];
    Plan { title: "t".into(), settings: Settings { runs, ..Settings::default() }, cells, ..Plan::default() }
}

fn carry_out(plan: &Plan, folder: &Path, fake: &mut Fake) -> (Result<Results>, Vec<String>) {
    let mut lines = Vec::new();
    let outcome = run(plan, folder, fake, &Shown(std::sync::Mutex::new(&mut lines), None));
    (outcome, lines)
}

#[test]
fn subjects_take_turns_and_warming_up_is_not_measured() {
    let (dir, mut fake) = (tempfile::tempdir().unwrap(), Fake::default());
    let (results, lines) = carry_out(&plan(2), dir.path(), &mut fake);
    let results = results.unwrap();
    let asked = "make a, make b, a kernel, a fuse, b kernel, a fuse, b kernel, a kernel, b kernel, remove b, \
                 a kernel, a fuse, remove a";
    assert_eq!(fake.asked.join(", "), asked);
    let walls: Vec<Vec<f64>> =
        results.measurements.iter().map(|cell| cell.runs.iter().map(|run| run.wall).collect()).collect();
    assert_eq!(walls, [vec![6.0, 8.0], vec![4.0, 9.0], vec![5.0, 7.0]]);
    assert_eq!(results.programs.len(), 1);
    assert_eq!(results.subjects.len(), 2);
    assert_eq!(results.machine.finished.as_deref(), Some("2026-11-22T00:00:00Z"));
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("[1/9] list, a f c of t, kernel, disk: 1.000 s, to warm up"))
    );
}

#[test]
fn an_interrupted_session_resumes_without_repeating_measurements() {
    let dir = tempfile::tempdir().unwrap();
    let mut fake = Fake { stops_at: Some(6), ..Fake::default() };
    let (outcome, _) = carry_out(&plan(2), dir.path(), &mut fake);
    assert_eq!(outcome.unwrap_err().to_string(), "the scratch is full");
    let mut fake = Fake { runs: 100, ..Fake::default() };
    let (results, lines) = carry_out(&plan(2), dir.path(), &mut fake);
    let walls: Vec<Vec<f64>> = results
        .unwrap()
        .measurements
        .iter()
        .map(|cell| cell.runs.iter().map(|run| run.wall).collect())
        .collect();
    // The second cell ran once and the third once before.
    assert_eq!((walls[1][0], walls[2][0]), (4.0, 5.0));
    assert!(walls.iter().all(|runs| runs.len() == 2), "{walls:?}");
    assert!(lines[0].starts_with("goes on"), "{lines:?}");
    // All is done: nothing is made or run.
    let mut fake = Fake::default();
    carry_out(&plan(2), dir.path(), &mut fake).0.unwrap();
    assert!(fake.asked.is_empty(), "{:?}", fake.asked);
}

#[test]
fn failed_measurements_are_reported_and_the_rest_continues() {
    let dir = tempfile::tempdir().unwrap();
    let mut fake = Fake { broken_maker: Some("b"), broken_reader: Some("fuse"), ..Fake::default() };
    let (results, _) = carry_out(&plan(1), dir.path(), &mut fake);
    let results = results.unwrap();
    assert_eq!(results.measurements.len(), 1);
    let missing: Vec<_> = results.missing.iter().map(|missing| (&*missing.what, &*missing.why)).collect();
    let expected =
        [("b f c of t", "a program: it is not here"), ("list, a f c of t, fuse, disk", "fuse: no driver")];
    assert_eq!(missing, expected);
}

#[test]
fn an_image_that_no_run_builds_is_made_all_the_same_and_its_length_is_known() {
    let mut plan = plan(1);
    plan.cells.truncate(1);
    for workload in [Workload::ImageSize, Workload::Build] {
        plan.cells.push(Cell { workload, reader: None, ..plan.cells[0].clone() });
    }
    for (builds_nothing, missing_count) in [(true, 1), (false, 0)] {
        let dir = tempfile::tempdir().unwrap();
        let mut fake = Fake { builds_nothing, ..Fake::default() };
        let (results, lines) = carry_out(&plan, dir.path(), &mut fake);
        let results = results.unwrap();
        assert_eq!(fake.asked, ["a ", "make a", "a kernel", "remove a"]);
        assert_eq!(results.subjects.iter().map(|found| found.stored_len).collect::<Vec<_>>(), [Some(10)]);
        assert_eq!(results.missing.len(), missing_count, "{:?}", results.missing);
        assert!(results.measurements.iter().any(|found| found.workload == "list"));
        // What a run built is not announced once more.
        let is_announced = lines.iter().any(|line| line.starts_with("making "));
        assert_eq!(is_announced, builds_nothing, "{lines:?}");
    }
}

#[test]
fn a_stopped_session_reports_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    let mut lines = Vec::new();
    let mut fake = Fake { broken_reader: Some("kernel"), ..Fake::default() };
    // The two images are announced, and then the user stops it.
    let watch = Shown(std::sync::Mutex::new(&mut lines), Some(2));
    let error = run(&plan(1), dir.path(), &mut fake, &watch).unwrap_err();
    assert_eq!(error.kind(), packfs::ErrorKind::Cancelled);
    let results = Results::read(&dir.path().join(crate::results::FILE)).unwrap();
    assert!(results.missing.is_empty() && results.measurements.is_empty());
}

#[test]
fn reports_a_scratch_too_small_for_any_image_before_running() {
    let dir = tempfile::tempdir().unwrap();
    let mut fake = Fake { room: Some(50 << 20), ..Fake::default() };
    let (outcome, _) = carry_out(&plan(1), dir.path(), &mut fake);
    let error = outcome.unwrap_err();
    assert!(error.to_string().contains("50 MiB") && error.to_string().contains("100"), "{error}");
    assert!(error.hints()[0].contains("--scratch"), "{error:?}");
    assert!(fake.asked.is_empty());
}

#[test]
fn a_memory_too_small_for_all_copies_takes_them_one_by_one_and_refuses_none() {
    for memory in [150 << 20, 50 << 20] {
        let dir = tempfile::tempdir().unwrap();
        let mut fake = Fake { memory: Some(memory), ..Fake::default() };
        carry_out(&plan(1), dir.path(), &mut fake).0.unwrap();
        let asked = "make a, a kernel, a fuse, remove a, make b, b kernel, remove b";
        assert_eq!(fake.asked.join(", "), asked);
    }
}

#[test]
fn what_is_limited_otherwise_than_planned_is_never_measured() {
    let half = CpuLimit { cpus: 0.5, way: "cgroup v1 (cpu.cfs_quota_us)".into() };
    let mut limited = plan(1);
    limited.settings.cpu_limit = Some(half.clone());
    for (plan, limit) in [(&limited, None), (&plan(1), Some(half.clone()))] {
        let dir = tempfile::tempdir().unwrap();
        let mut fake = Fake { limit, ..Fake::default() };
        let error = carry_out(plan, dir.path(), &mut fake).0.unwrap_err();
        assert!(error.to_string().contains("0.5 processors by cgroup v1"), "{error}");
        assert!(fake.asked.is_empty());
    }
    let (dir, mut fake) = (tempfile::tempdir().unwrap(), Fake { limit: Some(half), ..Fake::default() });
    let results = carry_out(&limited, dir.path(), &mut fake).0.unwrap();
    assert_eq!(results.settings.cpu_limit, limited.settings.cpu_limit);
}
