//! Undoing mounts when a session is stopped from outside, and what killed sessions left.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::mount::UnmountFlags;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::table;
use crate::failure::{Failure, Result};

#[derive(Default)]
struct Made {
    mounts: Vec<PathBuf>,
    dirs: Vec<PathBuf>,
}

static MADE: Mutex<Made> = Mutex::new(Made { mounts: vec![], dirs: vec![] });

fn made() -> MutexGuard<'static, Made> {
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// To be unmounted on a signal, if something is mounted there by then.
pub fn register(dir: &Path) {
    made().mounts.push(dir.to_owned());
}

pub fn forget(dir: &Path) {
    made().mounts.retain(|known| known != dir);
}

/// A folder to be removed on a signal, with all below it, once nothing is mounted there.
pub fn remove_on_signals(dir: &Path) {
    made().dirs.push(dir.to_owned());
}

/// From now on Ctrl-C and its like unmount, remove, and end this process with the signal's own status.
pub fn clean_up_on_signals() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            // Kept locked: nothing is mounted any more.
            let made = made();
            made.mounts.iter().for_each(|dir| detach_all(dir));
            for dir in made.dirs.iter().filter(|dir| table::below(dir).is_empty()) {
                let _ = std::fs::remove_dir_all(dir);
            }
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

/// Unmounts what is mounted below folders `PREFIX-ID` of `parent` whose process is gone.
pub fn unmount_left_over(parent: &Path, prefix: &str) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(prefix).and_then(|id| id.parse::<u32>().ok());
        if process.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists()) {
            detach_all(&entry.path());
        }
    }
}

fn detach_all(dir: &Path) {
    for point in table::below(dir) {
        let _ = rustix::mount::unmount(&point, UnmountFlags::DETACH);
    }
}
