//! Figures of a session as cells of tables, and the list of all that was looked up: tables drawn
//! from no results at all name the cells of their plan.

use std::cell::RefCell;

use crate::results::{Cell, CodecUsage, Recipe, Results, Run, Spread, Subject, TreeFacts};
use crate::session::{Cell as PlannedCell, subject_id};
use crate::workload::Workload;

pub(crate) struct Lookup<'a> {
    results: &'a Results,
    cells: RefCell<Vec<PlannedCell>>,
}

impl<'a> Lookup<'a> {
    pub(crate) fn new(results: &'a Results) -> Self {
        Self { results, cells: RefCell::default() }
    }

    /// Cells in the order in which they were looked up, some of them several times.
    pub(crate) fn into_cells(self) -> Vec<PlannedCell> {
        self.cells.into_inner()
    }

    /// Returns a figure of the runs of a cell, or the reason why there is none.
    pub(crate) fn of_runs(&self, cell: PlannedCell, figure: impl Fn(&Run) -> Option<f64>) -> Cell {
        let found = self.results.measurements.iter().find(|found| cell.is_of(found));
        match found {
            Some(found) => {
                self.cells.borrow_mut().push(cell);
                Spread::of(found.runs.iter().filter_map(figure)).map_or(Cell::Empty, Cell::Figure)
            }
            None => self.missing(cell),
        }
    }

    pub(crate) fn size(&self, tree: &str, recipe: &Recipe) -> Cell {
        let why = self.missing(untimed(tree, recipe, Workload::ImageSize));
        self.stored(tree, recipe).unwrap_or(why)
    }

    /// Returns the same without noting that it is needed.
    pub(crate) fn stored(&self, tree: &str, recipe: &Recipe) -> Option<Cell> {
        self.subject(tree, recipe)?.stored_len.map(|len| Cell::exact(len as f64))
    }

    /// Returns the disk usage of one codec.
    ///
    /// Errors: the reason why there is none.
    pub(crate) fn usage(&self, tree: &str, recipe: &Recipe, codec: &str) -> Result<&CodecUsage, Cell> {
        let why = self.missing(untimed(tree, recipe, Workload::DiskUsage));
        let mut usage = self.subject(tree, recipe).into_iter().flat_map(|subject| &subject.usage);
        usage.find(|usage| usage.codec.eq_ignore_ascii_case(codec)).ok_or(why)
    }

    pub(crate) fn tree(&self, tree: &str) -> Option<&TreeFacts> {
        self.results.trees.iter().find(|facts| facts.id == tree)
    }

    fn subject(&self, tree: &str, recipe: &Recipe) -> Option<&Subject> {
        let id = subject_id(tree, recipe);
        self.results.subjects.iter().find(|subject| subject.id == id)
    }

    /// Returns true if the program of a cell did not make its image, though it and the tree are
    /// there.
    pub(crate) fn has_failed(&self, cell: &PlannedCell) -> bool {
        let id = subject_id(&cell.tree, &cell.recipe);
        let is_it = |what: &str| what == id || cell.reader.is_none() && what == cell.label();
        self.results.missing.iter().any(|missing| is_it(&missing.what))
    }

    /// Returns the reason that was noted for a cell, its subject, its tree, or the program; nothing
    /// if the cell was not planned.
    fn missing(&self, cell: PlannedCell) -> Cell {
        let id = subject_id(&cell.tree, &cell.recipe);
        let names = [&cell.label(), &id, &cell.tree, &cell.recipe.maker];
        let missing = &self.results.missing;
        let found = names.into_iter().find_map(|name| missing.iter().find(|missing| missing.what == *name));
        self.cells.borrow_mut().push(cell.clone());
        found.map_or(Cell::Empty, |missing| Cell::Missing(missing.why.clone()))
    }
}

fn untimed(tree: &str, recipe: &Recipe, workload: Workload) -> PlannedCell {
    let (tree, recipe, device) = (tree.to_owned(), recipe.clone(), "disk".to_owned());
    PlannedCell { tree, recipe, reader: None, workload, device, jobs: None }
}
