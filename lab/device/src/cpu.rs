//! A weak machine out of a strong one: programs that get a part of the processors.
//!
//! A control group gives a share of processor time, half of one processor for example, which is
//! what a slow processor is to a program; where there is none, `taskset` keeps a program to some of
//! the processors, whole ones. A simulated device is not to be within the limit: its processor is
//! another one.

mod group;

use group::Group;
use packfs_core::{Error, Result};
use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};

/// Least share that the kernel takes: a thousandth of a second in each period.
const CPUS_MIN: f64 = 0.01;

/// Mechanism that limits programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// `cpu.max` of a control group, version 2.
    CgroupV2,
    /// `cpu.cfs_quota_us` of a control group, version 1.
    CgroupV1,
    /// `taskset`: whole processors.
    Affinity,
}

impl Mechanism {
    /// Returns its name for people.
    pub fn word(self) -> &'static str {
        match self {
            Mechanism::CgroupV2 => "cgroup v2 (cpu.max)",
            Mechanism::CgroupV1 => "cgroup v1 (cpu.cfs_quota_us)",
            Mechanism::Affinity => "affinity (taskset)",
        }
    }
}

/// A limit that is in force for whatever is run by [`CpuLimit::command`], until it is dropped.
#[derive(Debug)]
pub struct CpuLimit {
    way: Mechanism,
    cpus: f64,
    how: State,
}

#[derive(Debug)]
enum State {
    Group(Group),
    /// Processors by their numbers, as `taskset --cpu-list` takes them.
    Processors(String),
}

impl CpuLimit {
    /// Limits to so many processors, 0.5 for example, taken in thousandths, in the first way that
    /// this machine offers and that a program was run in for trial.
    ///
    /// Errors: `Usage` if that is no number of processors, `Failed` if there is no way; without
    /// control groups, only whole processors can be given.
    pub fn new(cpus: f64) -> Result<CpuLimit> {
        let there_are = packfs_core::processor_count();
        if !(CPUS_MIN..=there_are as f64).contains(&cpus) {
            let allowed = format!("{CPUS_MIN} to {there_are} are allowed, which this machine has");
            return Err(Error::usage(format!("{cpus} processors: {allowed}")));
        }
        // The number of digits that survive formatting and parsing.
        let cpus = (cpus * 1000.0).round() / 1000.0;
        for way in [Mechanism::CgroupV2, Mechanism::CgroupV1] {
            let mut limits =
                Group::all(way, cpus).map(|group| CpuLimit { way, cpus, how: State::Group(group) });
            if let Some(limit) = limits.find(CpuLimit::works) {
                return Ok(limit);
            }
        }
        if cpus.fract() == 0.0 {
            let limit = CpuLimit {
                way: Mechanism::Affinity,
                cpus,
                how: State::Processors(own_processors(cpus as usize)),
            };
            if limit.works() {
                return Ok(limit);
            }
        }
        let error = Error::failed(format!("no control group gives {cpus} of a processor"));
        Err(error
            .hint("as root, with the controller cpu of cgroup v1 or v2; whole processors need only taskset"))
    }

    /// Returns the mechanism.
    pub fn way(&self) -> Mechanism {
        self.way
    }

    /// Returns the number of processors.
    pub fn cpus(&self) -> f64 {
        self.cpus
    }

    /// Returns the words before a program and its arguments that run it within the limit. If it
    /// cannot be, the program does not run at all, and they fail.
    pub fn prefix(&self) -> Vec<OsString> {
        match &self.how {
            // It enters the group itself, before it becomes the program, so no process
            // has to be moved later.
            State::Group(group) => {
                let enter = "echo 0 > \"$0\" && exec \"$@\"";
                vec!["/bin/sh".into(), "-c".into(), enter.into(), group.door().into()]
            }
            State::Processors(list) => vec!["taskset".into(), "-c".into(), list.into()],
        }
    }

    /// A command that runs a program within the limit; arguments and all else are added to it as to
    /// any.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let prefix = self.prefix();
        let mut command = Command::new(&prefix[0]);
        command.args(&prefix[1..]).arg(program);
        command
    }

    /// Ends it, and tells what went wrong; dropping it does not.
    ///
    /// Errors: `Io` if programs are in its control group even after some seconds, so that it is
    /// still there.
    pub fn end(self) -> Result<()> {
        match self.how {
            State::Group(group) => group.remove(),
            State::Processors(_) => Ok(()),
        }
    }

    /// True if a program runs within it: who may make a group may not always enter it.
    fn works(&self) -> bool {
        let mut command = self.command("true");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

/// The first `count` of the processors that this process may use.
fn own_processors(count: usize) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let first = processors_in(allowed.unwrap_or_default()).take(count).map(|number| number.to_string());
    first.collect::<Vec<_>>().join(",")
}

/// The numbers in a list such as `0-2,7`.
fn processors_in(list: &str) -> impl Iterator<Item = u32> {
    list.trim().split(',').filter_map(range).flatten()
}

fn range(text: &str) -> Option<std::ops::RangeInclusive<u32>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some(first.parse().ok()?..=last.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_of_processors_is_refused() {
        for cpus in [0.0, -1.0, f64::NAN, 1e6] {
            assert_eq!(CpuLimit::new(cpus).unwrap_err().kind(), packfs_core::ErrorKind::Usage);
        }
    }

    #[test]
    fn processors_are_counted_from_those_that_are_allowed() {
        assert_eq!(processors_in("\t0-2,7,9-10").collect::<Vec<_>>(), [0, 1, 2, 7, 9, 10]);
        assert_eq!(processors_in("").count(), 0);
        assert!(own_processors(1).parse::<u32>().is_ok());
    }

    #[test]
    fn a_program_runs_within_its_limit_and_nothing_is_left() {
        // Without permission for control groups, and without taskset, nothing can be limited.
        let Ok(limit) = CpuLimit::new(1.0) else { return packfs_testkit::skip("no way to limit processors") };
        let output =
            limit.command("sh").args(["-c", "cat /proc/self/cgroup; nproc; exit 7"]).output().unwrap();
        assert_eq!(output.status.code(), Some(7));
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        match &limit.how {
            State::Group(group) => {
                let path = group.path().to_owned();
                let name = path.file_name().unwrap().to_str().unwrap();
                assert!(said.contains(name), "{said}");
                limit.end().unwrap();
                assert!(!path.exists());
            }
            State::Processors(_) => assert_eq!(said.lines().last(), Some("1")),
        }
    }

    #[test]
    fn a_program_that_cannot_enter_does_not_run() {
        let Ok(limit) = CpuLimit::new(0.5) else { return packfs_testkit::skip("no control group for this") };
        let mut command = limit.command("echo");
        command.arg("it ran");
        limit.end().unwrap();
        let output = command.output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    }
}
