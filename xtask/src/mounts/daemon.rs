//! The program that serves a mount: its start, its account, its end.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use wait4::Wait4;

use crate::failure::{Failure, Result};
use crate::rivals;

/// How long it may take to end once it is unmounted.
const END_MAX: Duration = Duration::from_secs(10);

/// A running child; killed when dropped.
pub struct Daemon {
    child: Child,
    /// Whether its end was taken note of: its id may be another's by then.
    has_been_waited_for: bool,
    /// As one would type it.
    name: String,
    /// What it says.
    log: PathBuf,
}

impl Daemon {
    /// Starts it; what it says goes to a file beside `dir`.
    pub fn start(command: &[OsString], dir: &Path) -> Result<Self> {
        let name = rivals::spelled(command);
        let (program, arguments) =
            command.split_first().ok_or_else(|| Failure::new("no command to mount with"))?;
        let log = dir.with_extension("log");
        let failed = |error| Failure::io("write", &log, error);
        let stdout = File::create(&log).map_err(failed)?;
        let stderr = stdout.try_clone().map_err(failed)?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .map_err(|error| Failure::new(format!("{name}: {error}")))?;
        Ok(Self { child, has_been_waited_for: false, name, log })
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// It is not meant to end before it is unmounted.
    pub fn fail_if_ended(&mut self) -> Result<()> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.failure(&status.to_string())),
            Err(error) => Err(self.failure(&error.to_string())),
        }
    }

    fn failure(&self, what: &str) -> Failure {
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        Failure::new(format!("{}: {what}\n{}", self.name, said.trim_end()))
    }

    /// proc(5): `VmHWM`, which starts with the program and so holds nothing of ours.
    pub fn memory_peak(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process())).ok()?;
        kibibytes(&status, "VmHWM")
    }

    pub fn kill(&mut self) {
        if self.has_been_waited_for {
            return;
        }
        self.has_been_waited_for = true;
        // Both fail only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for its end and returns its processor time. One that does not end is killed.
    pub fn wait(mut self) -> Result<Duration> {
        let start = Instant::now();
        loop {
            match self.child.try_wait4() {
                Ok(Some(ended)) => {
                    self.has_been_waited_for = true;
                    return Ok(ended.rusage.utime + ended.rusage.stime);
                }
                Ok(None) if start.elapsed() > END_MAX => {
                    self.kill();
                    return Err(self.failure("still running 10 s after it was unmounted"));
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(2)),
                Err(error) => return Err(self.failure(&error.to_string())),
            }
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}

/// As `kill -9` does; it may have ended already.
pub fn kill_process(process: u32) {
    if let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
}

/// A line `KEY: N kB` in bytes.
fn kibibytes(text: &str, key: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    Some(value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_peak_of_a_program() {
        assert_eq!(kibibytes("Name:\tx\nVmPeak:\t 9 kB\nVmHWM:\t  3472 kB\n", "VmHWM"), Some(3472 << 10));
        assert_eq!(kibibytes("Name:\tx\n", "VmHWM"), None);
    }

    #[test]
    fn tells_what_a_program_said_that_ended() {
        let dir = std::env::temp_dir().join(format!("xtask-daemon-{}", std::process::id()));
        let words = ["sh", "-c", "echo no such image >&2; exit 3"].map(OsString::from);
        let mut daemon = Daemon::start(&words, &dir).unwrap();
        let error = loop {
            if let Err(error) = daemon.fail_if_ended() {
                break error.to_string();
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        std::fs::remove_file(dir.with_extension("log")).unwrap();
        assert!(error.contains("exit status: 3") && error.ends_with("no such image"), "{error}");
    }
}
