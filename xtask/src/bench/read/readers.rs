//! Those who read a mounted tree, each as a process of its own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wait4::{ResUse, Wait4};

use super::memory_limit::MemoryLimit;
use super::workload::{Sample, Workload};
use crate::corpus::LARGE_NAME;
use crate::failure::{Failure, Result};
use crate::load::Done;
use crate::shell;

/// Programs that read beside our own.
pub const PROGRAMS: [&str; 3] = ["tar", "cat", "find"];

/// How long one reader is waited for.
pub const TIME_MAX: Duration = Duration::from_secs(300);

/// Readers of one mount.
pub struct Readers<'a> {
    /// The mounted tree.
    pub dir: &'a Path,
    /// The tree with the same names.
    pub source: PathBuf,
    pub limit: Option<&'a MemoryLimit>,
    /// Where a reader's complaints go.
    pub log: PathBuf,
}

impl Readers<'_> {
    pub fn perform(&self, workload: Workload) -> Result<Sample> {
        match workload {
            Workload::Tar => self.tar(),
            Workload::Cat => self.load("cat", self.dir, 1),
            Workload::Readers => self.load("cat", self.dir, 4),
            Workload::FindCold => self.find(),
            Workload::FindWarm => self.find().and_then(|_| self.find()),
            Workload::Random4k => self.load("random", &self.dir.join(LARGE_NAME), 1),
            Workload::Sequential => self.load("sequential", &self.dir.join(LARGE_NAME), 1),
            Workload::Memory => self.all(),
        }
    }

    fn all(&self) -> Result<Sample> {
        let mut total = Sample::default();
        for workload in [Workload::Tar, Workload::Cat, Workload::Readers, Workload::FindCold] {
            let sample = self.perform(workload)?;
            total.wall += sample.wall;
            total.reader_cpu += sample.reader_cpu;
            total.operations += sample.operations;
            total.bytes += sample.bytes;
        }
        Ok(total)
    }

    fn tar(&self) -> Result<Sample> {
        let start = Instant::now();
        let mut tar =
            self.command("tar", &["cf", "-", "."])?.stdout(Stdio::piped()).spawn().map_err(no("tar"))?;
        let pipe = tar.stdout.take().map_or_else(Stdio::null, Stdio::from);
        let mut cat = self.command("cat", &[])?;
        let cat = cat.stdin(pipe).stdout(Stdio::null()).spawn().map_err(no("cat"))?;
        let ended = [("tar", tar.wait4().map_err(no("tar"))?), ("cat", cat_end(cat)?)];
        self.sample(start, &ended)
    }

    fn find(&self) -> Result<Sample> {
        let start = Instant::now();
        let find = self.command("find", &[".", "-ls"])?.stdout(Stdio::null()).spawn().map_err(no("find"))?;
        let ended = [("find", find.wait4().map_err(no("find"))?)];
        self.sample(start, &ended)
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Result<Command> {
        let log = File::options().create(true).append(true).open(&self.log);
        let log = log.map_err(|error| Failure::io("write", &self.log, error))?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.dir).stdin(Stdio::null()).stderr(log);
        Ok(command)
    }

    fn sample(&self, start: Instant, ended: &[(&str, ResUse)]) -> Result<Sample> {
        let mut sample = Sample { wall: start.elapsed(), ..Sample::default() };
        for (program, used) in ended {
            if !used.status.success() {
                let said = std::fs::read_to_string(&self.log).unwrap_or_default();
                let last: Vec<_> = said.lines().rev().take(3).collect();
                return Err(Failure::new(format!("{program}: {}: {}", used.status, last.join("; "))));
            }
            sample.reader_cpu += used.rusage.utime + used.rusage.stime;
        }
        Ok(sample)
    }

    /// Our own reader, which takes its time itself.
    fn load(&self, work: &str, path: &Path, threads: usize) -> Result<Sample> {
        let program =
            std::env::current_exe().map_err(|error| Failure::new(format!("cannot find myself: {error}")))?;
        let mut command = match self.limit {
            None => Command::new(&program),
            Some(limit) => {
                let mut command = Command::new("sh");
                command.args(["-c", r#"echo 0 >"$0" && exec "$@""#]).arg(limit.door()).arg(&program);
                command
            }
        };
        command.args(["load", work]).arg(path).arg("--names-of").arg(&self.source);
        command.arg("--threads").arg(threads.to_string());
        let said = shell::capture(&mut command)?;
        let done = Done::from_json(&said).ok_or_else(|| Failure::new(format!("a reader said {said:?}")))?;
        let Done { wall, cpu, operations, bytes } = done;
        Ok(Sample { wall, reader_cpu: cpu, operations, bytes, ..Sample::default() })
    }
}

fn cat_end(cat: std::process::Child) -> Result<ResUse> {
    cat.wait4().map_err(no("cat"))
}

fn no(program: &'static str) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure::new(format!("{program}: {error}"))
}
