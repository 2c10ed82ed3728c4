//! A FUSE program that serves a mount, as a child in the foreground.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use packfs::mount::table;
use packfs::{Error, Result, ResultExt};

use super::mounted::{Mounted, unmount};
use crate::process::{Invocation, telling_line};
use crate::undo::Undo;

/// Most time that a program may take until its mount answers.
const READY_MAX: Duration = Duration::from_secs(30);
/// Most time that it may take to end once it is unmounted.
const END_MAX: Duration = Duration::from_secs(5);

/// The child, for the one who waits until it answers and for the step that ends it.
type Shared = Arc<Mutex<Child>>;

impl Mounted {
    /// Starts a FUSE program that serves in the foreground, and returns when its mount at `at`, a
    /// directory, answers.
    ///
    /// Errors: it does not start, ends, or does not answer; with what it said.
    pub(crate) fn served(command: &Invocation, at: &Path) -> Result<Self> {
        let at = at.canonicalize().or_io(|| format!("cannot find {at:?}"))?;
        let spelled = command.spelled();
        let mut log = at.clone().into_os_string();
        log.push(".log");
        let log = PathBuf::from(log);
        let (child, end) = start(command, &at, &log, &spelled)?;
        let server = locked(&child).id();
        // Unmounts whatever comes of it from here on.
        let mounted = Self::new(&at, Some(server), vec![end]);
        wait_until_ready(&child, &at, &log, &spelled)?;
        Ok(mounted)
    }
}

fn start(command: &Invocation, at: &Path, log: &Path, spelled: &str) -> Result<(Shared, Undo)> {
    let cannot = || format!("cannot write {log:?}");
    let stdout = File::create(log).or_io(cannot)?;
    let stderr = stdout.try_clone().or_io(cannot)?;
    let mut command = command.command()?;
    // Ctrl-C is for the session, which unmounts and then ends it.
    command.stdout(stdout).stderr(stderr).process_group(0);
    let child = command.spawn().or_io(|| format!("cannot run {spelled}"))?;
    let child = Arc::new(Mutex::new(child));
    let (other, at, log) = (child.clone(), at.to_owned(), log.to_owned());
    let undo = Undo::new(format!("end {spelled}"), move || end(&other, &at, &log));
    Ok((child, undo))
}

fn locked(child: &Shared) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Once unmounted it ends by itself; one that does not, as its mount is in use, is killed.
///
/// On a signal it may not have mounted anything yet when that was looked for, and does so now.
fn end(child: &Shared, at: &Path, log: &Path) -> Result<()> {
    let mut child = locked(child);
    let start = Instant::now();
    let mut outcome = Ok(());
    while matches!(child.try_wait(), Ok(None)) && start.elapsed() < END_MAX {
        outcome = outcome.and(unmount(at));
        std::thread::sleep(Duration::from_millis(2));
    }
    // Both fail only if it has ended.
    let _ = child.kill();
    let _ = child.wait();
    outcome = outcome.and(unmount(at));
    // Only what went wrong is worth keeping, and that was told.
    let _ = std::fs::remove_file(log);
    outcome
}

fn wait_until_ready(child: &Shared, at: &Path, log: &Path, spelled: &str) -> Result<()> {
    let start = Instant::now();
    while table::topmost(at)?.is_none() {
        let ended = locked(child).try_wait();
        let failed = |what: String| {
            let said = std::fs::read_to_string(log).unwrap_or_default();
            let error = Error::failed(what);
            match telling_line(&said) {
                Some(line) => error.hint(format!("it says: {line}")),
                None => error,
            }
        };
        match ended {
            Ok(None) if start.elapsed() < READY_MAX => std::thread::sleep(Duration::from_millis(2)),
            Ok(None) => {
                let what = format!("{spelled} has mounted nothing after {} s", READY_MAX.as_secs());
                return Err(failed(what));
            }
            Ok(Some(status)) => {
                let what = format!("{spelled} ended without a mount: {status}");
                return Err(failed(what));
            }
            Err(error) => return Err(Error::io(format!("cannot look after {spelled}"), error)),
        }
    }
    // The mount is in the table before the program answers; the first question waits for it.
    at.metadata().map(drop).or_io(|| format!("{spelled} does not answer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mounted_while_its_server_ends_is_unmounted() {
        if !packfs_testkit::is_root() {
            return packfs_testkit::skip("only root mounts");
        }
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().canonicalize().unwrap().join("mount");
        std::fs::create_dir(&at).unwrap();
        let late = Invocation::shell("sleep 0.2; mount -t tmpfs none \"$1\"").arg("sh").arg(&at);
        let (child, end) = start(&late, &at, &dir.path().join("log"), "late").unwrap();
        end.now().unwrap();
        assert!(locked(&child).try_wait().unwrap().is_some_and(|status| status.success()));
        assert!(table::topmost(&at).unwrap().is_none());
    }
}
