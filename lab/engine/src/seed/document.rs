//! A document as its file in `seeds/` describes it: figures, subjects, and tables that show both.

use std::collections::BTreeMap;

use packfs::{Error, Result, one_line};
use serde::Deserialize;

use crate::results::Unit;
use crate::trees::TreeKind;
use crate::workload::Workload;

/// Variables of a row: texts, figures, and lists of figures.
pub(super) type Variables = toml::Table;

/// A document that the lab can reproduce.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Document {
    /// The name on the command line.
    pub name: String,
    /// Title, author and year.
    pub source: String,
    /// The machine and data of the document.
    pub setup: String,
    /// Trees that stand for its own, the main one first.
    pub trees: Vec<TreeKind>,
    /// Devices that stand for its own.
    pub devices: Vec<String>,
    /// Measured runs of each cell by default.
    pub runs: u32,
    /// MiB that a tree is cut down to; none for all of it.
    pub(super) part_mib: Option<u64>,
    pub(super) quick_mib: u64,
    #[serde(default)]
    pub(super) wanted: Vec<String>,
    /// True if trees are packed from tars.
    #[serde(default)]
    pub(super) as_tar: bool,
    /// Most jobs that the document has figures of.
    pub(super) most_jobs: Option<u32>,
    #[serde(default)]
    pub(super) kinds: BTreeMap<String, Variables>,
    #[serde(default)]
    pub(super) rows: BTreeMap<String, Vec<Variables>>,
    #[serde(default)]
    pub(super) values: BTreeMap<String, Value>,
    /// The order that [`Kind::Rank`] is a place in.
    pub(super) ranking: Option<Ranking>,
    /// Tables without their rows.
    pub(super) layouts: BTreeMap<String, Layout>,
    /// The tables, in their order.
    #[serde(rename = "table")]
    pub(super) tables: Vec<TableSpec>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Layout {
    /// Template of the heading.
    pub title: String,
    /// Template of the sentence below it.
    pub method: String,
    /// Set to repeat the table for each device. Tables that do so one after another form a group
    /// that is repeated.
    #[serde(default)]
    pub per_device: bool,
    /// Dimension that rows are repeated for.
    pub rows_per: Option<RowsPer>,
    /// The variable that rows without it are left out for.
    pub having: Option<String>,
    /// The figure that rows are sorted by, the largest first.
    pub falling: Option<String>,
    /// The columns.
    pub columns: Vec<ColumnSpec>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RowsPer {
    /// All rows for each device.
    Device,
    /// Each row for each number of jobs.
    Jobs,
    /// The same without one job.
    SeveralJobs,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ColumnSpec {
    /// Its heading.
    pub title: String,
    /// Unit of its figures; none for text.
    pub unit: Option<Unit>,
    /// Its cells.
    pub is: Value,
}

/// A table: a layout, rows, and variables that all its rows have.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct TableSpec {
    /// Name of the layout.
    pub layout: String,
    /// Its rows, or names of lists of rows.
    pub rows: Vec<RowSpec>,
    /// Variables.
    #[serde(flatten)]
    pub variables: Variables,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum RowSpec {
    List(String),
    Row(Variables),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Value {
    Named(String),
    Of(Kind),
}

/// The computation of a cell. A cell that refers to a variable which the row lacks is empty.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Kind {
    /// A template.
    Text(String),
    /// A figure that is neither quoted nor measured: the number of jobs.
    Count(String),
    /// The document's figure or words, with its unit after a blank: `document MiB`. Of a list, the
    /// smallest figure.
    Quote(String),
    /// Length of a subject.
    Size(String),
    /// Time of a workload.
    Seconds(Timed),
    /// Bytes of a workload per second.
    Rate(Timed),
    /// Disk usage of one codec on a writable filesystem.
    Usage(UsageOf),
    /// The first value divided by the second; empty unless both are figures.
    Ratio(Box<(Value, Value)>),
    /// The first value that is a figure, or else not empty.
    First(Vec<Value>),
    /// The smallest figure with any number of jobs.
    Fastest(Box<Value>),
    /// Bytes of the tree divided by a time.
    Throughput(Box<Value>),
    /// The name at a place of the ranking; -1 for the last.
    Rank(isize),
    /// A template of the reason why nothing is measured.
    Missing(String),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Timed {
    /// The variable that holds the subject, spelled as on the command line.
    pub of: String,
    /// The reader; none if nothing is read.
    pub reader: Option<String>,
    /// The workload; none for the variable `workload`.
    pub workload: Option<Workload>,
    /// The number of jobs; none for the variable `jobs`.
    pub jobs: Option<u32>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UsageOf {
    /// The variable that holds the subject.
    pub of: String,
    /// The variable that holds the codec, or `TOTAL`.
    pub codec: String,
    /// The figure.
    pub figure: UsageFigure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum UsageFigure {
    Share,
    Disk,
    Uncompressed,
    Referenced,
}

/// An order of rows by the product of values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ranking {
    /// Name of the list of rows.
    pub rows: String,
    /// The variable that holds the name to show; rows without it are not ranked.
    pub name: String,
    /// The factors.
    pub by: Vec<Value>,
}

impl Document {
    /// Reads a description.
    ///
    /// Errors: `Failed` if it is malformed, or names a part that it does not have.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let document: Self =
            toml::from_str(text).map_err(|error| Error::failed(one_line(&error.to_string())))?;
        match document.unknown() {
            Some(name) => Err(Error::failed(format!("document {}: no {name}", document.name))),
            None => Ok(document),
        }
    }

    /// The first name that stands for nothing.
    fn unknown(&self) -> Option<String> {
        let columns = self.layouts.values().flat_map(|layout| layout.columns.iter().map(|column| &column.is));
        let factors = self.ranking.iter().flat_map(|ranking| &ranking.by);
        let value =
            columns.chain(self.values.values()).chain(factors).find_map(|value| self.unknown_value(value));
        let lists = self.tables.iter().flat_map(|table| &table.rows).filter_map(|row| match row {
            RowSpec::List(name) => Some(name),
            RowSpec::Row(_) => None,
        });
        let mut lists = lists.chain(self.ranking.iter().map(|ranking| &ranking.rows));
        let list = lists.find(|name| !self.rows.contains_key(*name)).map(|name| format!("rows {name:?}"));
        let rows = self.rows.values().flatten().chain(self.kinds.values());
        let kind =
            rows.filter_map(|row| row.get("is")?.as_str()).find(|name| !self.kinds.contains_key(*name));
        let layout = self.tables.iter().find(|table| !self.layouts.contains_key(&table.layout));
        let kind = kind.map(|name| format!("kind {name:?}"));
        value.or(list).or(kind).or_else(|| layout.map(|table| format!("layout {:?}", table.layout)))
    }

    fn unknown_value(&self, value: &Value) -> Option<String> {
        match value {
            Value::Named(name) if !self.values.contains_key(name) => Some(format!("value {name:?}")),
            Value::Named(_) => None,
            Value::Of(kind) => kind.parts().into_iter().find_map(|part| self.unknown_value(part)),
        }
    }

    /// Returns true if a value is computed from quoted figures.
    pub(super) fn is_quoted(&self, value: &Value) -> bool {
        match value {
            Value::Named(name) => self.values.get(name).is_some_and(|value| self.is_quoted(value)),
            Value::Of(Kind::Quote(_)) => true,
            Value::Of(kind) => kind.parts().into_iter().any(|part| self.is_quoted(part)),
        }
    }

    /// Returns all variables of a row: its own, and those of its kind, which may be of another
    /// kind.
    pub(super) fn variables(&self, row: &Variables) -> Variables {
        let kind = row.get("is").and_then(|kind| self.kinds.get(kind.as_str()?));
        let mut variables = kind.map(|kind| self.variables(kind)).unwrap_or_default();
        variables.extend(row.clone());
        variables
    }
}

impl Kind {
    fn parts(&self) -> Vec<&Value> {
        match self {
            Self::Ratio(of) => vec![&of.0, &of.1],
            Self::First(of) => of.iter().collect(),
            Self::Fastest(of) | Self::Throughput(of) => vec![of],
            _ => Vec::new(),
        }
    }
}
