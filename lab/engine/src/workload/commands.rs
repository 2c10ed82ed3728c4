//! The commands that workloads are made of.

use std::path::Path;

use super::{Row, Workload};
use crate::process::{Invocation, Output};
use crate::programs;

/// Where things lie for a run.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// Where the subject is mounted.
    pub mount: &'a Path,
    /// The list of files, for workloads that take one.
    pub list: &'a Path,
    /// A folder in memory for what a run leaves.
    pub memory: &'a Path,
}

/// A command that reads a mount.
#[derive(Clone, Debug)]
pub struct Reading {
    /// What runs, in the mount.
    pub invocation: Invocation,
    /// Where its output goes.
    pub output: Output,
    /// As one would type it.
    pub spelled: String,
    /// Programs whose files have to be in memory beforehand, so that loading them is not measured.
    pub programs: &'static [&'static str],
}

/// How a workload reads a mount; none for those that do something else.
pub fn reading(workload: Workload, places: &Places<'_>) -> Option<Reading> {
    let Row { command, .. } = *workload.row();
    let mut spelled = command.to_owned();
    let cat = || Output::Through(Invocation::new("cat"));
    let xargs = |program: &str| Invocation::new("xargs").args(["-0", program]).stdin(places.list);
    let (invocation, output, programs): (_, _, &[_]) = match workload {
        Workload::SequentialData | Workload::TarRead => {
            (Invocation::new("tar").args(["cf", "-", "."]), cat(), &["tar", "cat"])
        }
        // GNU tar reads no contents if its archive is /dev/null, however it gets there: a pipe makes it read.
        Workload::TarPrograms => {
            (Invocation::new("tar").args(["cf", "-", "usr/bin"]), cat(), &["tar", "cat"])
        }
        Workload::SequentialMetadata => {
            (Invocation::new("tar").args(["cf", "/dev/null", "."]), Output::Null, &["tar"])
        }
        Workload::List => (Invocation::new("ls").args(["-lR", "--color=always", "."]), cat(), &["ls", "cat"]),
        Workload::Find => (Invocation::new("find").args([".", "-ls"]), Output::Null, &["find"]),
        Workload::ParallelRandomData => {
            let four = Invocation::new("xargs").args(["-0", "-P", "4", "-n", "64", "cat"]);
            (four.stdin(places.list), Output::Null, &["xargs", "cat"])
        }
        Workload::SmallRandomData | Workload::FullRandomData => {
            (xargs("cat"), Output::Null, &["xargs", "cat"])
        }
        Workload::SmallRandomMetadata | Workload::FullRandomMetadata => {
            (xargs("stat"), Output::Null, &["xargs", "stat"])
        }
        Workload::SizeOrder if programs::locate("cpio").is_some() => {
            let cpio = Invocation::new("cpio").args(["-0", "-o", "--quiet", "-H", "newc"]);
            (cpio.stdin(places.list), Output::Null, &["cpio"])
        }
        Workload::SizeOrder => {
            spelled = "xargs -0 cat < list > /dev/null (in cpio's place, which is not here)".into();
            (xargs("cat"), Output::Null, &["xargs", "cat"])
        }
        Workload::CpRead => {
            (Invocation::new("cp").arg("-a").arg(".").arg(places.memory), Output::Null, &["cp"])
        }
        Workload::ImageSize
        | Workload::Build
        | Workload::Decode
        | Workload::Unpack
        | Workload::LargeSequential
        | Workload::LargeRandom
        | Workload::LargeSmallRandom
        | Workload::Write
        | Workload::DiskUsage => return None,
    };
    Some(Reading { invocation: invocation.dir(places.mount), output, spelled, programs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Need, WORKLOADS};

    #[test]
    fn every_workload_that_needs_a_mount_reads_it_there() {
        let places =
            Places { mount: Path::new("/m"), list: Path::new("/l"), memory: Path::new("/dev/shm/x") };
        for row in &WORKLOADS {
            let reading = reading(row.workload, &places);
            assert_eq!(reading.is_some(), row.need == Need::Mount, "{}", row.name);
            let Some(reading) = reading else { continue };
            assert_eq!(reading.invocation.dir.as_deref(), Some(Path::new("/m")));
            assert_eq!(reading.invocation.words[0].to_str(), Some(reading.programs[0]));
        }
    }
}
