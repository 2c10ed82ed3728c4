//! The queue between the thread that decides and the threads that work.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Tasks for worker threads: first come, first served, except for urgent ones.
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

    // A worker that panicked must not make the others wait for ever: what it left is still a valid queue.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, task: T) {
        self.lock().tasks.push_back(task);
        self.changed.notify_one();
    }

    /// Puts a task before all that are not urgent: others already wait for its result.
    pub(crate) fn push_urgent(&self, task: T) {
        self.lock().urgent.push_back(task);
        self.changed.notify_one();
    }

    /// The next task; waits for one, `None` once the queue is closed.
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

    /// Drops what is left and sends the workers home.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.tasks.clear();
        state.urgent.clear();
        drop(state);
        self.changed.notify_all();
    }
}

/// Closes a queue when it goes out of scope, so that an early return does not leave workers waiting.
pub(crate) struct CloseOnDrop<'a, T>(pub(crate) &'a TaskQueue<T>);

impl<T> Drop for CloseOnDrop<'_, T> {
    fn drop(&mut self) {
        self.0.close();
    }
}
