//! Figures of results as cells of tables.

use super::asked::cell as planned;
use crate::results::{Cell, Column, Measurement, Recipe, Results, Run, Spread, Subject, Unit};
use crate::session::{Cell as PlannedCell, subject_id};
use crate::workload::Workload;

/// Finds what was measured.
#[derive(Clone, Copy)]
pub(super) struct Figures<'a>(pub &'a Results);

impl Figures<'_> {
    /// Seconds of a cell.
    pub(super) fn seconds(&self, cell: &PlannedCell) -> Cell {
        self.of_runs(cell, |run| Some(run.wall))
    }

    /// Bytes of a cell per second.
    pub(super) fn rate(&self, cell: &PlannedCell) -> Cell {
        self.of_runs(cell, |run| run.bytes.map(|bytes| bytes as f64 / run.wall))
    }

    /// Any figure of the runs of a cell; why there is none, else.
    pub(super) fn of_runs(&self, cell: &PlannedCell, figure: impl Fn(&Run) -> Option<f64>) -> Cell {
        let Some(found) = self.measurement(cell) else { return self.missing(cell) };
        Spread::of(found.runs.iter().filter_map(figure)).map_or(Cell::Empty, Cell::Figure)
    }

    /// The runs of a cell.
    pub(super) fn measurement(&self, cell: &PlannedCell) -> Option<&Measurement> {
        let subject = subject_id(&cell.tree, &cell.recipe);
        self.0.measurements.iter().find(|found| {
            found.workload == cell.workload.name()
                && found.subject == subject
                && found.reader == cell.reader
                && found.device == cell.device
                && found.jobs == cell.jobs
        })
    }

    /// The length of an image, or what a file system has taken.
    pub(super) fn size(&self, tree: &str, recipe: &Recipe) -> Cell {
        match self.subject(tree, recipe).and_then(|subject| subject.stored_len) {
            Some(len) => Cell::Figure(Spread::exact(len as f64)),
            None => self.missing(&planned(tree, recipe, None, Workload::ImageSize, "disk")),
        }
    }

    /// What is known of a subject.
    pub(super) fn subject(&self, tree: &str, recipe: &Recipe) -> Option<&Subject> {
        let id = subject_id(tree, recipe);
        self.0.subjects.iter().find(|subject| subject.id == id)
    }

    /// Why a cell is not there: as it was noted for the cell, its subject, or the program; nothing if it was not asked for.
    fn missing(&self, cell: &PlannedCell) -> Cell {
        let names = [cell.label(), subject_id(&cell.tree, &cell.recipe)];
        let found = names.iter().find_map(|name| self.0.missing.iter().find(|missing| missing.what == *name));
        found.map_or(Cell::Empty, |missing| Cell::Missing(missing.why.clone()))
    }
}

/// Somebody else's figure.
pub(super) fn quoted(figure: f64) -> Cell {
    Cell::Figure(Spread::exact(figure))
}

/// Words.
pub(super) fn words(text: impl Into<String>) -> Cell {
    Cell::Text(text.into())
}

/// One figure by another, by their medians; nothing unless both are there.
pub(super) fn ratio(part: &Cell, whole: &Cell) -> Cell {
    match (part, whole) {
        (Cell::Figure(part), Cell::Figure(whole)) if whole.median != 0.0 => {
            Cell::Figure(Spread::exact(part.median / whole.median))
        }
        _ => Cell::Empty,
    }
}

/// A column of what was measured here.
pub(super) fn column(title: impl Into<String>, unit: Unit) -> Column {
    Column { title: title.into(), unit, quoted: false }
}

/// A column of somebody else's figures.
pub(super) fn quoted_column(title: impl Into<String>, unit: Unit) -> Column {
    Column { title: title.into(), unit, quoted: true }
}

/// Columns of words, then of one figure, the document's and those measured `here`, and of the ratio of what was measured.
pub(super) fn compared(text: &[&str], unit: Unit, here: &[&str], ratio: Option<&str>) -> Vec<Column> {
    let text = text.iter().map(|title| column(*title, Unit::Text));
    let here = here.iter().map(|title| column(*title, unit));
    let ratio = ratio.map(|title| column(title, Unit::Ratio));
    text.chain([quoted_column("document", unit)]).chain(here).chain(ratio).collect()
}

/// `4096`, or `uncompressed`.
pub(super) fn cluster(len: Option<u32>) -> Cell {
    words(len.map_or_else(|| "uncompressed".to_owned(), |len| len.to_string()))
}
