//! Steps that undo what was done, taken once each, the latest first.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use packfs::{Error, Result};
use packfs_terminal::report;

type Work = Box<dyn FnOnce() -> Result<()> + Send>;

struct Step {
    id: u64,
    what: String,
    work: Work,
}

impl Step {
    /// Runs the step; the end of the program waits for it.
    fn run(self) -> Result<()> {
        let outcome = (self.work)();
        steps().at_work -= 1;
        outcome
    }
}

#[derive(Default)]
struct Steps {
    left: Vec<Step>,
    next_id: u64,
    at_work: usize,
    /// Set once everything is to be undone: what is done from then on is undone at once.
    is_over: bool,
}

static STEPS: Mutex<Steps> = Mutex::new(Steps { left: Vec::new(), next_id: 0, at_work: 0, is_over: false });

fn steps() -> MutexGuard<'static, Steps> {
    STEPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A step that is taken when this is dropped, and then tells a failure on standard error; or by
/// [`undo_all`].
#[derive(Debug)]
#[must_use]
pub struct Undo {
    id: Option<u64>,
}

impl Undo {
    /// Registers a step. `what` it does is for messages: `unmount "/tmp/a"`.
    pub fn new(what: String, work: impl FnOnce() -> Result<()> + Send + 'static) -> Self {
        let mut steps = steps();
        if steps.is_over {
            drop(steps);
            tell(&what, work());
            return Self { id: None };
        }
        let id = steps.next_id;
        steps.next_id += 1;
        steps.left.push(Step { id, what, work: Box::new(work) });
        Self { id: Some(id) }
    }

    /// Takes the step now, and tells its failure; nothing if it was taken.
    pub fn now(mut self) -> Result<()> {
        self.begin().map_or(Ok(()), Step::run)
    }

    /// Never takes it: there is nothing to undo any more.
    pub fn forget(mut self) {
        let step = self.begin();
        steps().at_work -= usize::from(step.is_some());
    }

    /// Takes the step if it is free, and counts it as running.
    fn begin(&mut self) -> Option<Step> {
        let id = self.id.take()?;
        let mut steps = steps();
        let index = steps.left.iter().position(|step| step.id == id)?;
        steps.at_work += 1;
        Some(steps.left.remove(index))
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        if let Some(step) = self.begin() {
            let what = step.what.clone();
            tell(&what, step.run());
        }
    }
}

fn tell(what: &str, outcome: Result<()>) {
    if let Err(error) = outcome {
        report::warning_of(&error.at(format_args!("cannot {what}")));
    }
}

/// Most time that the end of the program waits for steps that other threads take.
const OTHERS_MAX: Duration = Duration::from_secs(15);

/// Takes all steps that are left, the latest first, whatever becomes of each, waits for those that
/// others are at, and returns what failed. For a program that is about to end, on a signal: what is
/// done after this is undone at once.
pub fn undo_all() -> Vec<Error> {
    let (mut failures, start) = (Vec::new(), Instant::now());
    loop {
        let mut steps = steps();
        steps.is_over = true;
        let Some(step) = steps.left.pop() else {
            if steps.at_work == 0 || start.elapsed() > OTHERS_MAX {
                return failures;
            }
            drop(steps);
            std::thread::sleep(Duration::from_millis(5));
            continue;
        };
        steps.at_work += 1;
        drop(steps);
        let what = step.what.clone();
        if let Err(error) = step.run() {
            failures.push(error.at(format!("cannot {what}")));
        }
    }
}

/// Steps on top of each other: dropped the latest first.
#[derive(Debug, Default)]
pub(crate) struct Stack(Vec<Undo>);

impl Stack {
    pub(crate) fn push(&mut self, undo: Undo) {
        self.0.push(undo);
    }

    /// Takes all, the latest first, and returns the first failure.
    pub(crate) fn unwind(&mut self) -> Result<()> {
        let mut outcome = Ok(());
        while let Some(undo) = self.0.pop() {
            outcome = outcome.and(undo.now());
        }
        outcome
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        while let Some(undo) = self.0.pop() {
            drop(undo);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn noting(notes: &Arc<Mutex<Vec<u32>>>, number: u32) -> Undo {
        let notes = notes.clone();
        Undo::new(format!("note {number}"), move || {
            notes.lock().unwrap().push(number);
            Ok(())
        })
    }

    #[test]
    fn a_stack_is_undone_from_its_top_and_each_step_once() {
        let notes = Arc::new(Mutex::new(vec![]));
        let mut stack = Stack::default();
        (1..=3).for_each(|number| stack.push(noting(&notes, number)));
        noting(&notes, 9).forget();
        noting(&notes, 8).now().unwrap();
        stack.unwind().unwrap();
        drop(stack);
        assert_eq!(*notes.lock().unwrap(), [8, 3, 2, 1]);
    }

    #[test]
    fn a_failure_stops_no_other_step() {
        let notes = Arc::new(Mutex::new(vec![]));
        let mut stack = Stack::default();
        stack.push(noting(&notes, 1));
        stack.push(Undo::new("fail".into(), || Err(Error::failed("it fails"))));
        assert_eq!(stack.unwind().unwrap_err().to_string(), "it fails");
        assert_eq!(*notes.lock().unwrap(), [1]);
    }
}
