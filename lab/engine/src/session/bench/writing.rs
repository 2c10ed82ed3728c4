//! File systems that are written: each on a disk of its own, on the device that is asked for.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use packfs::{Error, Result, ResultExt};
use packfs_device::{Backing, available_memory};

use super::super::plan::{Cell, SubjectKey, subject_id};
use super::super::{Ran, Trouble};
use super::place::Place;
use super::reading::make_dir;
use super::simulated::{Attached, Probe, probed};
use super::trouble::NO_ROOM;
use super::{Lab, SPARE};
use crate::process::{self, Invocation, Output};
use crate::results::{CodecUsage, Missing, Run, Subject};
use crate::scratch::{BlockFile, Mounted};
use crate::workload::Workload;

/// Below this Btrfs lays its disks out differently, and XFS makes none.
const DISK_LEN_MIN: u64 = 2 << 30;
/// The folder on a file system that the tree is copied to.
const COPY: &str = "tree";

/// Disks that are there, by subject and device.
#[derive(Debug, Default)]
pub(super) struct Disks {
    made: HashMap<(SubjectKey, String), Disk>,
    number: u64,
}

/// A disk with a file system.
#[derive(Debug)]
struct Disk {
    below: Below,
    is_filled: bool,
    command: String,
}

/// What is below a file system; it goes with this.
#[derive(Debug)]
enum Below {
    /// A file behind a loop device.
    File(BlockFile),
    /// A file behind a simulated device.
    Simulated { attached: Attached, file: PathBuf },
}

impl Below {
    fn device(&self) -> &Path {
        match self {
            Self::File(file) => file.device(),
            Self::Simulated { attached, .. } => attached.path(),
        }
    }

    fn probe(&self) -> Option<&Probe> {
        match self {
            Self::File(_) => None,
            Self::Simulated { attached, .. } => Some(attached.probe()),
        }
    }
}

impl Disks {
    /// Removes all disks of a subject.
    pub(super) fn remove(&mut self, subject: &SubjectKey) {
        let keys: Vec<_> = self.made.keys().filter(|(of, _)| of == subject).cloned().collect();
        for key in keys {
            if let Some(Disk { below: Below::Simulated { attached, file }, .. }) = self.made.remove(&key) {
                drop(attached);
                // The scratch takes it along at the end.
                let _ = std::fs::remove_file(file);
            }
        }
    }
}

impl Lab {
    /// One run on a file system that can be written.
    pub(super) fn run_on_disk(&mut self, cell: &Cell) -> Result<Ran, Trouble> {
        let what = cell.label();
        if self.sources.is_tar(&cell.tree) {
            return Err(Missing { what, why: "a tar has no files to copy one by one".into() }.into());
        }
        self.ensure_disk(cell)?;
        if !matches!(cell.workload, Workload::Write) {
            self.ensure_filled(cell)?;
        }
        let mounted = self.mount_disk(cell)?;
        let ran = match cell.workload {
            Workload::Write => self.write(cell, &mounted),
            Workload::DiskUsage => {
                let facts = self.facts_of_disk(cell, &mounted, true);
                facts.map(|facts| Ran { command: facts.command.clone(), run: None, subject: Some(facts) })
            }
            _ => {
                let root = mounted.at().join(COPY);
                let device = self.device_of(cell).map(Path::to_owned);
                let probe = self.probe_of(cell);
                self.read_mounted(cell, &mounted, &root, device.as_deref(), probe.as_ref())
                    .map(|(command, run)| Ran { command, run: Some(run), subject: None })
            }
        };
        mounted.unmount().map_err(|error| self.trouble(&what, &error))?;
        ran
    }

    fn device_of(&self, cell: &Cell) -> Option<&Path> {
        self.disks.made.get(&key(cell)).map(|disk| disk.below.device())
    }

    fn probe_of(&self, cell: &Cell) -> Option<Probe> {
        self.disks.made.get(&key(cell)).and_then(|disk| disk.below.probe()).cloned()
    }

    fn ensure_disk(&mut self, cell: &Cell) -> Result<(), Trouble> {
        if self.disks.made.contains_key(&key(cell)) {
            return Ok(());
        }
        let what = cell.label();
        let missing = |why: String| Missing { what: what.clone(), why };
        let place = self.place(&cell.device)?;
        let subjects = Rc::clone(&self.subjects);
        let writable = subjects.writable(&cell.recipe.maker).map_err(|found| missing(found.why))?;
        self.note(writable.program());
        let below = self.make_below(cell, &place)?;
        let command = writable.command(&cell.recipe, below.device());
        let command = command.map_err(|found| missing(found.why))?.spelled();
        writable.make(&cell.recipe, below.device()).map_err(|error| self.trouble(&what, &error))?;
        let options = writable.mount_options(&cell.recipe).map_err(|found| missing(found.why))?;
        let command = command.replace(&*below.device().to_string_lossy(), "DEVICE");
        let option = if options.is_empty() { String::new() } else { format!(" -o {options}") };
        let command = format!("{command} && mount{option} DEVICE MOUNT");
        self.disks.made.insert(key(cell), Disk { below, is_filled: false, command });
        Ok(())
    }

    /// A file, sparse at first, where the device has it.
    fn make_below(&mut self, cell: &Cell, place: &Place) -> Result<Below, Trouble> {
        let what = cell.label();
        self.disks.number += 1;
        let number = self.disks.number;
        let bytes = self.sources.bytes(&cell.tree);
        // Small files take whole blocks, and Btrfs keeps its metadata twice.
        let len = (bytes / 2 * 3 + (1 << 30)).max(DISK_LEN_MIN).next_multiple_of(1 << 20);
        let taken = super::Bench::len_guess(self, &cell.subject()) + SPARE;
        let in_memory = self.memory.as_ref().filter(|memory| {
            memory.free().is_ok_and(|free| free / 4 >= taken) && available_memory() / 4 >= taken
        });
        let scratch = match (place, in_memory) {
            (Place::Disk, _) | (Place::Simulated(_), None) => &self.scratch,
            (Place::Memory, _) => self.memory(&what)?,
            (Place::Simulated(_), Some(memory)) => memory,
        };
        let free = scratch.free().map_err(Trouble::Stop)?;
        if free < taken {
            let full = format!("{:?} has {free} bytes free, and {what} takes about {taken}", scratch.dir());
            return Err(match place {
                Place::Memory => Missing { what, why: full }.into(),
                Place::Disk | Place::Simulated(_) => Trouble::Stop(Error::failed(full).hint(NO_ROOM)),
            });
        }
        let path = scratch.path(&format!("disk-{number}"));
        let made = match place {
            Place::Disk | Place::Memory => BlockFile::new(&path, len).map(Below::File),
            Place::Simulated(spec) => sparse(&path, len).and_then(|()| {
                Attached::new(spec, Backing::File(&path))
                    .map(|attached| Below::Simulated { attached, file: path })
            }),
        };
        made.map_err(|error| self.trouble(&what, &error))
    }

    fn mount_disk(&mut self, cell: &Cell) -> Result<Mounted, Trouble> {
        let what = cell.label();
        let at = self.scratch.path("mount");
        make_dir(&at)?;
        let missing = |why: String| Missing { what: what.clone(), why };
        let Some(device) = self.device_of(cell) else {
            return Err(missing("its disk is gone".into()).into());
        };
        let writable = self.subjects.writable(&cell.recipe.maker).map_err(|found| missing(found.why))?;
        writable.mount(&cell.recipe, device, &at).map_err(|error| self.trouble(&what, &error))
    }

    /// Copies the tree there, unmeasured, unless a run did.
    fn ensure_filled(&mut self, cell: &Cell) -> Result<(), Trouble> {
        if self.disks.made.get(&key(cell)).is_some_and(|disk| disk.is_filled) {
            return Ok(());
        }
        let mounted = self.mount_disk(cell)?;
        let ran = self.write(cell, &mounted).map(drop);
        mounted.unmount().map_err(|error| self.trouble(&cell.label(), &error))?;
        ran
    }

    /// One run of the write test: what was there is deleted and trimmed away, the tree is in
    /// memory, and the copy counts once it is on the device.
    fn write(&mut self, cell: &Cell, mounted: &Mounted) -> Result<Ran, Trouble> {
        let what = cell.label();
        let copy = mounted.at().join(COPY);
        if copy.exists() {
            let removed = std::fs::remove_dir_all(&copy).or_io(|| format!("cannot remove {copy:?}"));
            removed.map_err(|error| self.trouble(&what, &error))?;
        }
        // A device that cannot forget is as one that was never told.
        let _ = process::capture(&Invocation::new("fstrim").arg(mounted.at()), true);
        rustix::fs::sync();
        self.sources.warm(&cell.tree, true).map_err(|error| self.trouble(&what, &error))?;
        let tree = self.sources.path(&cell.tree).map_err(Trouble::Stop)?.to_owned();
        self.note_tool("cp");
        let script = r#"cp -a "$1" "$2" && sync --file-system "$2""#;
        let command = Invocation::shell(script).arg("sh").arg(&tree).arg(&copy);
        let probe = self.probe_of(cell);
        let ran = probed(probe.as_ref(), || self.run_limited(&command, &Output::Null, &[]));
        let mut run: Run = ran.map_err(|error| self.trouble(&what, &error))?;
        run.bytes = Some(self.sources.bytes(&cell.tree));
        if let Some(disk) = self.disks.made.get_mut(&key(cell)) {
            disk.is_filled = true;
        }
        let facts = self.facts_of_disk(cell, mounted, false)?;
        let command = "cp -a TREE MOUNT && sync --file-system MOUNT".to_owned();
        Ok(Ran { command, run: Some(run), subject: Some(facts) })
    }

    fn facts_of_disk(&self, cell: &Cell, mounted: &Mounted, usage_needed: bool) -> Result<Subject, Trouble> {
        let what = cell.label();
        let missing = |why: String| Missing { what: what.clone(), why };
        let writable = self.subjects.writable(&cell.recipe.maker).map_err(|found| missing(found.why))?;
        let taken = writable.taken(mounted.at()).map_err(|error| self.trouble(&what, &error))?;
        let usage: Vec<CodecUsage> = match writable.usage(mounted.at()) {
            Ok(usage) => usage,
            Err(error) if usage_needed => return Err(self.trouble(&what, &error)),
            Err(_) => vec![],
        };
        let command = self.disks.made.get(&key(cell)).map(|disk| disk.command.clone()).unwrap_or_default();
        Ok(Subject {
            id: subject_id(&cell.tree, &cell.recipe),
            tree: cell.tree.clone(),
            recipe: cell.recipe.clone(),
            command,
            stored_len: Some(taken),
            usage,
        })
    }
}

fn key(cell: &Cell) -> (SubjectKey, String) {
    (cell.subject(), cell.device.clone())
}

fn sparse(path: &Path, len: u64) -> Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let file = file.or_io(|| format!("cannot make {path:?}"))?;
    file.set_len(len).or_io(|| format!("cannot make {path:?} {len} bytes long"))
}
