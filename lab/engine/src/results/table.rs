//! Tables: what a session was made to show, in figures that every report prints alike.

use serde::{Deserialize, Serialize};

use super::Spread;

/// One table with a heading, as a document would have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Its heading.
    pub title: String,
    /// Origin of its figures: commands, dropped caches.
    pub method: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// Rows with one cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Its heading.
    pub title: String,
    /// Unit of its figures; `Text` for words.
    pub unit: Unit,
    /// True if its figures are quoted from a document, for comparison.
    pub quoted: bool,
}

/// Unit of a figure; reports choose its spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Words.
    Text,
    /// A length.
    Bytes,
    /// A time.
    Seconds,
    /// A rate.
    BytesPerSecond,
    /// Operations a second.
    Iops,
    /// A quotient, 1 meaning equal.
    Ratio,
    /// A share of one, shown in percent.
    Percent,
    /// A number of things.
    Count,
}

/// A cell of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A figure, in its column's unit.
    Figure(Spread),
    /// Not measured, and why.
    Missing(String),
    /// Nothing to say here.
    Empty,
}

impl Table {
    /// Makes a table of measured columns.
    pub fn new(title: &str, method: &str, columns: &[(&str, Unit)], rows: Vec<Vec<Cell>>) -> Self {
        let column = |&(title, unit): &(&str, Unit)| Column { title: title.into(), unit, quoted: false };
        let columns = columns.iter().map(column).collect();
        Self { title: title.into(), method: method.into(), columns, rows }
    }
}

impl Cell {
    /// Returns a cell with a figure that was not measured but counted.
    pub fn exact(figure: f64) -> Self {
        Self::Figure(Spread::exact(figure))
    }
}
