//! A weak machine out of a strong one: programs that get a part of the processors.
//!
//! A control group gives a share of processor time, half of one processor for example, which is what a slow processor is to
//! a program; where there is none, `taskset` keeps a program to some of the processors, whole ones. A simulated device is not
//! to be within the limit: its processor is another one.

use packfs_core::{Error, Result};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The time within which a share is given, in microseconds: the kernel's own.
const PERIOD: u64 = 100_000;
/// Least share that the kernel takes: a thousandth of a second in each period.
const CPUS_MIN: f64 = 0.01;
/// How often it is tried to remove a group whose programs are ending.
const ATTEMPTS: u32 = 50;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// How programs are limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// `cpu.max` of a control group, version 2.
    CgroupV2,
    /// `cpu.cfs_quota_us` of a control group, version 1.
    CgroupV1,
    /// `taskset`: whole processors.
    Affinity,
}

impl Way {
    /// As people call it.
    pub fn word(self) -> &'static str {
        match self {
            Way::CgroupV2 => "cgroup v2 (cpu.max)",
            Way::CgroupV1 => "cgroup v1 (cpu.cfs_quota_us)",
            Way::Affinity => "affinity (taskset)",
        }
    }
}

/// A limit that is in force for whatever is run by [`CpuLimit::command`], until it is dropped.
#[derive(Debug)]
pub struct CpuLimit {
    way: Way,
    cpus: f64,
    group: Option<Group>,
}

/// A control group, removed when dropped.
#[derive(Debug)]
struct Group(PathBuf);

impl CpuLimit {
    /// Limits to so many processors, 0.5 for example, in the first way that this machine offers.
    ///
    /// Errors: `Usage` if that is no number of processors, `Failed` if there is no way; without control groups, only whole
    /// processors can be given.
    pub fn new(cpus: f64) -> Result<CpuLimit> {
        let there_are = std::thread::available_parallelism().map_or(1, usize::from);
        if !(CPUS_MIN..=there_are as f64).contains(&cpus) {
            let allowed = format!("{CPUS_MIN} to {there_are} are allowed, which this machine has");
            return Err(Error::usage(format!("{cpus} processors: {allowed}")));
        }
        for way in [Way::CgroupV2, Way::CgroupV1] {
            if let Some(group) = Group::new(way, cpus) {
                return Ok(CpuLimit { way, cpus, group: Some(group) });
            }
        }
        if cpus.fract() == 0.0 && has_taskset() {
            return Ok(CpuLimit { way: Way::Affinity, cpus, group: None });
        }
        let error = Error::failed(format!("no control group gives {cpus} of a processor"));
        Err(error
            .hint("as root, with the controller cpu of cgroup v1 or v2; whole processors need only taskset"))
    }

    /// How it is done.
    pub fn way(&self) -> Way {
        self.way
    }

    /// How many processors there are.
    pub fn cpus(&self) -> f64 {
        self.cpus
    }

    /// A command that runs a program within the limit; arguments and all else are added to it as to any.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = match &self.group {
            Some(Group(path)) => {
                // It enters the group itself, before it becomes the program: nobody has to catch up with it.
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", "echo 0 > \"$0\" && exec \"$@\""]).arg(path.join("cgroup.procs"));
                shell
            }
            None => {
                let mut taskset = Command::new("taskset");
                taskset.args(["-c", &format!("0-{}", (self.cpus as usize).max(1) - 1)]);
                taskset
            }
        };
        command.arg(program);
        command
    }
}

impl Group {
    fn new(way: Way, cpus: f64) -> Option<Group> {
        let name = format!("packfs-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let quota = (cpus * PERIOD as f64) as u64;
        let parents = match way {
            Way::CgroupV2 => v2_parents(),
            _ => v1_parents(),
        };
        parents.into_iter().find_map(|parent| {
            if way == Way::CgroupV2 && !read(&parent.join("cgroup.subtree_control")).contains("cpu ") {
                // Refused where programs are in the group itself, unless it is the root.
                let _ = fs::write(parent.join("cgroup.subtree_control"), "+cpu");
            }
            let path = parent.join(&name);
            fs::create_dir(&path).ok()?;
            let group = Group(path);
            match way {
                Way::CgroupV2 => fs::write(group.0.join("cpu.max"), format!("{quota} {PERIOD}")),
                _ => fs::write(group.0.join("cpu.cfs_period_us"), PERIOD.to_string())
                    .and_then(|()| fs::write(group.0.join("cpu.cfs_quota_us"), quota.to_string())),
            }
            .ok()?;
            Some(group)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..ATTEMPTS {
            // Refused while programs in it are ending.
            if fs::remove_dir(&self.0).is_ok() || !self.0.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Where groups of version 2 may be made: in our own, beside it, and at the root.
fn v2_parents() -> Vec<PathBuf> {
    let own = own_group(|controllers| controllers.is_empty());
    mounted("cgroup2")
        .into_iter()
        .flat_map(|root| parents(&root, own.as_deref()))
        .filter(|parent| {
            read(&parent.join("cgroup.controllers")).split_whitespace().any(|word| word == "cpu")
        })
        .collect()
}

fn v1_parents() -> Vec<PathBuf> {
    let own = own_group(|controllers| controllers.split(',').any(|word| word == "cpu"));
    // Of the version-1 hierarchies, the one of this controller.
    let roots = mounted("cgroup").into_iter().filter(|root| root.join("cpu.shares").exists());
    roots.flat_map(|root| parents(&root, own.as_deref())).collect()
}

fn parents(root: &Path, own: Option<&str>) -> Vec<PathBuf> {
    let own = own.map(|own| root.join(own.trim_start_matches('/')));
    let beside = own.as_ref().and_then(|own| own.parent()).filter(|beside| beside.starts_with(root));
    let mut all: Vec<PathBuf> = own.iter().cloned().chain(beside.map(Path::to_owned)).collect();
    all.push(root.to_owned());
    all.retain(|path| path.is_dir());
    all
}

/// Our own group, from `/proc/self/cgroup`: lines of number, controllers and path.
fn own_group(is_it: impl Fn(&str) -> bool) -> Option<String> {
    read(Path::new("/proc/self/cgroup")).lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        is_it(controllers).then(|| path.to_owned())
    })
}

fn mounted(fs_type: &str) -> Vec<PathBuf> {
    let table = packfs_mount::table::read().unwrap_or_default();
    table.into_iter().filter(|mounted| mounted.fs_type == fs_type).map(|mounted| mounted.at).collect()
}

fn has_taskset() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join("taskset").is_file())
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
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
    fn a_program_runs_within_its_limit_and_nothing_is_left() {
        // Whoever may make no groups and has no taskset cannot limit anything.
        let Ok(limit) = CpuLimit::new(1.0) else { return packfs_testkit::skip("no way to limit processors") };
        let output =
            limit.command("sh").args(["-c", "cat /proc/self/cgroup; nproc; exit 7"]).output().unwrap();
        assert_eq!(output.status.code(), Some(7));
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        match &limit.group {
            Some(Group(path)) => {
                let path = path.clone();
                let name = path.file_name().unwrap().to_str().unwrap();
                assert!(said.contains(name), "{said}");
                drop(limit);
                assert!(!path.exists());
            }
            None => assert_eq!(said.lines().last(), Some("1")),
        }
    }
}
