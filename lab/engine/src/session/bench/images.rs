//! Images: made once, kept as long as something needs them; and the workloads that need nothing
//! else.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use packfs::{Error, ResultExt};

use super::super::plan::{Cell, SubjectKey, subject_id};
use super::super::spec::earlier_tree;
use super::super::trouble::NO_ROOM;
use super::super::{Bench, RunOutcome, Trouble};
use super::place::Place;
use super::simulated::{Attached, Probe, probed};
use super::{Lab, SPARE};
use crate::process::Output;
use crate::results::{Recipe, Run, Subject};
use crate::scratch::Scratch;
use crate::subject::Unpack;
use crate::workload::Workload;

#[derive(Clone, Debug)]
pub(super) struct StoredImage {
    pub path: PathBuf,
    pub facts: Subject,
}

#[derive(Debug, Default)]
pub(super) struct Images {
    made: HashMap<SubjectKey, StoredImage>,
    copies: HashMap<SubjectKey, PathBuf>,
    number: u64,
}

impl Images {
    pub(super) fn is_made(&self, subject: &SubjectKey) -> bool {
        self.made.contains_key(subject)
    }

    pub(super) fn remove(&mut self, subject: &SubjectKey) {
        let paths = [self.made.remove(subject).map(|made| made.path), self.copies.remove(subject)];
        for path in paths.into_iter().flatten() {
            // The whole scratch goes at the end, whatever is left in it now.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Lab {
    /// Returns the image of a subject, made if it is not there.
    pub(super) fn image_of(&mut self, subject: &SubjectKey) -> Result<StoredImage, Trouble> {
        match self.images.made.get(subject) {
            Some(made) => Ok(made.clone()),
            None => Ok(self.make_image(subject, false, self.jobs)?.0),
        }
    }

    /// Puts the paths of earlier images in the place of the words that name them
    /// ([`earlier_tree`]).
    fn with_earlier_images(&mut self, recipe: &Recipe) -> Result<Recipe, Trouble> {
        let mut filled = recipe.clone();
        let named = |(at, word)| Some((at, earlier_tree(word)?.to_owned()));
        let words = recipe.options.iter().map(String::as_str);
        if let Some((at, tree)) = words.enumerate().find_map(named) {
            let mut plain = recipe.clone();
            plain.options.drain(at.saturating_sub(1)..=at);
            let image = self.image_of(&SubjectKey { tree, recipe: plain })?;
            filled.options[at] = image.path.to_string_lossy().into_owned();
        }
        Ok(filled)
    }

    fn make_image(
        &mut self,
        subject: &SubjectKey,
        in_memory: bool,
        jobs: u32,
    ) -> Result<(StoredImage, Run), Trouble> {
        let id = subject_id(&subject.tree, &subject.recipe);
        let subjects = Rc::clone(&self.subjects);
        let maker = subjects.maker(&subject.recipe.maker)?;
        self.note(maker.program());
        let recipe = self.with_earlier_images(&subject.recipe)?;
        // An existing image is replaced first, because plans need room for one only.
        self.images.remove(subject);
        self.check_room(subject, &id, maker.needs_tar())?;
        let input = self.sources.input(&subject.tree, maker.needs_tar(), &self.scratch)?;
        self.images.number += 1;
        let name = format!("image-{}.{}", self.images.number, subject.recipe.format);
        let path = self.scratch.path(&name);
        let written = if in_memory { self.memory()?.path(&name) } else { path.clone() };
        self.temporary.extend([path.clone(), written.clone()]);
        let command = maker.command(&recipe, &input, &written, jobs)?;
        let run = self.run_limited(&command, &Output::Null, &[])?;
        let image = written.metadata().or_io(|| format!("{} left no image", command.spelled()))?;
        if in_memory {
            std::fs::copy(&written, &path).or_io(|| format!("cannot copy to {path:?}"))?;
        }
        self.temporary.retain(|temporary| *temporary != path);
        let facts = Subject {
            id,
            tree: subject.tree.clone(),
            recipe: subject.recipe.clone(),
            command: self.tidy(&command.spelled(), &written),
            stored_len: Some(image.len()),
            usage: vec![],
        };
        let made = StoredImage { path, facts };
        self.images.made.insert(subject.clone(), made.clone());
        Ok((made, run))
    }

    /// Refuses an image that may not fit into the scratch with the tar it is made of.
    fn check_room(&self, subject: &SubjectKey, id: &str, needs_tar: bool) -> Result<(), Trouble> {
        let free = self.scratch.free().map_err(Trouble::Stop)?;
        let tar_len = if needs_tar { self.sources.tar_len(&subject.tree) } else { 0 };
        let needed = self.len_guess(subject) + tar_len + SPARE;
        if free >= needed {
            return Ok(());
        }
        let (dir, mib) = (self.scratch.dir(), |bytes: u64| bytes.div_ceil(1 << 20));
        let what = format!("{dir:?} has {} MiB free, and {id} may need {}", mib(free), mib(needed));
        Err(Trouble::Stop(Error::failed(what).hint(NO_ROOM)))
    }

    /// Returns the image for a device: a copy in memory for that, else the one in the scratch,
    /// which simulated devices take, too.
    pub(super) fn image_on(&mut self, subject: &SubjectKey, place: &Place) -> Result<StoredImage, Trouble> {
        let made = self.image_of(subject)?;
        if !matches!(place, Place::Memory) {
            return Ok(made);
        }
        if let Some(copy) = self.images.copies.get(subject) {
            return Ok(StoredImage { path: copy.clone(), ..made });
        }
        let memory = self.memory_for("image", made.facts.stored_len.unwrap_or(0))?;
        let copy = memory.path(&made.path.file_name().unwrap_or_default().to_string_lossy());
        self.temporary.push(copy.clone());
        std::fs::copy(&made.path, &copy).or_io(|| format!("cannot copy to {copy:?}"))?;
        self.temporary.pop();
        self.images.copies.insert(subject.clone(), copy.clone());
        Ok(StoredImage { path: copy, ..made })
    }

    /// Runs a maker once.
    pub(super) fn build(&mut self, cell: &Cell) -> Result<RunOutcome, Trouble> {
        let place = self.place(&cell.device)?;
        if let Place::Simulated(_) = place {
            let why = "images are built on the disk or in memory: nobody builds on the device itself";
            return Err(Trouble::Missing(why.into()));
        }
        self.sources.warm(&cell.tree, false)?;
        let (jobs, in_memory) = (cell.jobs.unwrap_or(self.jobs), matches!(place, Place::Memory));
        let (made, mut run) = self.make_image(&cell.subject(), in_memory, jobs)?;
        run.bytes = Some(self.sources.bytes(&cell.tree));
        Ok(RunOutcome { command: made.facts.command.clone(), run: Some(run), subject: Some(made.facts) })
    }

    /// Runs an unpacker once.
    pub(super) fn decode(&mut self, cell: &Cell) -> Result<RunOutcome, Trouble> {
        let place = self.place(&cell.device)?;
        let StoredImage { path: image, facts } = self.image_on(&cell.subject(), &place)?;
        let attached = place.attach(&image)?;
        let source = attached.as_ref().map_or(&*image, Attached::path);
        let (command, run) = self.decode_from(cell, source, attached.as_ref().map(Attached::probe))?;
        Ok(RunOutcome { command, run: Some(run), subject: Some(facts) })
    }

    /// Runs the unpacker of a cell on an image or a disk; `probe` tells of the simulated device it
    /// is on.
    pub(super) fn decode_from(
        &mut self,
        cell: &Cell,
        source: &Path,
        probe: Option<&Probe>,
    ) -> Result<(String, Run), Trouble> {
        let name = cell.reader.as_deref().unwrap_or_default();
        let subjects = Rc::clone(&self.subjects);
        let unpacker = subjects.unpacker(name)?;
        self.note(unpacker.program());
        if !unpacker.reads(&cell.recipe.format) {
            return Err(format!("{name} reads no {}", cell.recipe.format).into());
        }
        let jobs = cell.jobs.unwrap_or(self.jobs);
        let as_stream = match cell.workload {
            Workload::List => unpacker.command(&Unpack::List, source, jobs),
            Workload::Unpack => None,
            _ => unpacker.command(&Unpack::Tar, source, jobs),
        };
        let (command, output) = match as_stream {
            Some(command) => (Some(command), " > /dev/null"),
            None if cell.workload == Workload::List => (None, ""),
            None => {
                let dir = self.place_to_unpack(&cell.tree)?.path("unpacked");
                self.temporary.push(dir.clone());
                (unpacker.command(&Unpack::Dir(dir), source, jobs), "")
            }
        };
        let command = command.ok_or_else(|| format!("{name} does no {}", cell.workload.name()))?;
        let mut run = probed(probe, || self.run_limited(&command, &Output::Null, &[]))?;
        run.bytes = (cell.workload != Workload::List).then(|| self.sources.bytes(&cell.tree));
        Ok((format!("{}{output}", self.tidy(&command.spelled(), source)), run))
    }

    /// Returns the place that a whole tree is unpacked to: memory, or, if it does not fit, the
    /// scratch.
    fn place_to_unpack(&self, tree: &str) -> Result<&Scratch, Trouble> {
        let needed = self.sources.copied_len(tree);
        let places = [self.memory.as_ref(), Some(&self.scratch)].into_iter().flatten();
        let mut fitting = places.filter(|place| place.free().is_ok_and(|free| free >= needed));
        let why =
            || format!("the tree takes {needed} bytes unpacked, and neither memory nor scratch has them");
        Ok(fitting.next().ok_or_else(why)?)
    }
}

/// Removes what a run left: of some formats the unpacked tree is a file, the disk in the image.
pub(super) fn remove(path: &Path) {
    // The scratch takes along at its end whatever is left.
    let _ = std::fs::remove_dir_all(path).or_else(|_| std::fs::remove_file(path));
}
