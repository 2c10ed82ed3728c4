//! What a session measured, held against the targets of its plan.

use super::cells::cell;
use super::file::{Case, Side, Target};
use crate::report::{Summary, as_figure, figure, summaries};
use crate::results::{self, Column, Results, Spread, Table, Unit};
use crate::session::{Cell, subject_id};

/// What became of the targets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdicts {
    /// How many were met.
    pub met: usize,
    /// Each one that was missed, in a line.
    pub missed: Vec<String>,
    /// Each case that could not be judged, with the reason.
    pub skipped: Vec<String>,
    rows: Vec<Vec<results::Cell>>,
}

/// One figure of packfs beside its limit.
struct Judged {
    what: &'static str,
    /// The rival's figure, or the limit's.
    against: String,
    ours: String,
    /// packfs to rival, or to the limit.
    ratio: f64,
    most: f64,
}

/// What is known of one side of a case.
struct Figures {
    wall: Option<f64>,
    processor: Option<f64>,
    memory_peak: Option<f64>,
    stored: Option<f64>,
}

/// Judges each case on each device of a session.
pub fn judge(cases: &[Case], found: &Results) -> Verdicts {
    let (summaries, mut verdicts) = (summaries(found), Verdicts::default());
    let mut devices: Vec<&str> = found.measurements.iter().map(|it| &*it.device).collect();
    devices.sort_unstable();
    devices.dedup();
    for case in cases {
        // How long an image is does not depend on the device.
        let is_once = !case.workload.is_timed() || devices.is_empty();
        let devices = if is_once { &[""][..] } else { &devices };
        for device in devices {
            let find = |side: &Side| {
                let cell = cell(side, case.workload, device, found.settings.jobs);
                figures(&cell, &summaries, found).ok_or_else(|| reason(side, &cell, found))
            };
            let ours = find(&case.packfs);
            let theirs = case.rival.as_ref().map(find).transpose();
            match ours.and_then(|ours| Ok((ours, theirs?))) {
                Ok((ours, theirs)) => {
                    let entries = entries(&case.packfs.tree, found);
                    for outcome in judged(&case.target, &ours, theirs.as_ref(), entries) {
                        match outcome {
                            Ok(judged) => verdicts.add(case, &judged),
                            Err(what) => verdicts.skip(case, format!("{what}: no figure was measured")),
                        }
                    }
                }
                Err(reason) if has_failed(case, found) => verdicts.fail(case, reason),
                Err(reason) => verdicts.skip(case, reason),
            }
        }
    }
    verdicts
}

/// What a session found of a cell; none if it was not measured.
fn figures(cell: &Cell, summaries: &[Summary<'_>], found: &Results) -> Option<Figures> {
    let id = subject_id(&cell.tree, &cell.recipe);
    let summary = summaries.iter().find(|summary| {
        let it = summary.measurement;
        it.workload == cell.workload.name()
            && it.subject == id
            && it.reader == cell.reader
            && it.device == cell.device
    });
    let stored = found.subjects.iter().find(|subject| subject.id == id)?.stored_len.map(as_figure);
    if summary.is_none() && cell.workload.is_timed() {
        return None;
    }
    Some(Figures {
        wall: summary.and_then(|it| it.wall).map(|wall| wall.median),
        processor: summary.and_then(|it| it.processor).map(|taken| taken.median),
        memory_peak: summary.and_then(|it| it.memory_peak).map(as_figure),
        stored,
    })
}

/// How many files, folders and others a tree has.
fn entries(tree: &str, found: &Results) -> u64 {
    let facts = found.trees.iter().find(|facts| facts.id == tree);
    facts.map_or(0, |tree| tree.files + tree.dirs + tree.others)
}

/// Returns true if packfs did not make the image of a case: its tree was there, and packfs is.
fn has_failed(case: &Case, found: &Results) -> bool {
    let id = subject_id(&case.packfs.tree, &case.packfs.recipe);
    // A cell's label goes on with its device.
    let build = format!("{}, {id}", case.workload.name());
    let builds = case.packfs.reader.is_none();
    let is_of_packfs = |what: &str| what == id || builds && what.starts_with(&build);
    found.missing.iter().any(|missing| is_of_packfs(&missing.what))
}

/// Returns the reason why a side of a case was not measured.
fn reason(side: &Side, cell: &Cell, found: &Results) -> String {
    let id = subject_id(&cell.tree, &cell.recipe);
    let names = [&cell.label(), &id, &side.tree, &side.recipe.maker];
    let missing = found.missing.iter().find(|missing| names.contains(&&missing.what));
    let why = missing.map_or("it was not measured", |missing| &missing.why);
    format!("{}: {why}", side.label())
}

/// Judges each target of a case; the name of one without figures is an error.
fn judged(
    target: &Target,
    ours: &Figures,
    theirs: Option<&Figures>,
    entries: u64,
) -> Vec<Result<Judged, &'static str>> {
    let beside = |what, unit, most: Option<f64>, of: fn(&Figures) -> Option<f64>| {
        most.map(|most| compared(what, unit, of(ours), theirs.and_then(of), most))
    };
    let limit = |what, most: Option<u64>, ours| {
        most.map(|most| compared(what, Unit::Bytes, ours, Some(as_figure(most)), 1.0))
    };
    let memory = target.memory_mib.map(|mib| (mib << 20) + target.memory_per_entry * entries);
    [
        beside("time", Unit::Seconds, target.wall, |it| it.wall),
        beside("processor time", Unit::Seconds, target.cpu, |it| it.processor),
        beside("size", Unit::Bytes, target.size, |it| it.stored),
        limit("size", target.bytes, ours.stored),
        limit("memory", memory, ours.memory_peak),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn compared(
    what: &'static str,
    unit: Unit,
    ours: Option<f64>,
    against: Option<f64>,
    most: f64,
) -> Result<Judged, &'static str> {
    let (ours, against) = ours.zip(against).ok_or(what)?;
    let ratio = ours / against;
    let judged = Judged { what, against: figure(against, unit), ours: figure(ours, unit), ratio, most };
    if ratio.is_finite() { Ok(judged) } else { Err(what) }
}

impl Verdicts {
    /// Returns true if every target that was judged was met, and one was.
    pub fn are_met(&self) -> bool {
        self.met > 0 && self.missed.is_empty()
    }

    fn add(&mut self, case: &Case, it: &Judged) {
        let is_met = it.ratio <= it.most;
        if is_met {
            self.met += 1;
        } else {
            let Judged { what, ratio, most, .. } = it;
            self.missed.push(format!("{}: {what} {ratio:.3}, at most {most:.3}", case.label()));
        }
        let text = |text: &str| results::Cell::Text(text.into());
        self.rows.push(vec![
            text(&case.label()),
            text(it.what),
            text(&it.against),
            text(&it.ours),
            results::Cell::Figure(Spread::exact(it.ratio)),
            results::Cell::Figure(Spread::exact(it.most)),
            text(if is_met { "met" } else { "missed" }),
        ]);
    }

    fn fail(&mut self, case: &Case, reason: String) {
        self.missed.push(format!("{}: {reason}", case.label()));
        self.add_empty_row(case, reason);
    }

    fn skip(&mut self, case: &Case, reason: String) {
        self.skipped.push(format!("{}: {reason}", case.label()));
        self.add_empty_row(case, reason);
    }

    fn add_empty_row(&mut self, case: &Case, reason: String) {
        let mut row = vec![results::Cell::Text(case.label())];
        row.resize(6, results::Cell::Empty);
        row.push(results::Cell::Missing(reason));
        self.rows.push(row);
    }

    /// The table for reports.
    pub fn table(&self, title: &str) -> Table {
        let column = |title: &str, unit| Column { title: title.into(), unit, quoted: false };
        Table {
            title: title.into(),
            method: "packfs beside the rival or the limit; medians of all runs, of memory the most".into(),
            columns: vec![
                column("case", Unit::Text),
                column("what", Unit::Text),
                column("rival or limit", Unit::Text),
                column("packfs", Unit::Text),
                column("ratio", Unit::Ratio),
                column("at most", Unit::Ratio),
                column("target", Unit::Text),
            ],
            rows: self.rows.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::PlanFile;
    use crate::results::{Measurement, Missing, Run, Subject, TreeFacts};

    const PLAN: &str = "title = 't'\n[[case]]\ntree = 't'\nworkload = 'build'\npackfs = 'packfs:erofs'\n\
                        rival = 'mkfs.erofs:erofs'\nwall = 0.5\nsize = 1.0\nmemory_mib = 1\nmemory_per_entry = 1000";

    fn results(ours: Run, stored: [u64; 2]) -> Results {
        let id = |maker: &str| format!("{maker} erofs none of t");
        let measurement = |maker: &str, run| Measurement {
            workload: "build".into(),
            subject: id(maker),
            reader: None,
            device: "memory".into(),
            jobs: None,
            command: String::new(),
            runs: vec![run],
        };
        let subject = |maker: &str, len| Subject {
            id: id(maker),
            tree: "t".into(),
            recipe: crate::results::Recipe::default(),
            command: String::new(),
            stored_len: Some(len),
            usage: vec![],
        };
        let theirs = Run { wall: 2.0, ..Run::default() };
        let facts =
            TreeFacts { id: "t".into(), made_by: String::new(), files: 1000, dirs: 0, others: 0, bytes: 1 };
        Results {
            trees: vec![facts],
            measurements: vec![measurement("packfs", ours), measurement("mkfs.erofs", theirs)],
            subjects: vec![subject("packfs", stored[0]), subject("mkfs.erofs", stored[1])],
            ..Results::default()
        }
    }

    fn judged(results: &Results) -> Verdicts {
        judge(&PlanFile::parse("p", PLAN).unwrap().cases, results)
    }

    #[test]
    fn targets_are_met_at_the_limit_and_missed_above_it() {
        let run = Run { wall: 1.0, memory_peak: Some((1 << 20) + 1_000_000), ..Run::default() };
        let met = judged(&results(run, [100, 100]));
        assert_eq!((met.met, met.missed.len(), met.skipped.len()), (3, 0, 0));
        let run = Run { wall: 1.1, memory_peak: Some((1 << 20) + 1_000_001), ..Run::default() };
        let missed = judged(&results(run, [101, 100]));
        assert_eq!((missed.met, missed.missed.len()), (0, 3));
        assert!(missed.missed[0].ends_with(": time 0.550, at most 0.500"), "{:?}", missed.missed);
        assert_eq!(missed.table("t").rows.len(), 3);
    }

    #[test]
    fn what_was_not_measured_is_skipped_with_the_reason() {
        let mut found = results(Run { wall: 1.0, ..Run::default() }, [1, 1]);
        found.measurements.pop();
        let missing = Missing { what: "mkfs.erofs".into(), why: "it is neither here nor there".into() };
        found.missing.push(missing);
        let verdicts = judged(&found);
        assert_eq!((verdicts.met, verdicts.missed.len()), (0, 0));
        assert!(verdicts.skipped[0].ends_with("mkfs.erofs erofs none: it is neither here nor there"));
        assert!(!verdicts.are_met(), "nothing was judged");
    }

    #[test]
    fn a_target_without_its_figure_is_skipped_and_not_met() {
        let verdicts = judged(&results(Run { wall: 1.0, ..Run::default() }, [1, 1]));
        assert_eq!((verdicts.met, verdicts.missed.len()), (2, 0));
        assert!(verdicts.skipped[0].ends_with("memory: no figure was measured"), "{:?}", verdicts.skipped);
    }

    #[test]
    fn an_image_that_packfs_does_not_make_is_a_missed_target() {
        let mut found = results(Run { wall: 1.0, ..Run::default() }, [1, 1]);
        found.measurements.remove(0);
        found.missing.push(Missing { what: "packfs erofs none of t".into(), why: "it ended with 1".into() });
        let verdicts = judged(&found);
        assert_eq!((verdicts.met, verdicts.skipped.len()), (0, 0));
        assert!(verdicts.missed[0].ends_with(": it ended with 1"), "{:?}", verdicts.missed);
    }
}
