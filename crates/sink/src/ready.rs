//! A signal that work others depend on is done, or failed.

use packfs_core::{Error, Result};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Set only once.
#[derive(Default)]
pub(crate) struct Ready {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Waiting,
    Open,
    GivenUp,
}

impl Ready {
    pub(crate) fn opener(&self) -> Opener<'_> {
        Opener(self)
    }

    /// Errors: `Cancelled` if it failed; the failing thread reports the cause.
    pub(crate) fn wait(&self) -> Result<()> {
        let state = self.lock();
        let state = self.changed.wait_while(state, |state| *state == State::Waiting);
        match *state.unwrap_or_else(PoisonError::into_inner) {
            State::Open => Ok(()),
            _ => Err(Error::cancelled()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, to: State) {
        let mut state = self.lock();
        if *state == State::Waiting {
            *state = to;
            self.changed.notify_all();
        }
    }
}

/// Sets the signal to failed when dropped, so that no thread waits forever.
pub(crate) struct Opener<'a>(&'a Ready);

impl Opener<'_> {
    pub(crate) fn open(self) {
        self.0.set(State::Open);
    }
}

impl Drop for Opener<'_> {
    fn drop(&mut self) {
        self.0.set(State::GivenUp);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::ErrorKind;

    #[test]
    fn waiting_threads_continue_when_ready_and_fail_on_failure() {
        for gives_up in [false, true] {
            let ready = Ready::default();
            std::thread::scope(|scope| {
                let waits: Vec<_> = (0..3).map(|_| scope.spawn(|| ready.wait())).collect();
                let opener = ready.opener();
                if gives_up {
                    drop(opener)
                } else {
                    opener.open()
                }
                for wait in waits {
                    let outcome = wait.join().unwrap();
                    assert_eq!(
                        outcome.map_err(|error| error.kind()),
                        if gives_up { Err(ErrorKind::Cancelled) } else { Ok(()) }
                    );
                }
            });
            assert_eq!(ready.wait().is_err(), gives_up);
        }
    }

    #[test]
    fn a_panic_signals_failure() {
        let ready = Ready::default();
        let panicked = std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    let _opener = ready.opener();
                    panic!("while making directories");
                })
                .join()
        });
        assert!(panicked.is_err() && ready.wait().is_err());
    }
}
