//! Control groups that give a share of processor time: made, entered, and removed again.

use super::Mechanism;
use packfs_core::{Result, ResultExt};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The time within which a share is given, in microseconds: the kernel's own.
const PERIOD: u64 = 100_000;
/// Most time that programs of a group may take to end until it can be removed.
const ENDING_MAX: Duration = Duration::from_secs(5);
/// Names of groups begin so, before the id of their process and a number.
const PREFIX: &str = "packfs-";

static NEXT: AtomicU32 = AtomicU32::new(0);

#[derive(Debug)]
pub(super) struct Group {
    path: PathBuf,
    is_gone: bool,
}

impl Group {
    /// Groups of a share of so many processors, in the places where this process may be allowed to
    /// make one, each made as it is asked for.
    pub(super) fn all(way: Mechanism, cpus: f64) -> impl Iterator<Item = Group> {
        let parents = match way {
            Mechanism::CgroupV2 => v2_parents(),
            Mechanism::CgroupV1 => v1_parents(),
            Mechanism::Affinity => vec![],
        };
        parents.into_iter().filter_map(move |parent| Group::below(&parent, way, cpus))
    }

    fn below(parent: &Path, way: Mechanism, cpus: f64) -> Option<Group> {
        remove_left_over(parent);
        if way == Mechanism::CgroupV2 && !read(&parent.join("cgroup.subtree_control")).contains("cpu ") {
            // Refused where programs are in the group itself, unless it is the root.
            let _ = fs::write(parent.join("cgroup.subtree_control"), "+cpu");
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let group = Group { path, is_gone: false };
        let quota = (cpus * PERIOD as f64).round() as u64;
        match way {
            Mechanism::CgroupV2 => fs::write(group.path.join("cpu.max"), format!("{quota} {PERIOD}")),
            _ => fs::write(group.path.join("cpu.cfs_period_us"), PERIOD.to_string())
                .and_then(|()| fs::write(group.path.join("cpu.cfs_quota_us"), quota.to_string())),
        }
        .ok()?;
        Some(group)
    }

    pub(super) fn door(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }

    #[cfg(test)]
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it, and tells if that cannot be done.
    pub(super) fn remove(mut self) -> Result<()> {
        self.is_gone = true;
        remove(&self.path).or_io(|| format!("cannot remove the control group {:?}", self.path))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_gone {
            // The next process that makes a group here tries again.
            let _ = remove(&self.path);
        }
    }
}

/// Removes a group; refused while programs in it are ending.
fn remove(path: &Path) -> io::Result<()> {
    let start = Instant::now();
    loop {
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(_) if start.elapsed() < ENDING_MAX => std::thread::sleep(Duration::from_millis(10)),
            outcome => return outcome,
        }
    }
}

/// Removes groups of processes that are gone, which were killed; one that still has programs in it
/// stays.
fn remove_left_over(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()).filter(|path| is_left_over(path)) {
        let _ = fs::remove_dir(path);
    }
}

fn is_left_over(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')).map(|(process, _)| process);
    process
        .is_some_and(|process| process.parse::<u32>().is_ok() && !Path::new("/proc").join(process).exists())
}

/// Returns the folders that may hold groups of version 2: our own, the one beside it, and the root.
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

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_groups_of_processes_that_are_gone_are_left_over() {
        // No system counts its processes this far.
        let left = ["packfs-4294967295-0", "packfs-4294967295-12"];
        assert!(left.iter().all(|name| is_left_over(&Path::new("/sys/fs/cgroup").join(name))));
        let own = format!("packfs-{}-0", std::process::id());
        for name in [&own, "packfs-slice", "packfs-x-0", "4294967295-0", "packfs-4294967295"] {
            assert!(!is_left_over(&Path::new("/sys/fs/cgroup").join(name)), "{name}");
        }
    }

    #[test]
    fn groups_of_killed_processes_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["packfs-4294967295-0", "system.slice"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        remove_left_over(dir.path());
        let names: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["system.slice"]);
    }
}
