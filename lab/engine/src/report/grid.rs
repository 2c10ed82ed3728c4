//! A table in words: what every report of tables has in common, whatever it draws lines with.

use crate::report::figures;
use crate::results::{Cell, Table, Unit};

/// A table whose cells are words.
pub struct Grid {
    /// One for each column.
    pub headings: Vec<Heading>,
    /// Rows with one cell for each heading.
    pub rows: Vec<Vec<GridCell>>,
    /// Why cells are missing; a cell that says `missing (2)` means the second.
    pub notes: Vec<String>,
}

/// Heading of a column.
pub struct Heading {
    /// The words; a quoted column says so.
    pub title: String,
    /// True if its figures are quoted from a document.
    pub quoted: bool,
    /// True if it holds figures, which are set to the right.
    pub figures: bool,
    /// True if it holds what one types.
    pub code: bool,
}

/// One cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridCell {
    /// The words.
    pub text: String,
    /// True if a figure is missing here.
    pub missing: bool,
}

impl Grid {
    /// A table with spreads, or with medians alone.
    pub fn new(table: &Table, with_spreads: bool) -> Self {
        let headings = table
            .columns
            .iter()
            .map(|column| Heading {
                title: format!("{}{}", column.title, if column.quoted { " (quoted)" } else { "" }),
                quoted: column.quoted,
                figures: column.unit != Unit::Text,
                code: column.title == "command",
            })
            .collect();
        let mut notes = Vec::new();
        let rows = table
            .rows
            .iter()
            .map(|row| {
                let units = table.columns.iter().map(|column| column.unit);
                let cells = row.iter().chain(std::iter::repeat(&Cell::Empty));
                units.zip(cells).map(|(unit, cell)| words(cell, unit, with_spreads, &mut notes)).collect()
            })
            .collect();
        Self { headings, rows, notes }
    }
}

fn words(cell: &Cell, unit: Unit, with_spreads: bool, notes: &mut Vec<String>) -> GridCell {
    let text = match cell {
        Cell::Text(text) => text.clone(),
        Cell::Figure(spread) if with_spreads => figures::spread(spread, unit),
        Cell::Figure(spread) => figures::figure(spread.median, unit),
        Cell::Missing(why) => {
            let known = notes.iter().position(|note| note == why);
            let index = known.unwrap_or_else(|| {
                notes.push(why.clone());
                notes.len() - 1
            });
            format!("missing ({})", index + 1)
        }
        Cell::Empty => String::new(),
    };
    GridCell { text, missing: matches!(cell, Cell::Missing(_)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Column, Spread};

    #[test]
    fn equal_reasons_are_noted_once_and_short_rows_are_filled() {
        let column = |title: &str, unit| Column { title: title.into(), unit, quoted: title == "seed" };
        let missing = |why: &str| Cell::Missing(why.into());
        let table = Table {
            title: String::new(),
            method: String::new(),
            columns: vec![column("size", Unit::Bytes), column("seed", Unit::Seconds)],
            rows: vec![
                vec![missing("a"), missing("b")],
                vec![missing("a")],
                vec![Cell::Figure(Spread::of([1.0, 2.0, 4.0]).unwrap()), Cell::Empty],
            ],
        };
        let grid = Grid::new(&table, false);
        assert_eq!(grid.notes, ["a", "b"]);
        assert_eq!(grid.headings[1].title, "seed (quoted)");
        let rows: Vec<Vec<&str>> =
            grid.rows.iter().map(|row| row.iter().map(|cell| cell.text.as_str()).collect()).collect();
        assert_eq!(rows, [["missing (1)", "missing (2)"], ["missing (1)", ""], ["2 B", ""]]);
        assert_eq!(Grid::new(&table, true).rows[2][0].text, "2 B (1 to 4)");
    }
}
