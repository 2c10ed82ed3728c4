//! Images: made once, kept as long as something needs them; and the workloads that need nothing else.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use packfs::Result;

use super::super::plan::{Cell, SubjectKey, subject_id};
use super::super::{Ran, Trouble};
use super::place::Place;
use super::{Lab, SPARE};
use crate::process::Output;
use crate::results::{Missing, Run, Subject};
use crate::subject::Unpack;

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

    /// Makes an image where a device is, or in the scratch, and keeps it in the scratch.
    fn make_image(
        &mut self,
        subject: &SubjectKey,
        place: Option<&Place>,
        jobs: u32,
    ) -> Result<(Made, Run), Trouble> {
        let id = subject_id(&subject.tree, &subject.recipe);
        let stop = Trouble::Stop;
        let program = self.subjects.maker(&subject.recipe.maker)?.program().clone();
        self.note(&program);
        self.check_room(subject, &id)?;
        let as_tar = subject.recipe.maker == "tar2sqfs";
        let input = self.sources.input(&subject.tree, as_tar, &self.scratch).map_err(stop)?;
        self.images.number += 1;
        let name = format!("image-{}.{}", self.images.number, subject.recipe.format);
        let path = self.scratch.path(&name);
        let written = match place {
            Some(Place::Memory) => self.memory(&id)?.path(&name),
            _ => path.clone(),
        };
        let maker = self.subjects.maker(&subject.recipe.maker)?;
        let command = maker.command(&subject.recipe, &input, &written, jobs).map_err(|missing| Missing {
            what: id.clone(),
            why: format!("{}: {}", missing.what, missing.why),
        })?;
        let ran = self.run_limited(&command, &Output::Null, &[]);
        let run = ran.map_err(|error| {
            let _ = std::fs::remove_file(&written);
            self.trouble(&id, &error)
        })?;
        let len = std::fs::metadata(&written).map(|facts| facts.len()).map_err(|error| {
            let why = format!("{} left no image: {error}", command.spelled());
            Missing { what: id.clone(), why }
        })?;
        if written != path {
            let moved = std::fs::copy(&written, &path).and_then(|_| std::fs::remove_file(&written));
            moved.map_err(|error| {
                self.trouble(&id, &packfs::Error::io(format!("cannot copy to {path:?}"), error))
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
        self.images.remove(subject);
        let made = Made { path, facts };
        self.images.made.insert(subject.clone(), made.clone());
        Ok((made, run))
    }

    /// That an image fits into the scratch, as far as one can tell beforehand.
    fn check_room(&self, subject: &SubjectKey, id: &str) -> Result<(), Trouble> {
        let free = self.scratch.free().map_err(Trouble::Stop)?;
        let needed = super::Bench::len_guess(self, subject).saturating_add(SPARE);
        if free >= needed {
            return Ok(());
        }
        let (dir, mib) = (self.scratch.dir(), |bytes: u64| bytes.div_ceil(1 << 20));
        let what = format!("{dir:?} has {} MiB free, and {id} may need {}", mib(free), mib(needed));
        Err(Trouble::Stop(
            packfs::Error::failed(what)
                .hint("free some space, or have --scratch DIR name another place; the same command goes on"),
        ))
    }

    /// An image where a device is: a copy in memory for that, else the one in the scratch, which simulated devices take, too.
    pub(super) fn image_on(&mut self, subject: &SubjectKey, place: &Place) -> Result<Made, Trouble> {
        let made = self.image_of(subject)?;
        if !matches!(place, Place::Memory) {
            return Ok(made);
        }
        if let Some(copy) = self.images.copies.get(subject) {
            return Ok(Made { path: copy.clone(), ..made });
        }
        let copy = self.memory(&made.facts.id)?.path(&file_name(&made.path));
        std::fs::copy(&made.path, &copy).map_err(|error| {
            self.trouble(&made.facts.id, &packfs::Error::io(format!("cannot copy to {copy:?}"), error))
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
        let program = self.subjects.unpacker(&name).map_err(|m| missing(m.why))?.program().clone();
        self.note(&program);
        let attached = place.attach(&image).map_err(|error| self.trouble(&what, &error))?;
        let source = attached.as_ref().map_or(image.clone(), |attached| attached.path().to_owned());
        let dir = self.memory.as_ref().unwrap_or(&self.scratch).path("unpacked");
        let unpacker = self.subjects.unpacker(&name).map_err(|m| missing(m.why))?;
        if !unpacker.reads(&cell.recipe.format) {
            return Err(missing(format!("{name} reads no {}", cell.recipe.format)).into());
        }
        let jobs = cell.jobs.unwrap_or(self.jobs);
        let command = unpacker
            .command(&Unpack::Tar, &source, jobs)
            .or_else(|| unpacker.command(&Unpack::Dir(dir.clone()), &source, jobs))
            .ok_or_else(|| missing(format!("{name} neither writes tars nor unpacks")))?;
        let ran = self.run_limited(&command, &Output::Null, &[]);
        let _ = std::fs::remove_dir_all(&dir);
        let mut run = ran.map_err(|error| self.trouble(&what, &error))?;
        run.bytes = Some(self.sources.bytes(&cell.tree));
        let spelled = self.tidy(&command.spelled(), &source);
        Ok(Ran { command: format!("{spelled} > /dev/null"), run: Some(run), subject: Some(facts) })
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
