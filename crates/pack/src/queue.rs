//! The queue between the deciding thread and the workers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Tasks for workers: first in, first out, except for urgent ones.
pub(crate) struct TaskQueue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    tasks: VecDeque<T>,
    urgent: VecDeque<T>,
    closed: bool,
}

impl<T> TaskQueue<T> {
    pub(crate) fn new() -> Self {
        let state = State { tasks: VecDeque::new(), urgent: VecDeque::new(), closed: false };
        TaskQueue { state: Mutex::new(state), changed: Condvar::new() }
    }

    // A panic of a worker leaves a valid queue, so poisoning is ignored.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, task: T) {
        self.lock().tasks.push_back(task);
        self.changed.notify_one();
    }

    /// Before all tasks that are not urgent: others already wait for the result.
    pub(crate) fn push_urgent(&self, task: T) {
        self.lock().urgent.push_back(task);
        self.changed.notify_one();
    }

    /// Waits for a task; `None` once the queue is closed.
    pub(crate) fn pop(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(task) = state.urgent.pop_front() {
                return Some(task);
            }
            if let Some(task) = state.tasks.pop_front() {
                return Some(task);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.tasks.clear();
        state.urgent.clear();
        drop(state);
        self.changed.notify_all();
    }
}

/// Closes a queue when dropped, so that an early return does not leave workers waiting.
pub(crate) struct CloseOnDrop<'a, T>(pub(crate) &'a TaskQueue<T>);

impl<T> Drop for CloseOnDrop<'_, T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A panic is reported as `None`.
pub(crate) fn work<T, A>(queue: &TaskQueue<T>, answers: &Sender<Option<A>>, mut answer: impl FnMut(T) -> A) {
    struct SayIfPanicked<'a, A>(&'a Sender<Option<A>>);
    impl<A> Drop for SayIfPanicked<'_, A> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                let _ = self.0.send(None);
            }
        }
    }
    let _says = SayIfPanicked(answers);
    while let Some(task) = queue.pop() {
        if answers.send(Some(answer(task))).is_err() {
            return;
        }
    }
}

pub(crate) struct InOrder<T> {
    next: u64,
    early: BTreeMap<u64, T>,
}

impl<T> InOrder<T> {
    pub(crate) fn new() -> Self {
        InOrder { next: 0, early: BTreeMap::new() }
    }

    pub(crate) fn put(&mut self, number: u64, answer: T) {
        self.early.insert(number, answer);
    }

    pub(crate) fn take(&mut self) -> Option<T> {
        let answer = self.early.remove(&self.next)?;
        self.next += 1;
        Some(answer)
    }

    pub(crate) fn taken(&self) -> u64 {
        self.next
    }
}
