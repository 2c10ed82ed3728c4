//! Filesystems that are written: each on a disk of its own, on the device that is asked for.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use packfs::{Error, Result, ResultExt};
use packfs_device::{Backing, available_memory};
use rustix::mount::MountFlags;

use super::super::plan::{Cell, SubjectKey, subject_id};
use super::super::trouble::NO_ROOM;
use super::super::{Bench, RunOutcome, Trouble};
use super::place::Place;
use super::simulated::{Attached, Probe, probed};
use super::{KERNEL, Lab, SPARE, need};
use crate::process::{self, Invocation, Output};
use crate::results::{Run, Subject};
use crate::scratch::{BlockFile, Mounted};
use crate::workload::{Need, Workload};

/// Below this Btrfs lays its disks out differently, and XFS makes none.
const DISK_LEN_MIN: u64 = 2 << 30;
/// The folder on a file system that the tree is copied to.
const COPY: &str = "tree";

#[derive(Debug, Default)]
pub(super) struct Disks {
    made: HashMap<(SubjectKey, String), Disk>,
    number: u64,
}

#[derive(Debug)]
struct Disk {
    below: Below,
    is_filled: bool,
    command: String,
}

/// The storage below a filesystem; removed with this.
#[derive(Debug)]
enum Below {
    /// A file behind a loop device.
    File { device: BlockFile, file: PathBuf },
    /// A file behind a simulated device.
    Simulated { attached: Attached, file: PathBuf },
}

impl Below {
    fn device(&self) -> &Path {
        match self {
            Self::File { device, .. } => device.device(),
            Self::Simulated { attached, .. } => attached.path(),
        }
    }

    fn probe(&self) -> Option<&Probe> {
        match self {
            Self::File { .. } => None,
            Self::Simulated { attached, .. } => Some(attached.probe()),
        }
    }

    fn image(&self) -> &Path {
        match self {
            Self::File { file, .. } => file,
            Self::Simulated { attached, .. } => attached.path(),
        }
    }
}

impl Disks {
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
    /// Runs a cell on a filesystem that can be written once.
    pub(super) fn run_on_disk(&mut self, cell: &Cell) -> Result<RunOutcome, Trouble> {
        if self.sources.is_tar(&cell.tree) {
            return Err(Trouble::Missing("a tar has no files to copy one by one".into()));
        }
        // Taken out while it is used; a failure leaves it as it is.
        let mut disk = match self.disks.made.remove(&key(cell)) {
            Some(disk) => disk,
            None => self.make_disk(cell)?,
        };
        let ran = self.run_on(cell, &mut disk);
        self.disks.made.insert(key(cell), disk);
        ran
    }

    fn run_on(&mut self, cell: &Cell, disk: &mut Disk) -> Result<RunOutcome, Trouble> {
        if !disk.is_filled && cell.workload != Workload::Write {
            // Unmeasured: no run copied the tree there.
            let copied = Cell { workload: Workload::Write, reader: None, ..cell.clone() };
            self.mounted_on(&copied, disk, Self::write)?;
        }
        if need(cell) == Need::Unpacker {
            let (command, run) = self.decode_from(cell, disk.below.image(), disk.below.probe())?;
            return Ok(RunOutcome { command, run: Some(run), subject: None });
        }
        self.mounted_on(cell, disk, |lab, cell, disk, mounted| match cell.workload {
            Workload::Write => lab.write(cell, disk, mounted),
            Workload::DiskUsage => {
                let facts = lab.facts_of_disk(cell, disk, mounted, true)?;
                Ok(RunOutcome { command: facts.command.clone(), run: None, subject: Some(facts) })
            }
            _ => {
                let (root, probe) = (mounted.at().join(COPY), disk.below.probe());
                let is_counted = mounted.server().is_none() || probe.is_some();
                let device = is_counted.then(|| disk.below.device());
                let read = lab.read_mounted(cell, mounted, &root, device, probe);
                read.map(|(command, run)| RunOutcome { command, run: Some(run), subject: None })
            }
        })
    }

    /// Mounts a disk for `run`: by the reader of the cell, or, where it has none, to be written.
    fn mounted_on(
        &mut self,
        cell: &Cell,
        disk: &mut Disk,
        run: impl FnOnce(&mut Self, &Cell, &mut Disk, &Mounted) -> Result<RunOutcome, Trouble>,
    ) -> Result<RunOutcome, Trouble> {
        let at = self.mount_point()?;
        let subjects = Rc::clone(&self.subjects);
        let writable = |flags| {
            let writable = subjects.writable(&cell.recipe.maker)?;
            Ok::<_, Trouble>(writable.mount(&cell.recipe, disk.below.device(), &at, flags)?)
        };
        let mounted = match cell.reader.as_deref() {
            None => writable(MountFlags::empty())?,
            Some(KERNEL) => writable(MountFlags::RDONLY)?,
            Some(name) => {
                let reader = subjects.reader(name)?;
                self.note(reader.program());
                reader.mount(&cell.recipe.format, disk.below.image(), &at, &self.within())?
            }
        };
        let ran = run(self, cell, disk, &mounted);
        mounted.unmount()?;
        ran
    }

    fn make_disk(&mut self, cell: &Cell) -> Result<Disk, Trouble> {
        let place = self.place(&cell.device)?;
        let subjects = Rc::clone(&self.subjects);
        let writable = subjects.writable(&cell.recipe.maker)?;
        self.note(writable.program());
        let below = self.make_below(cell, &place)?;
        let command = writable.command(&cell.recipe, below.device())?.spelled();
        writable.make(&cell.recipe, below.device())?;
        let options = writable.mount_options(&cell.recipe)?;
        let command = command.replace(&*below.device().to_string_lossy(), "DEVICE");
        let option = if options.is_empty() { String::new() } else { format!(" -o {options}") };
        let command = format!("{command} && mount{option} DEVICE MOUNT");
        Ok(Disk { below, is_filled: false, command })
    }

    /// Makes a file, sparse at first, on the storage of the device.
    fn make_below(&mut self, cell: &Cell, place: &Place) -> Result<Below, Trouble> {
        self.disks.number += 1;
        let bytes = self.sources.bytes(&cell.tree);
        // Small files take whole blocks, and Btrfs keeps its metadata twice.
        let len = (bytes / 2 * 3 + (1 << 30)).max(DISK_LEN_MIN).next_multiple_of(1 << 20);
        let taken = self.len_guess(&cell.subject()) + SPARE;
        let in_memory = self.memory.as_ref().filter(|memory| {
            memory.free().is_ok_and(|free| free / 4 >= taken) && available_memory() / 4 >= taken
        });
        let scratch = match (place, in_memory) {
            (Place::Disk, _) | (Place::Simulated(_), None) => &self.scratch,
            (Place::Memory, _) => self.memory()?,
            (Place::Simulated(_), Some(memory)) => memory,
        };
        let free = scratch.free().map_err(Trouble::Stop)?;
        if free < taken {
            let id = subject_id(&cell.tree, &cell.recipe);
            let full = format!("{:?} has {free} bytes free, and {id} takes about {taken}", scratch.dir());
            return Err(match place {
                Place::Memory => Trouble::Missing(full),
                Place::Disk | Place::Simulated(_) => Trouble::Stop(Error::failed(full).hint(NO_ROOM)),
            });
        }
        let path = scratch.path(&format!("disk-{}", self.disks.number));
        Ok(match place {
            Place::Disk | Place::Memory => Below::File { device: BlockFile::new(&path, len)?, file: path },
            Place::Simulated(spec) => {
                sparse(&path, len)?;
                Below::Simulated { attached: Attached::new(spec, Backing::File(&path))?, file: path }
            }
        })
    }

    /// Runs the write test once: an earlier copy is deleted and trimmed away, the tree is in
    /// memory, and the copy counts once it is on the device.
    fn write(&mut self, cell: &Cell, disk: &mut Disk, mounted: &Mounted) -> Result<RunOutcome, Trouble> {
        let copy = mounted.at().join(COPY);
        if copy.exists() {
            std::fs::remove_dir_all(&copy).or_io(|| format!("cannot remove {copy:?}"))?;
        }
        // A device that cannot forget is as one that was never told.
        let _ = process::capture(&Invocation::new("fstrim").arg(mounted.at()), true);
        rustix::fs::sync();
        self.sources.warm(&cell.tree, true)?;
        let tree = self.sources.path(&cell.tree).map_err(Trouble::Stop)?.to_owned();
        self.note_tool("cp");
        let script = r#"cp -a "$1" "$2" && sync --file-system "$2""#;
        let command = Invocation::shell(script).arg("sh").arg(&tree).arg(&copy);
        let run = probed(disk.below.probe(), || self.run_limited(&command, &Output::Null, &[]))?;
        disk.is_filled = true;
        let run = Run { bytes: Some(self.sources.bytes(&cell.tree)), ..run };
        let facts = self.facts_of_disk(cell, disk, mounted, false)?;
        let command = "cp -a TREE MOUNT && sync --file-system MOUNT".to_owned();
        Ok(RunOutcome { command, run: Some(run), subject: Some(facts) })
    }

    fn facts_of_disk(
        &self,
        cell: &Cell,
        disk: &Disk,
        mounted: &Mounted,
        usage_needed: bool,
    ) -> Result<Subject, Trouble> {
        let writable = self.subjects.writable(&cell.recipe.maker)?;
        let taken = writable.taken(mounted.at())?;
        let usage = match writable.usage(mounted.at()) {
            Err(error) if usage_needed => return Err(error.into()),
            usage => usage.unwrap_or_default(),
        };
        Ok(Subject {
            id: subject_id(&cell.tree, &cell.recipe),
            tree: cell.tree.clone(),
            recipe: cell.recipe.clone(),
            command: disk.command.clone(),
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
