//! One run of a reader: an image is put on its device, mounted anew, forgotten by the kernel, and
//! read.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use packfs::{Result, ResultExt};
use packfs_host::cold;

use super::super::plan::Cell;
use super::super::{Ran, Trouble};
use super::Lab;
use super::counts::read_so_far;
use super::images::Made;
use super::simulated::{Attached, Probe, probed};
use super::sources::Sources;
use crate::machine;
use crate::process::{self, Invocation, Output};
use crate::programs;
use crate::results::{Missing, Run};
use crate::scratch::Mounted;
use crate::workload::{Need, Places, Reads, Workload, reading};

/// A tree to be read, cold.
#[derive(Clone, Copy)]
pub(super) struct ColdTree<'a> {
    /// Where it is, in a mount.
    pub root: &'a Path,
    /// Processes that serve the mount.
    pub servers: &'a [u32],
    /// The mount, or the device below it, whose bytes are counted.
    pub counted: &'a Path,
    /// Tells of the device below, if that is a simulated one.
    pub probe: Option<&'a Probe>,
}

impl Lab {
    /// One run of a cell that reads an image.
    pub(super) fn read(&mut self, cell: &Cell) -> Result<Ran, Trouble> {
        let what = cell.label();
        let missing = |why: String| Missing { what: what.clone(), why };
        let place = self.place(&cell.device)?;
        let name = cell.reader.clone().unwrap_or_default();
        let subjects = Rc::clone(&self.subjects);
        let reader = subjects.reader(&name).map_err(|found| missing(found.why))?;
        if !reader.reads(&cell.recipe.format) {
            return Err(missing(format!("{name} does not read {}", cell.recipe.format)).into());
        }
        self.note(reader.program());
        let Made { path: image, facts } = self.image_on(&cell.subject(), &place)?;
        let attached = place.attach(&image).map_err(|error| self.trouble(&what, &error))?;
        let source = attached.as_ref().map_or(image, |attached| attached.path().to_owned());
        let at = self.scratch.path("mount");
        make_dir(&at)?;
        let mounted = reader.mount(&cell.recipe.format, &source, &at, &self.within());
        let mounted = mounted.map_err(|error| self.trouble(&what, &error))?;
        let device = attached.as_ref().map(|attached| attached.path().to_owned());
        let probe = attached.as_ref().map(Attached::probe);
        let ran = self.read_mounted(cell, &mounted, mounted.at(), device.as_deref(), probe);
        // Whoever was still in it disturbed the run.
        mounted.unmount().map_err(|error| self.trouble(&what, &error))?;
        drop(attached);
        let (command, run) = ran?;
        Ok(Ran { command, run: Some(run), subject: Some(facts) })
    }

    /// Reads the tree at `root`, in a mount, cold. `device` is the block device below it, where it
    /// is not the mount's own; `probe` tells of it if it is a simulated one.
    pub(super) fn read_mounted(
        &mut self,
        cell: &Cell,
        mounted: &Mounted,
        root: &Path,
        device: Option<&Path>,
        probe: Option<&Probe>,
    ) -> Result<(String, Run), Trouble> {
        let what = cell.label();
        let servers: Vec<u32> = mounted.server().into_iter().collect();
        let tree = ColdTree { root, servers: &servers, counted: device.unwrap_or(mounted.at()), probe };
        let (command, mut run) = if cell.workload.need() == Need::LargeFile {
            self.read_large(cell, tree)?
        } else {
            self.read_tree(cell, tree)?
        };
        if run.bytes.is_none() {
            run.bytes = self.bytes_read(cell).map_err(|error| self.trouble(&what, &error))?;
        }
        Ok((command, run))
    }

    fn read_tree(&mut self, cell: &Cell, tree: ColdTree<'_>) -> Result<(String, Run), Trouble> {
        let what = cell.label();
        let list = self.list_for(cell).map_err(|error| self.trouble(&what, &error))?;
        let copy = self.folder_for(cell)?;
        let places = Places { mount: tree.root, list: &list, memory: &copy };
        let Some(reading) = reading(cell.workload, &places) else {
            let why = format!("{} reads no mount", cell.workload.name());
            return Err(Missing { what, why }.into());
        };
        let at_programs = cell.workload == Workload::TarPrograms;
        if at_programs && !tree.root.join("usr/bin").is_dir() {
            return Err(Missing { what, why: "its tree has no usr/bin".into() }.into());
        }
        reading.programs.iter().for_each(|name| self.note_tool(name));
        self.forget(tree.servers, reading.programs)?;
        let ran = self.run_counted(tree, &reading.invocation, &reading.output);
        let ran = ran.map_err(|error| self.trouble(&what, &error));
        if cell.workload == Workload::CpRead {
            let _ = std::fs::remove_dir_all(&copy);
        }
        Ok((reading.spelled, ran?))
    }

    /// Runs what reads a tree, and counts what its device gave meanwhile.
    pub(super) fn run_counted(
        &self,
        tree: ColdTree<'_>,
        invocation: &Invocation,
        output: &Output,
    ) -> Result<Run> {
        let before = read_so_far(tree.counted);
        let run = probed(tree.probe, || self.run_limited(invocation, output, tree.servers))?;
        let after = read_so_far(tree.counted);
        let device_bytes = before.zip(after).map(|(before, after)| after.saturating_sub(before));
        Ok(Run { device_bytes, ..run })
    }

    /// Has the kernel forget everything but the programs that are about to run.
    pub(super) fn forget(&mut self, servers: &[u32], names: &[impl AsRef<str>]) -> Result<(), Trouble> {
        machine::drop_caches()?;
        self.sources.cool();
        servers.iter().for_each(|server| cold::load_mapped(*server));
        let within = self.within();
        if within.is_limited() {
            // What a program enters the limit by is loaded, too.
            let _ = process::capture(&within.of(&Invocation::new("true")), true);
        }
        for program in names.iter().filter_map(|name| programs::locate(name.as_ref())) {
            // Telling its version takes its libraries, too. What fails is no worse off.
            let _ = process::capture(&Invocation::new(program).arg("--version"), true);
        }
        Ok(())
    }

    /// Where the list of a workload is; empty if it takes none.
    fn list_for(&mut self, cell: &Cell) -> Result<PathBuf> {
        let place = self.memory.as_ref().unwrap_or(&self.scratch);
        let Some(files) = self.sources.listed(&cell.tree, cell.workload)? else { return Ok(PathBuf::new()) };
        let path = place.path("list");
        Sources::write_list(&files, &path)?;
        Ok(path)
    }

    /// A folder in memory that the tree is copied to, if the workload does that.
    fn folder_for(&self, cell: &Cell) -> Result<PathBuf, Trouble> {
        if cell.workload != Workload::CpRead {
            return Ok(PathBuf::new());
        }
        let memory = self.memory(&cell.label())?;
        let (free, needed) = (memory.free().map_err(Trouble::Stop)?, self.sources.copied_len(&cell.tree));
        if free < needed {
            let why = format!("the tree takes {needed} bytes, and {:?} has {free} free", memory.dir());
            return Err(Missing { what: cell.label(), why }.into());
        }
        let path = memory.path("copy");
        make_dir(&path)?;
        Ok(path)
    }

    /// What a workload reads, as its user sees it.
    fn bytes_read(&self, cell: &Cell) -> Result<Option<u64>> {
        let Some(reads) = cell.workload.row().reads else { return Ok(None) };
        Ok(Some(match reads {
            Reads::Tree => self.sources.bytes(&cell.tree),
            Reads::Programs => self.sources.bytes_below(&cell.tree, "usr/bin")?,
            Reads::List => {
                let files = self.sources.listed(&cell.tree, cell.workload)?.unwrap_or_default();
                files.iter().map(|file| file.len).sum()
            }
        }))
    }
}

/// Makes a folder that may be there.
pub(super) fn make_dir(path: &Path) -> Result<(), Trouble> {
    std::fs::create_dir_all(path).or_io(|| format!("cannot make {path:?}")).map_err(Trouble::Stop)
}
