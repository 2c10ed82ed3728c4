//! A file system that is mounted, and how it goes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use packfs::mount::table;
use packfs::{Error, Result, ResultExt};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use crate::undo::{Stack, Undo};

/// Most time that users of a mount may take to let go of it.
pub(super) const BUSY_MAX: Duration = Duration::from_secs(5);

/// A mounted subject; unmounted when dropped, and then all that was made for it is undone.
#[derive(Debug)]
pub struct Mounted {
    at: PathBuf,
    server: Option<u32>,
    layers: Stack,
}

impl Mounted {
    /// Keeps a mount at `at`, with the layers below it, the lowest first: a server, a loop device.
    pub(crate) fn new(at: &Path, server: Option<u32>, below: Vec<Undo>) -> Self {
        let mut layers = Stack::default();
        below.into_iter().for_each(|undo| layers.push(undo));
        let point = at.to_owned();
        layers.push(Undo::new(format!("unmount {at:?}"), move || unmount(&point)));
        Self { at: at.to_owned(), server, layers }
    }

    /// Returns the mount point.
    pub fn at(&self) -> &Path {
        &self.at
    }

    /// The process that serves it, whose processor time counts to those who read; none for the
    /// kernel.
    pub fn server(&self) -> Option<u32> {
        self.server
    }

    /// Unmounts it and tells what went wrong; dropping it only prints that.
    ///
    /// Errors: it was still in use after some seconds. Then it is detached, and gone with its last
    /// user.
    pub fn unmount(mut self) -> Result<()> {
        self.layers.unwind()
    }
}

/// Unmounts what lies at `at`, if anything does.
pub(crate) fn unmount(at: &Path) -> Result<()> {
    let start = Instant::now();
    while table::topmost(at)?.is_some() {
        match take_away(at, false) {
            Ok(()) => return Ok(()),
            Err(Errno::BUSY) if start.elapsed() < BUSY_MAX => std::thread::sleep(Duration::from_millis(10)),
            Err(Errno::BUSY) => {
                detach(at)?;
                let what = format!("{at:?} was still in use after {} s", BUSY_MAX.as_secs());
                let error = Error::failed(format!("{what}; it is detached, and gone with its last user"));
                return Err(error.hint("fuser and lsof tell who uses files of a mount"));
            }
            Err(error) => return Err(Error::io(format!("cannot unmount {at:?}"), error.into())),
        }
    }
    Ok(())
}

/// Detaches the mount, even if it is in use.
pub(super) fn detach(at: &Path) -> Result<()> {
    take_away(at, true).or_io(|| format!("cannot unmount {at:?}"))
}

fn take_away(at: &Path, lazily: bool) -> rustix::io::Result<()> {
    let mut flags = UnmountFlags::NOFOLLOW;
    flags.set(UnmountFlags::DETACH, lazily);
    match rustix::mount::unmount(at, flags) {
        Err(Errno::PERM) => {
            let mut command = Command::new("fusermount3");
            command
                .args(if lazily { ["-u", "-q", "-z"].as_slice() } else { &["-u", "-q"] })
                .arg("--")
                .arg(at);
            let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
            // It tells no reason by its status; the one that passes by itself is the likely one.
            if status.is_ok_and(|status| status.success()) { Ok(()) } else { Err(Errno::BUSY) }
        }
        outcome => outcome,
    }
}

pub(super) fn below(dir: &Path) -> Result<Vec<PathBuf>> {
    let all = table::read()?.into_iter().map(|mounted| mounted.at);
    Ok(all.filter(|at| at.starts_with(dir) && at != dir).collect())
}
