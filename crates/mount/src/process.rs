//! Other processes, identified by a descriptor, because their numbers are reused.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::time::{Duration, Instant};

/// Process that existed when it was opened.
pub(crate) struct Process(OwnedFd);

impl Process {
    /// `None` if the process does not exist.
    pub(crate) fn open(pid: u32) -> Option<Self> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        pidfd_open(pid, PidfdFlags::empty()).ok().map(Process)
    }

    /// Also true for a zombie.
    pub(crate) fn has_ended(&self) -> bool {
        self.wait(Duration::ZERO)
    }

    /// Returns true if the process ended within `patience`.
    pub(crate) fn wait(&self, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        loop {
            let left = Timespec::try_from(end.saturating_duration_since(Instant::now())).ok();
            match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], left.as_ref()) {
                Err(Errno::INTR) => {}
                ready => return ready.is_ok_and(|count| count > 0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_that_nobody_has_waited_for_has_ended() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = Process::open(child.id()).unwrap();
        assert!(!process.has_ended());
        drop(child.stdin.take());
        assert!(process.wait(Duration::from_secs(60)), "it is a zombie until it is waited for");
        let opened_late = Process::open(child.id());
        assert!(opened_late.is_some_and(|process| process.has_ended()));
        child.wait().unwrap();
        assert!(Process::open(child.id()).is_none() && process.has_ended());
    }
}
