//! One run of one program, or of two with a pipe between them, measured from outside.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Instant;

use packfs::{Error, Result, ResultExt};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use wait4::Wait4;

use super::Invocation;
use super::accounts::{self, CpuTime, Processors};
use crate::results::Run;
use crate::undo::Undo;

/// Destination of standard output.
#[derive(Clone, Debug)]
pub enum Output {
    /// Nowhere.
    Null,
    /// Into a second program, whose output goes nowhere: `tar cf - . | cat > /dev/null`. What it
    /// takes counts, too.
    Through(Invocation),
    /// Into a file, which is made or emptied.
    File(PathBuf),
}

/// Most bytes of a failing program's output that are read.
const SAID_MAX: u64 = 4096;

/// Runs a command to its end, which has to be a success, and tells what it took.
///
/// `servers` are processes that work for it (FUSE servers): what processor time they use meanwhile
/// counts as the run's. Work that the kernel does in threads of its own (loop devices,
/// decompression of EROFS) counts for no program and appears as others' in
/// [`crate::results::Noise`]. `bytes` and the figures of the device are for the caller to fill
/// in. The peak of memory is that of the server, if there is one, since it began; else the
/// program's, left out where it is not above this process's own, which every child begins with.
///
/// Errors: the program cannot be started or fails, with the line that tells why.
pub fn run(invocation: &Invocation, output: &Output, servers: &[u32]) -> Result<Run> {
    let spelled = spelled_with(invocation, output);
    let servers_before: Vec<_> = servers.iter().map(|&id| CpuTime::of(id).unwrap_or_default()).collect();
    let (processors_before, start) = (Processors::now(), Instant::now());

    let mut first = Running::start(invocation, stdout_of(output)?, None, &spelled)?;
    let second = match (output, first.stdout.take()) {
        (Output::Through(next), Some(pipe)) => Some(Running::start_reading(next, pipe, first.id, &spelled)?),
        _ => None,
    };
    first.wait_until_ended();
    if let Some(second) = &second {
        second.wait_until_ended();
    }
    let wall = start.elapsed().as_secs_f64();

    let served = servers
        .iter()
        .zip(servers_before)
        .map(|(&id, before)| CpuTime::of(id).map_or_else(CpuTime::default, |after| after.since(before)));
    let served = served.fold(CpuTime::default(), CpuTime::plus);
    let memory_of_servers = servers.iter().filter_map(|&id| accounts::memory_peak_of(id)).max();
    let is_alone = second.is_none() && servers.is_empty();
    // The reader's end may be the cause of the writer's.
    let second = second.map(|second| second.finish(&spelled)).transpose()?;
    let first = first.finish(&spelled)?;
    let cpu = second.iter().fold(first.cpu.plus(served), |sum, taken| sum.plus(taken.cpu));
    let floor = accounts::own_memory_peak().unwrap_or(0);
    Ok(Run {
        wall,
        user: cpu.user,
        system: cpu.system,
        memory_peak: memory_of_servers
            .or_else(|| Some(first.memory_peak).filter(|&peak| is_alone && peak > floor)),
        bytes: None,
        device_bytes: None,
        device_requests: None,
        noise: Processors::now().noise_since(processors_before, cpu.total()),
        simulation: None,
    })
}

/// Runs a command to its end and returns what it wrote to standard output; not measured.
///
/// Errors: as [`run`]; a program whose exit code says nothing needs `any_status`.
pub fn capture(invocation: &Invocation, any_status: bool) -> Result<String> {
    let spelled = invocation.spelled();
    let mut command = invocation.command()?;
    let output = command.output().or_io(|| format!("cannot run {spelled}"))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if !any_status && !output.status.success() {
        return Err(failure(&spelled, output.status, &said(&output.stderr)));
    }
    let mut text = said(&output.stdout);
    if any_status {
        text.push('\n');
        text.push_str(&said(&output.stderr));
    }
    Ok(text)
}

/// Kills a process and all in its group; they may have ended already.
pub(crate) fn kill_group(leader: u32) {
    if let Some(pid) = pid(leader) {
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    }
}

fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}

fn spelled_with(invocation: &Invocation, output: &Output) -> String {
    match output {
        Output::Null => invocation.spelled(),
        Output::Through(next) => format!("{} | {}", invocation.spelled(), next.spelled()),
        Output::File(path) => format!("{} > {}", invocation.spelled(), super::quoted(path.as_os_str())),
    }
}

fn stdout_of(output: &Output) -> Result<Stdio> {
    Ok(match output {
        Output::Null => Stdio::null(),
        Output::Through(_) => Stdio::piped(),
        Output::File(path) => File::create(path).or_io(|| format!("cannot make {path:?}"))?.into(),
    })
}

fn failure(spelled: &str, status: ExitStatus, said: &str) -> Error {
    let error = Error::failed(format!("{spelled} failed: {status}"));
    match telling_line(said) {
        Some(line) => error.hint(format!("it says: {line}")),
        None => error,
    }
}

/// The first line a program says that is more than a warning: what follows is its usage, or a
/// consequence.
pub(crate) fn telling_line(said: &str) -> Option<&str> {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_warning = |line: &str| {
        let start = line.trim_start_matches('<').to_ascii_lowercase();
        start.starts_with("warning") || start.starts_with("w>")
    };
    lines().find(|line| !is_warning(line)).or_else(|| lines().next())
}

/// A child that is stopped if this is dropped before its end, or when a session is stopped.
struct Running {
    id: u32,
    /// None once it was waited for.
    child: Option<Child>,
    stdout: Option<ChildStdout>,
    stderr: File,
    undo: Option<Undo>,
}

struct Taken {
    cpu: CpuTime,
    memory_peak: u64,
}

impl Running {
    fn start(invocation: &Invocation, stdout: Stdio, group: Option<u32>, spelled: &str) -> Result<Self> {
        let mut command = invocation.command()?;
        command.stdout(stdout);
        Self::spawn(command, group, spelled)
    }

    fn start_reading(invocation: &Invocation, pipe: ChildStdout, group: u32, spelled: &str) -> Result<Self> {
        let mut command = invocation.command()?;
        command.stdin(pipe).stdout(Stdio::null());
        Self::spawn(command, Some(group), spelled)
    }

    fn spawn(mut command: Command, group: Option<u32>, spelled: &str) -> Result<Self> {
        // In memory and without a name: it takes all output, and no thread has to read along.
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let stderr =
            rustix::fs::memfd_create("packfs-lab-stderr", flags).or_io(|| "cannot make a file in memory")?;
        let stderr = File::from(stderr);
        let said = stderr.try_clone().or_io(|| "cannot open a file in memory twice")?;
        let group = group.and_then(|id| i32::try_from(id).ok()).unwrap_or(0);
        command.stderr(said).process_group(group);
        let mut child = command.spawn().or_io(|| format!("cannot run {spelled}"))?;
        let (id, stdout) = (child.id(), child.stdout.take());
        let undo = Undo::new(format!("stop {spelled}"), move || {
            kill_group(id);
            // A reader in another's group.
            if let Some(pid) = pid(id) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
            Ok(())
        });
        Ok(Self { id, child: Some(child), stdout, stderr, undo: Some(undo) })
    }

    /// It stays a zombie, so that its id remains its own.
    fn wait_until_ended(&self) {
        let Some(pid) = pid(self.id) else { return };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(rustix::process::waitid(WaitId::Pid(pid), options), Err(rustix::io::Errno::INTR)) {}
    }

    fn finish(mut self, spelled: &str) -> Result<Taken> {
        self.wait_until_ended();
        if let Some(undo) = self.undo.take() {
            undo.forget();
        }
        let child = self.child.take().ok_or_else(|| Error::failed(format!("{spelled} has ended")))?;
        let ended = child.wait4().or_io(|| format!("cannot wait for {spelled}"))?;
        if !ended.status.success() {
            return Err(failure(spelled, ended.status, &self.said()));
        }
        let cpu =
            CpuTime { user: ended.rusage.utime.as_secs_f64(), system: ended.rusage.stime.as_secs_f64() };
        Ok(Taken { cpu, memory_peak: ended.rusage.maxrss })
    }

    fn said(&mut self) -> String {
        let mut bytes = Vec::new();
        // What cannot be read is not shown; the failure itself is.
        let _ = self.stderr.rewind();
        let _ = (&self.stderr).take(SAID_MAX).read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Still there only if it was not waited for.
        if let Some(undo) = self.undo.take() {
            drop(undo);
        }
        if let Some(mut child) = self.child.take() {
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: &str = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";

    #[test]
    fn shows_the_line_with_the_cause_of_a_failed_program() {
        let script = "echo 'WARNING: odd' >&2; echo \"mkfs: unrecognized option '--workers'\" >&2; \
                      for i in 1 2 3; do echo usage >&2; done; exit 1";
        let failing = Invocation::shell(script);
        for error in [run(&failing, &Output::Null, &[]).unwrap_err(), capture(&failing, false).unwrap_err()] {
            assert_eq!(error.hints(), ["it says: mkfs: unrecognized option '--workers'"]);
        }
        assert_eq!(telling_line("\nwarning: a\nwarning: b\n"), Some("warning: a"));
        assert_eq!(telling_line(" \n"), None);
    }

    #[test]
    fn a_pipe_counts_both_its_ends() {
        let one = run(&Invocation::shell(BUSY), &Output::Null, &[]).unwrap();
        assert!(one.user + one.system > 0.0 && one.wall > 0.0);
        let both = run(&Invocation::shell("echo"), &Output::Through(Invocation::shell(BUSY)), &[]).unwrap();
        assert!(both.user + both.system > 0.0, "{both:?}");
        assert_eq!(both.memory_peak, None);
    }

    #[test]
    fn memory_is_that_of_the_child() {
        // More than this process has, whatever the tests beside this one take.
        let words = ["if=/dev/zero", "of=/dev/null", "bs=700M", "count=1", "status=none"];
        let run = run(&Invocation::new("dd").args(words), &Output::Null, &[]).unwrap();
        assert!(run.memory_peak.unwrap() > 600 << 20, "{run:?}");
    }

    #[test]
    fn what_a_server_takes_meanwhile_counts() {
        let mut server = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let with = run(&Invocation::new("sleep").arg("0.5"), &Output::Null, &[server.id()]);
        server.kill().unwrap();
        server.wait().unwrap();
        let with = with.unwrap();
        assert!(with.user + with.system > 0.02, "{with:?}");
    }

    #[test]
    fn a_failure_includes_the_output_of_the_program() {
        let error = run(&Invocation::shell("echo no such luck >&2; exit 3"), &Output::Null, &[]).unwrap_err();
        let text = format!("{error} {}", error.hints().join(" "));
        assert!(text.contains("exit status: 3") && text.contains("no such luck"), "{text}");
        let next = Output::Through(Invocation::shell("exit 4"));
        let error = run(&Invocation::shell("yes"), &next, &[]).unwrap_err();
        assert!(error.to_string().contains("exit status: 4"), "{error}");
    }

    #[test]
    fn output_goes_to_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        run(&Invocation::new("echo").arg("a"), &Output::File(path.clone()), &[]).unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "a\n");
    }
}
