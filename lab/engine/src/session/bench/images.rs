//! Images: made once, kept as long as something needs them; and the workloads that need nothing
//! else.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use packfs::{Error, Result};

use super::super::plan::{Cell, SubjectKey, subject_id};
use super::super::spec::earlier_tree;
use super::super::{Ran, Trouble};
use super::place::Place;
use super::simulated::{Attached, probed};
use super::trouble::NO_ROOM;
use super::{Lab, SPARE};
use crate::process::Output;
use crate::results::{Missing, Recipe, Run, Subject};
use crate::scratch::Scratch;
use crate::subject::Unpack;
use crate::workload::Workload;

/// An image that is there.
#[derive(Clone, Debug)]
pub(super) struct Made {
    /// In the scratch.
    pub path: PathBuf,
    /// What is known of it.
    pub facts: Subject,
}

/// Those that are there.
#[derive(Debug, Default)]
pub(super) struct Images {
    made: HashMap<SubjectKey, Made>,
    /// Copies in memory.
    copies: HashMap<SubjectKey, PathBuf>,
    number: u64,
}

impl Images {
    /// Whether one is there.
    pub(super) fn is_made(&self, subject: &SubjectKey) -> bool {
        self.made.contains_key(subject)
    }

    /// Removes one, if it is there.
    pub(super) fn remove(&mut self, subject: &SubjectKey) {
        let paths = [self.made.remove(subject).map(|made| made.path), self.copies.remove(subject)];
        for path in paths.into_iter().flatten() {
            // The whole scratch goes at the end, whatever is left in it now.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Lab {
    /// The image of a subject, made if it is not there.
    pub(super) fn image_of(&mut self, subject: &SubjectKey) -> Result<Made, Trouble> {
        if let Some(made) = self.images.made.get(subject) {
            return Ok(made.clone());
        }
        let jobs = self.jobs;
        self.make_image(subject, None, jobs).map(|(made, _)| made)
    }

    /// A recipe with the paths of earlier images in the place of the words that name them
    /// ([`earlier_tree`]).
    fn with_earlier_images(&mut self, recipe: &Recipe) -> Result<Recipe, Trouble> {
        let mut filled = recipe.clone();
        let Some(at) = recipe.options.iter().position(|word| earlier_tree(word).is_some()) else {
            return Ok(filled);
        };
        let mut plain = recipe.clone();
        plain.options.drain(at.saturating_sub(1)..=at);
        let tree = earlier_tree(&recipe.options[at]).unwrap_or_default().to_owned();
        let image = self.image_of(&SubjectKey { tree, recipe: plain })?;
        filled.options[at] = image.path.to_string_lossy().into_owned();
        Ok(filled)
    }

    /// Makes an image where a device is, or in the scratch, and keeps it in the scratch.
    fn make_image(
        &mut self,
        subject: &SubjectKey,
        place: Option<&Place>,
        jobs: u32,
    ) -> Result<(Made, Run), Trouble> {
        let id = subject_id(&subject.tree, &subject.recipe);
        let subjects = Rc::clone(&self.subjects);
        let maker = subjects.maker(&subject.recipe.maker)?;
        let needs_tar = maker.needs_tar();
        self.note(maker.program());
        let recipe = self.with_earlier_images(&subject.recipe)?;
        // One that is there is replaced: nobody plans with room for two.
        self.images.remove(subject);
        self.check_room(subject, &id, needs_tar)?;
        let input = self.sources.input(&subject.tree, needs_tar, &self.scratch);
        let input = input.map_err(|error| self.trouble(&id, &error))?;
        self.images.number += 1;
        let name = format!("image-{}.{}", self.images.number, subject.recipe.format);
        let path = self.scratch.path(&name);
        let written = match place {
            Some(Place::Memory) => self.memory(&id)?.path(&name),
            _ => path.clone(),
        };
        let command = maker.command(&recipe, &input, &written, jobs).map_err(|missing| Missing {
            what: id.clone(),
            why: format!("{}: {}", missing.what, missing.why),
        })?;
        let ran = self.run_limited(&command, &Output::Null, &[]);
        let run = ran.map_err(|error| {
            let trouble = self.trouble(&id, &error);
            let _ = std::fs::remove_file(&written);
            trouble
        })?;
        let len = std::fs::metadata(&written).map(|facts| facts.len()).map_err(|error| {
            let why = format!("{} left no image: {error}", command.spelled());
            Missing { what: id.clone(), why }
        })?;
        if written != path {
            let moved = std::fs::copy(&written, &path).and_then(|_| std::fs::remove_file(&written));
            moved.map_err(|error| {
                let trouble = self.trouble(&id, &Error::io(format!("cannot copy to {path:?}"), error));
                [&path, &written].map(std::fs::remove_file).into_iter().for_each(drop);
                trouble
            })?;
        }
        let facts = Subject {
            id,
            tree: subject.tree.clone(),
            recipe: subject.recipe.clone(),
            command: self.tidy(&command.spelled(), &written),
            stored_len: Some(len),
            usage: vec![],
        };
        let made = Made { path, facts };
        self.images.made.insert(subject.clone(), made.clone());
        Ok((made, run))
    }

    /// That an image fits into the scratch, with the tar it is made of, as far as one can tell
    /// beforehand.
    fn check_room(&self, subject: &SubjectKey, id: &str, needs_tar: bool) -> Result<(), Trouble> {
        let free = self.scratch.free().map_err(Trouble::Stop)?;
        let tar_len = if needs_tar { self.sources.tar_len(&subject.tree) } else { 0 };
        let needed = super::Bench::len_guess(self, subject) + tar_len + SPARE;
        if free >= needed {
            return Ok(());
        }
        let (dir, mib) = (self.scratch.dir(), |bytes: u64| bytes.div_ceil(1 << 20));
        let what = format!("{dir:?} has {} MiB free, and {id} may need {}", mib(free), mib(needed));
        Err(Trouble::Stop(Error::failed(what).hint(NO_ROOM)))
    }

    /// An image where a device is: a copy in memory for that, else the one in the scratch, which
    /// simulated devices take, too.
    pub(super) fn image_on(&mut self, subject: &SubjectKey, place: &Place) -> Result<Made, Trouble> {
        let made = self.image_of(subject)?;
        if !matches!(place, Place::Memory) {
            return Ok(made);
        }
        if let Some(copy) = self.images.copies.get(subject) {
            return Ok(Made { path: copy.clone(), ..made });
        }
        let memory = self.memory(&made.facts.id)?;
        let (free, needed) = (memory.free().map_err(Trouble::Stop)?, made.facts.stored_len.unwrap_or(0));
        if free < needed {
            let why = format!("the image takes {needed} bytes, and {:?} has {free} free", memory.dir());
            return Err(Missing { what: made.facts.id, why }.into());
        }
        let copy = memory.path(&file_name(&made.path));
        std::fs::copy(&made.path, &copy).map_err(|error| {
            let error = Error::io(format!("cannot copy to {copy:?}"), error);
            let trouble = self.trouble(&made.facts.id, &error);
            let _ = std::fs::remove_file(&copy);
            trouble
        })?;
        self.images.copies.insert(subject.clone(), copy.clone());
        Ok(Made { path: copy, ..made })
    }

    /// One run of a maker.
    pub(super) fn build(&mut self, cell: &Cell) -> Result<Ran, Trouble> {
        let place = self.place(&cell.device)?;
        if let Place::Simulated(_) = place {
            let why = "images are built on the disk or in memory: nobody builds on the device itself".into();
            return Err(Missing { what: cell.label(), why }.into());
        }
        self.sources.warm(&cell.tree, false).map_err(|error| self.trouble(&cell.label(), &error))?;
        let jobs = cell.jobs.unwrap_or(self.jobs);
        let (made, mut run) =
            self.make_image(&cell.subject(), Some(&place), jobs).map_err(|trouble| match trouble {
                Trouble::Missing(missing) => Missing { what: cell.label(), why: missing.why }.into(),
                stop => stop,
            })?;
        run.bytes = Some(self.sources.bytes(&cell.tree));
        Ok(Ran { command: made.facts.command.clone(), run: Some(run), subject: Some(made.facts) })
    }

    /// One run of an unpacker.
    pub(super) fn decode(&mut self, cell: &Cell) -> Result<Ran, Trouble> {
        let what = cell.label();
        let missing = |why: String| Missing { what: what.clone(), why };
        let place = self.place(&cell.device)?;
        let Made { path: image, facts } = self.image_on(&cell.subject(), &place)?;
        let name = cell.reader.clone().unwrap_or_default();
        let subjects = Rc::clone(&self.subjects);
        let unpacker = subjects.unpacker(&name).map_err(|found| missing(found.why))?;
        self.note(unpacker.program());
        let attached = place.attach(&image).map_err(|error| self.trouble(&what, &error))?;
        let source = attached.as_ref().map_or(image.clone(), |attached| attached.path().to_owned());
        if !unpacker.reads(&cell.recipe.format) {
            return Err(missing(format!("{name} reads no {}", cell.recipe.format)).into());
        }
        let jobs = cell.jobs.unwrap_or(self.jobs);
        let as_tar = match cell.workload {
            Workload::Unpack => None,
            _ => unpacker.command(&Unpack::Tar, &source, jobs),
        };
        let output = if as_tar.is_some() { " > /dev/null" } else { "" };
        let dir = if as_tar.is_some() { None } else { Some(self.place_to_unpack(cell)?.path("unpacked")) };
        let command = as_tar
            .or_else(|| unpacker.command(&Unpack::Dir(dir.clone()?), &source, jobs))
            .ok_or_else(|| missing(format!("{name} neither writes tars nor unpacks")))?;
        let probe = attached.as_ref().map(Attached::probe);
        let ran = probed(probe, || self.run_limited(&command, &Output::Null, &[]));
        let ran = ran.map_err(|error| self.trouble(&what, &error));
        if let Some(dir) = dir {
            // Of some formats it is a file: the disk that was in the image.
            let _ = std::fs::remove_dir_all(&dir).or_else(|_| std::fs::remove_file(dir));
        }
        let mut run = ran?;
        run.bytes = Some(self.sources.bytes(&cell.tree));
        let spelled = self.tidy(&command.spelled(), &source);
        Ok(Ran { command: format!("{spelled}{output}"), run: Some(run), subject: Some(facts) })
    }

    /// Where a whole tree is unpacked: in memory, or, where it does not fit, in the scratch.
    fn place_to_unpack(&self, cell: &Cell) -> Result<&Scratch, Missing> {
        let needed = self.sources.copied_len(&cell.tree);
        let places = [self.memory.as_ref(), Some(&self.scratch)].into_iter().flatten();
        let mut fitting = places.filter(|place| place.free().is_ok_and(|free| free >= needed));
        fitting.next().ok_or_else(|| {
            let why =
                format!("the tree takes {needed} bytes unpacked, and neither memory nor scratch has them");
            Missing { what: cell.label(), why }
        })
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
