//! Mounting images to measure and to test them: by a FUSE program in the foreground, or by the kernel.
//!
//! Whatever is mounted here is unmounted: when its guard is dropped, on Ctrl-C, and what a killed session left is
//! unmounted by the next one.

mod cleanup;
mod daemon;
mod table;

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, UnmountFlags};

use crate::failure::{Failure, Result};
use crate::rivals::{Format, Rival, Task};
use crate::shell;
use daemon::Daemon;

pub use cleanup::{clean_up_on_signals, left_over, remove_on_signals, unmount_left_over};
pub use table::is_mount_point;

/// How long a program may take until its mount answers.
const READY_MAX: Duration = Duration::from_secs(30);
/// How long whoever still uses a mount may take to let go of it.
const BUSY_MAX: Duration = Duration::from_secs(10);

/// Who shows an image as a tree.
#[derive(Clone, Copy)]
pub enum Mounter<'a> {
    Program(&'a dyn Rival),
    Kernel,
}

impl Mounter<'_> {
    pub fn name(self) -> &'static str {
        match self {
            Self::Program(program) => program.name(),
            Self::Kernel => "kernel",
        }
    }

    pub fn version(self) -> String {
        match self {
            Self::Program(program) => program.version().to_owned(),
            Self::Kernel => rustix::system::uname().release().to_string_lossy().into_owned(),
        }
    }
}

/// What a program took while it served a mount.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Served {
    /// From its start to its end, mounting included.
    pub cpu: Duration,
    /// Most memory it had resident once it was itself, in bytes.
    pub memory_peak: u64,
}

/// A mounted image.
pub struct Mounted {
    pub dir: PathBuf,
    /// None for the kernel's own mount.
    daemon: Option<Daemon>,
    /// How it is mounted, where there are ways: `loop`, `file`; empty for programs.
    pub how: &'static str,
}

impl Mounted {
    /// Mounts `image` on `dir`, which is made, and returns when the mount answers.
    pub fn new(mounter: Mounter<'_>, format: Format, image: &Path, dir: &Path) -> Result<Self> {
        crate::workspace::make_dir(dir)?;
        cleanup::register(dir);
        match mounter {
            Mounter::Kernel => {
                let how = mount_by_kernel(format, image, dir)?;
                Ok(Self { dir: dir.to_owned(), daemon: None, how })
            }
            Mounter::Program(program) => {
                let task = Task::Mount { image: image.to_owned(), dir: dir.to_owned() };
                let command = program
                    .command(&task)
                    .ok_or_else(|| Failure::new(format!("{} mounts nothing", program.name())))?;
                let daemon = Some(Daemon::start(&command, dir)?);
                let mut mounted = Self { dir: dir.to_owned(), daemon, how: "" };
                mounted.wait_until_ready()?;
                Ok(mounted)
            }
        }
    }

    /// Mounts `image` by the kernel through a loop device without direct I/O, which is there to be asked what it read.
    pub fn by_loop(format: Format, image: &Path, dir: &Path) -> Result<Self> {
        crate::workspace::make_dir(dir)?;
        cleanup::register(dir);
        let how = mount_by_loop(format, image, dir)?;
        Ok(Self { dir: dir.to_owned(), daemon: None, how })
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let start = Instant::now();
        while !is_mount_point(&self.dir) {
            if let Some(daemon) = &mut self.daemon {
                daemon.fail_if_ended()?;
            }
            if start.elapsed() > READY_MAX {
                return Err(Failure::new(format!("{}: not mounted after 30 s", self.dir.display())));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        // The mount is in the table before the program answers; the first question waits for it.
        self.dir.metadata().map(drop).map_err(|error| Failure::io("look at", &self.dir, error))
    }

    /// Most memory the program has had so far; None for the kernel's own mount.
    pub fn memory_peak(&self) -> Option<u64> {
        self.daemon.as_ref().and_then(Daemon::memory_peak)
    }

    /// Process id of the program.
    pub fn process(&self) -> Option<u32> {
        self.daemon.as_ref().map(Daemon::process)
    }

    /// Kills the program as `kill -9` does; its mount stays behind.
    pub fn kill_daemon(&mut self) {
        if let Some(daemon) = &mut self.daemon {
            daemon.kill();
        }
    }

    /// Does `work`, and kills the program if that has not ended in time: then readers get errors instead of waiting forever.
    pub fn watched<T>(&self, time_max: Duration, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let Some(process) = self.process() else { return work() };
        let (ended, end) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let watch = scope.spawn(move || {
                let is_late = end.recv_timeout(time_max) == Err(mpsc::RecvTimeoutError::Timeout);
                if is_late {
                    daemon::kill_process(process);
                }
                is_late
            });
            let done = work();
            drop(ended);
            if watch.join().unwrap_or(false) {
                return Err(Failure::new(format!("stopped: no end after {} s", time_max.as_secs())));
            }
            done
        })
    }

    /// Unmounts, waits for the program's end, and tells what it took; None for the kernel's own mount.
    pub fn unmount(mut self) -> Result<Option<Served>> {
        let memory_peak = self.memory_peak();
        unmount(&self.dir)?;
        let Some(daemon) = self.daemon.take() else { return Ok(None) };
        let cpu = daemon.wait()?;
        Ok(memory_peak.map(|memory_peak| Served { cpu, memory_peak }))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if is_mount_point(&self.dir)
            && let Err(error) = unmount(&self.dir)
        {
            eprintln!("warning: {error}");
        }
        self.kill_daemon();
        cleanup::forget(&self.dir);
    }
}

/// Waits a while for those who still use it, then takes it out of the tree whoever does.
fn unmount(dir: &Path) -> Result<()> {
    let start = Instant::now();
    loop {
        match rustix::mount::unmount(dir, UnmountFlags::empty()) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::BUSY) if start.elapsed() < BUSY_MAX => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(_) => {
                return rustix::mount::unmount(dir, UnmountFlags::DETACH)
                    .map_err(|error| Failure::io("unmount", dir, error));
            }
        }
    }
}

/// EROFS straight from the file where the kernel can, which spares it the loop device.
fn mount_by_kernel(format: Format, image: &Path, dir: &Path) -> Result<&'static str> {
    let from_file = (format == Format::Erofs)
        .then(|| rustix::mount::mount(image, dir, format.name(), MountFlags::RDONLY, None));
    if from_file.is_some_and(|outcome| outcome.is_ok()) {
        return Ok("file");
    }
    mount_by_loop(format, image, dir)
}

fn mount_by_loop(format: Format, image: &Path, dir: &Path) -> Result<&'static str> {
    let mut command = std::process::Command::new("mount");
    command.args(["-t", format.name(), "-o", "loop,ro"]).arg(image).arg(dir);
    shell::run_quietly(&mut command).map(|()| "loop")
}
