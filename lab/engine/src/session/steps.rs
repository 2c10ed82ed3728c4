//! In which order a plan is carried out: subjects in turn run by run, images made once, removed as
//! soon as nothing needs them.

use std::collections::{HashMap, HashSet};

use super::plan::{Cell, Plan, SubjectKey, reads_an_image};
use crate::workload::{Need, Workload};

/// One thing to do. Numbers are places in the plan's list of cells, and in [`Steps::subjects`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Makes an image, unless it is there.
    Make { subject: usize },
    /// One run of a cell; rounds begin with those that warm up.
    Run { cell: usize, round: u32 },
    /// Removes an image and all that was made for the subject.
    Remove { subject: usize },
}

#[derive(Clone, Debug, Default)]
pub(super) struct Done {
    /// Runs that were measured: cell and round.
    pub(super) runs: HashSet<(usize, u32)>,
    /// Cells that are not timed, and were counted.
    pub(super) counted: HashSet<usize>,
    pub(super) subjects: HashSet<SubjectKey>,
}

/// A plan in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    pub(super) steps: Vec<Step>,
    pub(super) subjects: Vec<SubjectKey>,
}

impl Steps {
    /// Puts what is left of a plan in order, such that images that exist at the same time take at
    /// most about `room` bytes; `len_of` tells how long an image may become.
    ///
    /// Cells of one tree, workload and device are interleaved: each is run once, then each a second
    /// time, and so on, each round beginning with another one. If not all images fit, as many
    /// subjects as fit are taken at a time.
    pub(super) fn of(plan: &Plan, done: &Done, room: u64, len_of: impl Fn(&SubjectKey) -> u64) -> Self {
        let subjects = plan.subjects();
        let mut steps = Vec::new();
        for chunk in chunks(&subjects, room, len_of) {
            chunk_steps(plan, done, &subjects, &chunk, &mut steps);
        }
        Self { steps, subjects }
    }

    pub(super) fn run_count(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, Step::Run { .. })).count()
    }
}

/// Subjects that are there at the same time: those of one tree, as many as fit. One that alone does
/// not is tried alone.
fn chunks(subjects: &[SubjectKey], room: u64, len_of: impl Fn(&SubjectKey) -> u64) -> Vec<HashSet<usize>> {
    let mut trees = Vec::new();
    for subject in subjects {
        if !trees.contains(&&subject.tree) {
            trees.push(&subject.tree);
        }
    }
    let mut chunks = Vec::new();
    for tree in trees {
        let (mut chunk, mut taken) = (HashSet::new(), 0u64);
        for (index, subject) in subjects.iter().enumerate().filter(|(_, subject)| subject.tree == *tree) {
            let len = len_of(subject);
            if !chunk.is_empty() && taken.saturating_add(len) > room {
                chunks.push(std::mem::take(&mut chunk));
                taken = 0;
            }
            chunk.insert(index);
            taken = taken.saturating_add(len);
        }
        chunks.push(chunk);
    }
    chunks
}

fn chunk_steps(
    plan: &Plan,
    done: &Done,
    subjects: &[SubjectKey],
    chunk: &HashSet<usize>,
    steps: &mut Vec<Step>,
) {
    let places: HashMap<_, _> =
        subjects.iter().enumerate().map(|(index, subject)| (subject, index)).collect();
    let place = |cell: &Cell| places.get(&cell.subject()).copied().unwrap_or(usize::MAX);
    let cells: Vec<_> =
        plan.cells.iter().enumerate().filter(|(_, cell)| chunk.contains(&place(cell))).collect();
    let batches = batches(&cells);
    let (mut asked_for, mut left_behind, begin) = (HashSet::new(), HashSet::new(), steps.len());
    for batch in &batches {
        let runs = runs_left(plan, done, batch);
        for (index, cell) in batch {
            let subject = place(cell);
            let is_run = runs.iter().any(|(run, _)| run == index);
            let is_unknown = !done.subjects.contains(&subjects[subject]);
            let needs_facts = cell.workload == Workload::ImageSize && is_unknown;
            // Also where a run builds it: that one may fail, or be of a device that nothing is
            // built on.
            if (needs_facts || is_run && reads_an_image(cell)) && asked_for.insert(subject) {
                steps.push(Step::Make { subject });
            }
            if needs_facts || is_run {
                left_behind.insert(subject);
            }
        }
        steps.extend(runs.into_iter().map(|(cell, round)| Step::Run { cell, round }));
    }
    remove_after_last_use(plan, subjects.len(), &left_behind, begin, place, steps);
}

/// Cells that are interleaved, in the order of workloads, those that make images first.
fn batches<'a>(cells: &[(usize, &'a Cell)]) -> Vec<Vec<(usize, &'a Cell)>> {
    let mut keyed: Vec<_> = cells.iter().map(|&(index, cell)| (order_of(cell), index, cell)).collect();
    keyed.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
    let mut batches: Vec<Vec<(usize, &Cell)>> = Vec::new();
    let mut last = None;
    for (key, index, cell) in keyed {
        if last != Some(key) {
            batches.push(Vec::new());
            last = Some(key);
        }
        if let Some(batch) = batches.last_mut() {
            batch.push((index, cell));
        }
    }
    batches
}

fn order_of(cell: &Cell) -> (&str, bool, &str, Workload) {
    (&cell.tree, cell.workload.need() != Need::Maker, &cell.device, cell.workload)
}

/// Cells and rounds: a round after the other, each beginning with another cell.
fn runs_left(plan: &Plan, done: &Done, batch: &[(usize, &Cell)]) -> Vec<(usize, u32)> {
    let warm_ups = plan.settings.warm_ups();
    let last = warm_ups + plan.settings.runs;
    let is_done = |cell: usize, round: u32| done.runs.contains(&(cell, round));
    let is_left = |cell: usize| (warm_ups..last).any(|round| !is_done(cell, round));
    let is_run =
        |index: &usize, cell: &Cell| cell.workload != Workload::ImageSize && !done.counted.contains(index);
    let timed: Vec<_> = batch.iter().filter(|(index, cell)| is_run(index, cell)).collect();
    let mut runs = Vec::new();
    for round in 0..last {
        let start = if timed.is_empty() { 0 } else { round as usize % timed.len() };
        for (index, cell) in timed.iter().cycle().skip(start).take(timed.len()) {
            // What a file system takes is counted once: it does not change from run to run.
            let is_wanted = cell.workload.is_timed() || round == warm_ups;
            // Warming up is done anew when a session goes on.
            let is_due = if round < warm_ups { is_left(*index) } else { !is_done(*index, round) };
            if is_wanted && is_due {
                runs.push((*index, round));
            }
        }
    }
    runs
}

/// Puts the removal of each subject behind the last step that is about it.
fn remove_after_last_use(
    plan: &Plan,
    subject_count: usize,
    left_behind: &HashSet<usize>,
    begin: usize,
    place: impl Fn(&Cell) -> usize,
    steps: &mut Vec<Step>,
) {
    let mut last_uses = vec![None; subject_count];
    for (index, step) in steps.iter().enumerate().skip(begin) {
        let subject = match *step {
            Step::Make { subject } | Step::Remove { subject } => subject,
            Step::Run { cell, .. } => place(&plan.cells[cell]),
        };
        last_uses[subject] = Some(index);
    }
    let chunk = steps.split_off(begin);
    for (index, step) in chunk.into_iter().enumerate() {
        steps.push(step);
        let ended = (0..subject_count)
            .filter(|subject| left_behind.contains(subject) && last_uses[*subject] == Some(begin + index));
        steps.extend(ended.map(|subject| Step::Remove { subject }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Recipe, Settings};

    fn cell(maker: &str, workload: Workload) -> Cell {
        let recipe = Recipe { maker: maker.into(), ..Recipe::default() };
        let reader = reads_an_image(&Cell {
            tree: String::new(),
            recipe: recipe.clone(),
            reader: None,
            workload,
            device: String::new(),
            jobs: None,
        })
        .then(|| "kernel".to_owned());
        Cell { tree: "t".into(), recipe, reader, workload, device: "disk".into(), jobs: None }
    }

    fn plan(runs: u32, cells: Vec<Cell>) -> Plan {
        Plan { settings: Settings { runs, ..Settings::default() }, cells, ..Plan::default() }
    }

    /// `A0`: a run of the first cell in round 0; `+0`: subject 0 is made; `-0`: it is removed.
    fn spelled(steps: &Steps) -> String {
        let word = |step: &Step| match step {
            Step::Make { subject } => format!("+{subject}"),
            Step::Remove { subject } => format!("-{subject}"),
            Step::Run { cell, round } => format!("{}{round}", char::from(b'A' + *cell as u8)),
        };
        steps.steps.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn subjects_take_turns_and_each_round_begins_with_another() {
        let plan = plan(2, ["a", "b", "c"].map(|maker| cell(maker, Workload::List)).into());
        let steps = Steps::of(&plan, &Done::default(), u64::MAX, |_| 1);
        assert_eq!(spelled(&steps), "+0 +1 +2 A0 B0 C0 B1 C1 A1 C2 -2 A2 -0 B2 -1");
        assert_eq!(steps.run_count(), 9);
    }

    #[test]
    fn a_single_run_is_not_warmed_up() {
        let steps = Steps::of(&plan(1, vec![cell("a", Workload::List)]), &Done::default(), u64::MAX, |_| 1);
        assert_eq!(spelled(&steps), "+0 A0 -0");
    }

    #[test]
    fn images_are_made_once_for_all_workloads_and_only_as_many_as_fit_at_a_time() {
        let cells = ["a", "b"].map(|maker| {
            [Workload::ImageSize, Workload::SequentialData, Workload::List].map(|work| cell(maker, work))
        });
        let plan = plan(1, cells.concat());
        let all = Steps::of(&plan, &Done::default(), 20, |_| 10);
        assert_eq!(spelled(&all), "+0 +1 B0 E0 C0 -0 F0 -1");
        let one_by_one = Steps::of(&plan, &Done::default(), 15, |_| 10);
        assert_eq!(spelled(&one_by_one), "+0 B0 C0 -0 +1 E0 F0 -1");
    }

    #[test]
    fn building_comes_first_and_what_it_built_is_removed() {
        let cells = vec![cell("a", Workload::Decode), cell("a", Workload::Build)];
        let steps = Steps::of(&plan(1, cells), &Done::default(), u64::MAX, |_| 1);
        assert_eq!(spelled(&steps), "B0 +0 A0 -0");
        let steps = Steps::of(&plan(1, vec![cell("a", Workload::Build)]), &Done::default(), u64::MAX, |_| 1);
        assert_eq!(spelled(&steps), "A0 -0");
    }

    #[test]
    fn runs_that_read_an_image_do_not_depend_on_runs_that_build_it() {
        let works = [Workload::ImageSize, Workload::Build, Workload::List];
        let steps =
            Steps::of(&plan(1, works.map(|work| cell("a", work)).into()), &Done::default(), u64::MAX, |_| 1);
        assert_eq!(spelled(&steps), "B0 +0 C0 -0");
        let steps = Steps::of(
            &plan(1, works[..2].iter().map(|&work| cell("a", work)).collect()),
            &Done::default(),
            u64::MAX,
            |_| 1,
        );
        assert_eq!(spelled(&steps), "B0 +0 -0");
    }

    #[test]
    fn what_a_file_system_takes_is_counted_once_though_its_subject_is_known() {
        let plan = plan(2, vec![cell("a", Workload::DiskUsage)]);
        let mut done = Done::default();
        done.subjects.insert(plan.cells[0].subject());
        assert_eq!(spelled(&Steps::of(&plan, &done, u64::MAX, |_| 1)), "A1 -0");
        done.counted.insert(0);
        assert_eq!(spelled(&Steps::of(&plan, &done, u64::MAX, |_| 1)), "");
    }

    #[test]
    fn what_is_done_is_not_done_again_but_warmed_up_for() {
        let plan = plan(2, ["a", "b"].map(|maker| cell(maker, Workload::List)).into());
        let mut done = Done::default();
        done.runs.extend([(0, 1), (0, 2), (1, 1)]);
        let steps = Steps::of(&plan, &done, u64::MAX, |_| 1);
        assert_eq!(spelled(&steps), "+1 B0 B2 -1");
        done.runs.insert((1, 2));
        assert_eq!(spelled(&Steps::of(&plan, &done, u64::MAX, |_| 1)), "");
    }
}
