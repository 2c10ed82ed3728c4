//! One run of a reader: an image is put on its device, mounted anew, forgotten by the kernel, and
//! read.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use packfs::{Result, ResultExt};
use packfs_host::cold;

use super::super::plan::Cell;
use super::super::{RunOutcome, Trouble};
use super::Lab;
use super::counts::read_so_far;
use super::images::StoredImage;
use super::simulated::{Attached, Probe, probed};
use crate::machine;
use crate::process::{self, Invocation, Output};
use crate::programs;
use crate::results::Run;
use crate::scratch::Mounted;
use crate::workload::{Need, Places, Reads, Workload, as_list, reading};

#[derive(Clone, Copy)]
pub(super) struct ColdTree<'a> {
    /// Its folder, in a mount.
    pub root: &'a Path,
    /// The process that serves the mount.
    pub server: Option<u32>,
    /// The mount, or the device below it, whose bytes are counted.
    pub counted: &'a Path,
    /// Statistics of the device below, if that is a simulated one.
    pub probe: Option<&'a Probe>,
}

impl Lab {
    /// Runs a cell that reads an image once.
    pub(super) fn read(&mut self, cell: &Cell) -> Result<RunOutcome, Trouble> {
        let place = self.place(&cell.device)?;
        let name = cell.reader.as_deref().unwrap_or_default();
        let subjects = Rc::clone(&self.subjects);
        let reader = subjects.reader(name)?;
        if !reader.reads(&cell.recipe.format) {
            return Err(format!("{name} does not read {}", cell.recipe.format).into());
        }
        self.note(reader.program());
        let StoredImage { path: image, facts } = self.image_on(&cell.subject(), &place)?;
        let attached = place.attach(&image)?;
        let device = attached.as_ref().map(Attached::path);
        let at = self.mount_point()?;
        let mounted = reader.mount(&cell.recipe.format, device.unwrap_or(&image), &at, &self.within())?;
        let probe = attached.as_ref().map(Attached::probe);
        let ran = self.read_mounted(cell, &mounted, mounted.at(), device, probe);
        // A program that was still in it disturbed the run.
        mounted.unmount()?;
        let (command, run) = ran?;
        Ok(RunOutcome { command, run: Some(run), subject: Some(facts) })
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
        let tree =
            ColdTree { root, server: mounted.server(), counted: device.unwrap_or(mounted.at()), probe };
        let (command, mut run) = match cell.workload.need() {
            Need::LargeFile => self.read_large(cell, tree)?,
            _ => self.read_tree(cell, tree)?,
        };
        if run.bytes.is_none() {
            run.bytes = self.bytes_read(cell)?;
        }
        Ok((command, run))
    }

    fn read_tree(&mut self, cell: &Cell, tree: ColdTree<'_>) -> Result<(String, Run), Trouble> {
        let list = self.list_for(cell)?;
        let copy = self.folder_for(cell)?;
        let places = Places { mount: tree.root, list: &list, memory: &copy };
        let reading = reading(cell.workload, &places)
            .ok_or_else(|| format!("{} reads no mount", cell.workload.name()))?;
        if cell.workload == Workload::TarPrograms && !tree.root.join("usr/bin").is_dir() {
            return Err(Trouble::Missing("its tree has no usr/bin".into()));
        }
        if cell.workload == Workload::Boot && self.bytes_read(cell)? == Some(0) {
            return Err(Trouble::Missing("its tree has no file of the trace".into()));
        }
        reading.programs.iter().for_each(|name| self.note_tool(name));
        self.forget(tree.server, reading.programs)?;
        let run = self.run_counted(tree, &reading.invocation, &reading.output)?;
        Ok((reading.spelled, run))
    }

    pub(super) fn run_counted(
        &self,
        tree: ColdTree<'_>,
        invocation: &Invocation,
        output: &Output,
    ) -> Result<Run> {
        let before = read_so_far(tree.counted);
        let run = probed(tree.probe, || self.run_limited(invocation, output, tree.server.as_slice()))?;
        let after = read_so_far(tree.counted);
        let reads = before.zip(after).map(|(before, after)| after.since(before));
        let device_bytes = reads.map(|reads| reads.bytes);
        Ok(Run { device_bytes, device_requests: reads.map(|reads| reads.requests), ..run })
    }

    /// Has the kernel forget everything but the programs that are about to run.
    pub(super) fn forget(&mut self, server: Option<u32>, names: &[impl AsRef<str>]) -> Result<(), Trouble> {
        machine::drop_caches()?;
        self.sources.cool();
        server.into_iter().for_each(cold::load_mapped);
        let within = self.within();
        if within.is_limited() {
            // The program that enters the limit is loaded, too.
            let _ = process::capture(&within.of(&Invocation::new("true")), true);
        }
        for program in names.iter().filter_map(|name| programs::locate(name.as_ref())) {
            // Telling its version takes its libraries, too. A failure does no harm.
            let _ = process::capture(&Invocation::new(program).arg("--version"), true);
        }
        Ok(())
    }

    /// Writes the list of a workload; returns no path if it takes none.
    fn list_for(&self, cell: &Cell) -> Result<PathBuf> {
        let Some(files) = self.sources.listed(&cell.tree, cell.workload)? else { return Ok(PathBuf::new()) };
        let path = self.memory.as_ref().unwrap_or(&self.scratch).path("list");
        std::fs::write(&path, as_list(&files)).or_io(|| format!("cannot write {path:?}"))?;
        Ok(path)
    }

    /// Makes a folder in memory that the tree is copied to, if the workload does that.
    fn folder_for(&mut self, cell: &Cell) -> Result<PathBuf, Trouble> {
        if cell.workload != Workload::CpRead {
            return Ok(PathBuf::new());
        }
        let path = self.memory_for("tree", self.sources.copied_len(&cell.tree))?.path("copy");
        make_dir(&path)?;
        self.temporary.push(path.clone());
        Ok(path)
    }

    /// Returns the bytes that a workload reads, as its user sees it.
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

    pub(super) fn mount_point(&self) -> Result<PathBuf, Trouble> {
        let at = self.scratch.path("mount");
        make_dir(&at)?;
        Ok(at)
    }
}

fn make_dir(path: &Path) -> Result<(), Trouble> {
    std::fs::create_dir_all(path).or_io(|| format!("cannot make {path:?}")).map_err(Trouble::Stop)
}
