//! Figures of a session as cells of tables, and the list of all that was looked up.

use std::cell::RefCell;

use super::row::figure_cell;
use crate::results::{Cell, CodecUsage, Recipe, Results, Run, Spread, Subject};
use crate::session::{Cell as PlannedCell, subject_id};
use crate::workload::Workload;

/// Finds figures by the cell of a plan that they were measured for.
///
/// Every cell that is looked up is noted: tables drawn from no results name the cells of their
/// plan.
pub(super) struct Found<'a> {
    results: &'a Results,
    cells: RefCell<Vec<PlannedCell>>,
}

impl<'a> Found<'a> {
    pub(super) fn new(results: &'a Results) -> Self {
        Self { results, cells: RefCell::default() }
    }

    /// Cells in the order in which they were looked up, some of them several times.
    pub(super) fn into_cells(self) -> Vec<PlannedCell> {
        self.cells.into_inner()
    }

    /// Returns a figure of the runs of a cell, or the reason why there is none.
    pub(super) fn of_runs(&self, cell: PlannedCell, figure: impl Fn(&Run) -> Option<f64>) -> Cell {
        let subject = subject_id(&cell.tree, &cell.recipe);
        let found = self.results.measurements.iter().find(|found| {
            found.workload == cell.workload.name()
                && found.subject == subject
                && found.reader == cell.reader
                && found.device == cell.device
                && found.jobs == cell.jobs
        });
        match found {
            Some(found) => {
                self.cells.borrow_mut().push(cell);
                Spread::of(found.runs.iter().filter_map(figure)).map_or(Cell::Empty, Cell::Figure)
            }
            None => self.missing(cell),
        }
    }

    /// Returns the length of an image, or the space that a filesystem has taken.
    pub(super) fn size(&self, tree: &str, recipe: &Recipe) -> Cell {
        let stored = self.subject(tree, recipe).and_then(|subject| subject.stored_len);
        let why = self.missing(untimed(tree, recipe, Workload::ImageSize));
        stored.map_or(why, |len| figure_cell(len as f64))
    }

    /// Returns the disk usage of one codec.
    ///
    /// Errors: the reason why there is none.
    pub(super) fn usage(&self, tree: &str, recipe: &Recipe, codec: &str) -> Result<&CodecUsage, Cell> {
        let why = self.missing(untimed(tree, recipe, Workload::DiskUsage));
        let mut usage = self.subject(tree, recipe).into_iter().flat_map(|subject| &subject.usage);
        usage.find(|usage| usage.codec.eq_ignore_ascii_case(codec)).ok_or(why)
    }

    /// Returns the bytes of a tree.
    pub(super) fn tree_bytes(&self, tree: &str) -> f64 {
        self.results.trees.iter().find(|facts| facts.id == tree).map_or(0.0, |facts| facts.bytes as f64)
    }

    fn subject(&self, tree: &str, recipe: &Recipe) -> Option<&Subject> {
        let id = subject_id(tree, recipe);
        self.results.subjects.iter().find(|subject| subject.id == id)
    }

    /// Returns the reason that was noted for a cell, its subject, or the program; nothing if the
    /// cell was not planned.
    fn missing(&self, cell: PlannedCell) -> Cell {
        let names = [cell.label(), subject_id(&cell.tree, &cell.recipe)];
        self.cells.borrow_mut().push(cell);
        let missing = &self.results.missing;
        let found = names.iter().find_map(|name| missing.iter().find(|missing| missing.what == *name));
        found.map_or(Cell::Empty, |missing| Cell::Missing(missing.why.clone()))
    }
}

fn untimed(tree: &str, recipe: &Recipe, workload: Workload) -> PlannedCell {
    let (tree, recipe, device) = (tree.to_owned(), recipe.clone(), "disk".to_owned());
    PlannedCell { tree, recipe, reader: None, workload, device, jobs: None }
}
