//! Messages of a session, and its end on a signal: all that it made is taken away, and its
//! results stay.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use packfs_lab::scratch::undo_all;
use packfs_lab::session::Watch;
use packfs_terminal::{Outcome, report};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Prints lines on standard error, and listens for signals.
pub struct Watcher {
    quiet: bool,
    stopped: Arc<AtomicBool>,
}

impl Watcher {
    /// From now on a signal takes away all that was made and ends the program; `hint` tells how to
    /// go on. A second one ends it at once.
    pub fn new(quiet: bool, hint: Option<String>) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        // Without handlers a signal ends the program as it would any other, and the next session
        // cleans up.
        if let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]) {
            let stopped = Arc::clone(&stopped);
            std::thread::spawn(move || {
                for signal in signals.forever() {
                    if !stopped.swap(true, Ordering::SeqCst) {
                        report::note("stopping: unmounts and removes what was made");
                        let hint = hint.clone();
                        // Slow devices take minutes to write out; a second signal need not wait for
                        // them.
                        std::thread::spawn(move || undo_and_exit(signal, hint));
                    } else if signal != SIGHUP {
                        // A terminal that is closed may hang up more than once, and its user is not
                        // there to insist.
                        exit_at_once(signal);
                    }
                }
            });
        }
        Self { quiet, stopped }
    }

    /// After a signal waits for the end of the program, which is near: whatever failed did so
    /// because of it.
    pub fn or_stopped(&self, outcome: Outcome) -> Outcome {
        while self.is_stopped() {
            std::thread::sleep(Duration::from_millis(100));
        }
        outcome
    }

    /// That it went well.
    pub fn done() -> Outcome {
        Ok(ExitCode::SUCCESS)
    }
}

fn undo_and_exit(signal: i32, hint: Option<String>) {
    for error in undo_all() {
        report::failure(&error);
    }
    report::note("error: stopped");
    if let Some(hint) = hint {
        report::note(format_args!("hint: {hint}"));
    }
    std::process::exit(128 + signal);
}

fn exit_at_once(signal: i32) {
    report::note("error: stopped before all was undone: mounts, devices and folders may be left");
    report::note("hint: the next session with the same --scratch removes them");
    std::process::exit(128 + signal);
}

impl Watch for Watcher {
    fn note(&self, line: &str) {
        if !self.quiet {
            report::note(line);
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }
}
