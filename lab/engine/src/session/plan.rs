//! Plans: cells, each a subject under a workload.

use crate::results::{Measurement, Missing, Recipe, Settings, spelled_len};
use crate::trees::PlannedTree;
use crate::workload::{Need, Workload};

/// One cell of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// The `id` of its tree.
    pub tree: String,
    /// Recipe that makes a subject of the tree.
    pub recipe: Recipe,
    /// Its reader; none where nothing is read.
    pub reader: Option<String>,
    /// The workload.
    pub workload: Workload,
    /// Device below it.
    pub device: String,
    /// Threads, where the workload says.
    pub jobs: Option<u32>,
}

/// A tree in a form that can be read: what cells have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SubjectKey {
    /// The `id` of its tree.
    pub tree: String,
    /// The recipe.
    pub recipe: Recipe,
}

impl SubjectKey {
    /// Its `id` in results.
    pub fn id(&self) -> String {
        subject_id(&self.tree, &self.recipe)
    }
}

impl Cell {
    #[cfg(test)]
    pub(crate) fn of_workload(tree: &str, workload: Workload) -> Self {
        let (recipe, device) = (Recipe::default(), "disk".into());
        Self { tree: tree.into(), recipe, reader: None, workload, device, jobs: None }
    }

    /// The subject it is about.
    pub fn subject(&self) -> SubjectKey {
        SubjectKey { tree: self.tree.clone(), recipe: self.recipe.clone() }
    }

    /// Returns its place in results, without runs.
    pub fn measurement(&self) -> Measurement {
        Measurement {
            workload: self.workload.name().into(),
            subject: subject_id(&self.tree, &self.recipe),
            reader: self.reader.clone(),
            device: self.device.clone(),
            jobs: self.jobs,
            command: String::new(),
            runs: vec![],
        }
    }

    /// Returns true if a measurement is of this cell.
    pub fn is_of(&self, measured: &Measurement) -> bool {
        let Measurement { command, runs, .. } = measured.clone();
        Measurement { command, runs, ..self.measurement() } == *measured
    }

    /// Returns its name in messages and in [`Missing`].
    pub fn label(&self) -> String {
        let jobs = self.jobs.map(|jobs| format!("{jobs} jobs"));
        let parts = [Some(self.workload.name().to_owned()), Some(subject_id(&self.tree, &self.recipe))];
        let rest = [self.reader.clone(), Some(self.device.clone()), jobs];
        parts.into_iter().chain(rest).flatten().collect::<Vec<_>>().join(", ")
    }
}

/// The `id` of a subject: `packfs squashfs zstd:15 128K of debian`.
pub fn subject_id(tree: &str, recipe: &Recipe) -> String {
    format!("{} of {tree}", recipe_label(recipe))
}

/// A recipe in words: `packfs squashfs zstd:15 128K`.
pub fn recipe_label(recipe: &Recipe) -> String {
    let mut words = vec![recipe.maker.clone(), recipe.format.clone(), recipe.codec_and_level()];
    words.extend(recipe.block_len.map(spelled_len));
    words.extend(recipe.options.iter().cloned());
    words.extend(recipe.luks.then(|| "luks".to_owned()));
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

/// Everything a session is to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// `erofs-perf`, or a title of the user's.
    pub title: String,
    /// The settings.
    pub settings: Settings,
    /// Trees that cells name.
    pub trees: Vec<PlannedTree>,
    /// The cells, in any order: a session finds its own.
    pub cells: Vec<Cell>,
    /// Cells that are known beforehand to be missing.
    pub missing: Vec<Missing>,
}

impl Plan {
    /// Adds a cell, once.
    pub fn add(&mut self, cell: Cell) {
        if !self.cells.contains(&cell) {
            self.cells.push(cell);
        }
    }

    /// The tree of this `id`.
    pub fn tree(&self, id: &str) -> Option<&PlannedTree> {
        self.trees.iter().find(|tree| tree.facts.id == id)
    }

    /// Its subjects, each once, in the order of its cells.
    pub fn subjects(&self) -> Vec<SubjectKey> {
        let mut subjects = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for cell in &self.cells {
            let subject = cell.subject();
            if seen.insert(subject.clone()) {
                subjects.push(subject);
            }
        }
        subjects
    }
}

/// True if a cell has runs that take an image, which has to be made first.
pub(super) fn reads_an_image(cell: &Cell) -> bool {
    matches!(cell.workload.need(), Need::Unpacker | Need::Mount | Need::LargeFile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_printed_as_it_is_typed() {
        let recipe = Recipe {
            maker: "packfs".into(),
            format: "squashfs".into(),
            codec: "zstd".into(),
            level: Some(15),
            block_len: Some(128 << 10),
            ..Recipe::default()
        };
        assert_eq!(subject_id("debian", &recipe), "packfs squashfs zstd:15 128K of debian");
        let recipe = Recipe {
            maker: "mkfs.ext4".into(),
            format: "ext4".into(),
            codec: "none".into(),
            luks: true,
            ..Recipe::default()
        };
        assert_eq!(recipe_label(&recipe), "mkfs.ext4 ext4 none luks");
    }
}
