//! The commands that workloads are made of.

use std::ffi::OsStr;
use std::path::Path;

use super::Workload;
use crate::process::{Invocation, Output};
use crate::programs;

/// Places of things for a run.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// The mount of the subject.
    pub mount: &'a Path,
    /// The list of files, for workloads that take one.
    pub list: &'a Path,
    /// A folder in memory for what a run leaves.
    pub memory: &'a Path,
}

/// A command that reads a mount.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The command, which runs in the mount.
    pub invocation: Invocation,
    /// The way of its output.
    pub output: Output,
    /// The command as one would type it.
    pub spelled: String,
    /// Programs whose files have to be in memory beforehand, so that loading them is not measured.
    pub programs: &'static [String],
}

/// Returns how a workload reads a mount; none for those that do something else.
pub fn reading(workload: Workload, places: &Places<'_>) -> Option<Reading> {
    let row = workload.row();
    if row.runs.is_empty() {
        return None;
    }
    let is_here = || row.programs.iter().take(1).all(|program| programs::locate(program).is_some());
    let (runs, command, programs) = match row.instead.as_ref().filter(|_| !is_here()) {
        Some(instead) => (&instead.runs, &instead.command, &instead.programs),
        None => (&row.runs, &row.command, &row.programs),
    };
    let words = runs.split(' ').map(|word| match word {
        "{memory}" => places.memory.as_os_str(),
        word => OsStr::new(word),
    });
    let invocation = Invocation::default().args(words);
    let invocation = if row.list.is_some() { invocation.stdin(places.list) } else { invocation };
    let output = if row.cat { Output::Through(Invocation::new("cat")) } else { Output::Null };
    Some(Reading { invocation: invocation.dir(places.mount), output, spelled: command.clone(), programs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Need, WORKLOADS};

    #[test]
    fn every_workload_that_needs_a_mount_reads_it_there() {
        let places =
            Places { mount: Path::new("/m"), list: Path::new("/l"), memory: Path::new("/dev/shm/x") };
        for row in WORKLOADS.iter() {
            let reading = reading(Workload::named(&row.name).unwrap(), &places);
            assert_eq!(reading.is_some(), row.need == Need::Mount, "{}", row.name);
            let Some(reading) = reading else { continue };
            assert_eq!(reading.invocation.dir.as_deref(), Some(Path::new("/m")));
            assert_eq!(reading.invocation.words[0].to_str(), Some(&*reading.programs[0]));
        }
    }
}
