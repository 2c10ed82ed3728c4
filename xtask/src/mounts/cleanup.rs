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
                // A control group holds files that only go with it.
                let _ = std::fs::remove_dir_all(dir).or_else(|_| std::fs::remove_dir(dir));
            }
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

/// Unmounts what is mounted below folders `PREFIX-ID` of `parent` whose process is gone.
pub fn unmount_left_over(parent: &Path, prefix: &str) {
    left_over(parent, prefix).iter().for_each(|dir| detach_all(dir));
}

/// Folders `PREFIX-ID` of `parent` whose process is gone.
pub fn left_over(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let is_left_over = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let process = name.strip_prefix(prefix).and_then(|id| id.parse::<u32>().ok());
        process.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists())
    };
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(is_left_over).collect()
}

fn detach_all(dir: &Path) {
    for point in table::below(dir) {
        let _ = rustix::mount::unmount(&point, UnmountFlags::DETACH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_folders_of_processes_that_are_gone() {
        let parent = std::env::temp_dir().join(format!("xtask-left-over-{}", std::process::id()));
        // No process has so high an id: the kernel allows 2^22.
        for name in [format!("x-{}", std::process::id()), "x-4294967295".to_owned(), "x-y".to_owned()] {
            std::fs::create_dir_all(parent.join(name)).unwrap();
        }
        let found = left_over(&parent, "x-");
        std::fs::remove_dir_all(&parent).unwrap();
        assert_eq!(found, [parent.join("x-4294967295")]);
    }
}
