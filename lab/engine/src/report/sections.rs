//! A session in sections: what all reports for people say, whatever draws it.

use crate::report::context::{self, Line};
use crate::report::overview;
use crate::report::summary::as_figure;
use crate::results::{Cell, Results, Table, Unit};

/// A section.
pub struct Section {
    pub title: &'static str,
    /// True if it is of interest beside the figures: a terminal shows it, too.
    pub is_brief: bool,
    pub parts: Vec<Part>,
}

/// A part of a section.
pub enum Part {
    Facts(Vec<Line>),
    Table(Table),
    /// Missing things, and why.
    Reasons(Vec<(String, String)>),
    Words(&'static str),
}

/// All sections that are not empty.
pub fn sections(results: &Results) -> Vec<Section> {
    let facts = |lines: Vec<Line>| if lines.is_empty() { vec![] } else { vec![Part::Facts(lines)] };
    let of = |tables: Vec<Table>| tables.into_iter().map(Part::Table).collect();
    let missing = results.missing.iter().map(|it| (it.what.clone(), it.why.clone())).collect();
    let has_tables = !results.tables.is_empty();
    let missing = if results.missing.is_empty() {
        Part::Words("Nothing: all that was asked for was measured.")
    } else {
        Part::Reasons(missing)
    };
    let mut sections = vec![
        Section { title: "Method", is_brief: true, parts: facts(context::method(results)) },
        Section { title: "Machine", is_brief: true, parts: facts(context::machine(results)) },
        Section { title: "Programs and drivers", is_brief: false, parts: programs(results) },
        Section { title: "Trees", is_brief: false, parts: trees(results) },
        Section { title: "Devices", is_brief: false, parts: devices(results) },
        Section { title: "Tables", is_brief: true, parts: of(results.tables.clone()) },
        Section { title: "All measurements", is_brief: !has_tables, parts: of(overview::tables(results)) },
        Section { title: "Subjects", is_brief: false, parts: subjects(results) },
        Section { title: "Missing", is_brief: true, parts: vec![missing] },
    ];
    sections.retain(|section| !section.parts.is_empty());
    sections
}

fn table(columns: &[(&str, Unit)], rows: Vec<Vec<Cell>>) -> Vec<Part> {
    if rows.is_empty() { vec![] } else { vec![Part::Table(Table::new("", "", columns, rows))] }
}

fn words(rows: impl Iterator<Item = Vec<String>>) -> Vec<Vec<Cell>> {
    rows.map(|row| row.into_iter().map(Cell::Text).collect()).collect()
}

fn programs(results: &Results) -> Vec<Part> {
    let row = |it: &crate::results::Program| {
        vec![it.name.clone(), it.version.clone(), it.path.clone().unwrap_or_else(|| "the kernel's".into())]
    };
    let columns = [("program", Unit::Text), ("version", Unit::Text), ("found at", Unit::Text)];
    table(&columns, words(results.programs.iter().map(row)))
}

fn trees(results: &Results) -> Vec<Part> {
    let rows = results.trees.iter().map(|it| vec![it.id.clone(), context::tree(it), it.made_by.clone()]);
    table(&[("tree", Unit::Text), ("holds", Unit::Text), ("made by", Unit::Text)], words(rows))
}

fn devices(results: &Results) -> Vec<Part> {
    let rows = results.devices.iter().map(|it| vec![it.id.clone(), context::device(it)]);
    table(&[("device", Unit::Text), ("what it is", Unit::Text)], words(rows))
}

fn subjects(results: &Results) -> Vec<Part> {
    let rows = results.subjects.iter().map(|it| {
        let size = it.stored_len.map_or(Cell::Empty, |len| Cell::exact(as_figure(len)));
        vec![Cell::Text(it.id.clone()), Cell::Text(it.tree.clone()), size, Cell::Text(it.command.clone())]
    });
    let columns =
        [("subject", Unit::Text), ("tree", Unit::Text), ("size", Unit::Bytes), ("command", Unit::Text)];
    table(&columns, rows.collect())
}
