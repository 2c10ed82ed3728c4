//! A session in words, for the templates of the page and of Markdown.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use packfs::{Error, Result};
use serde::Serialize;

use crate::report::context::{self, Line};
use crate::report::grid::Grid;
use crate::report::{figures, overview};
use crate::results::{Results, Table};

/// Everything that templates name.
#[derive(Serialize)]
struct Model<'a> {
    results: &'a Results,
    headline: String,
    method: Vec<Line>,
    machine: Vec<Line>,
    tables: Vec<TableModel<'a>>,
    has_quotes: bool,
    overview: Vec<TableModel<'a>>,
    programs: Vec<[&'a str; 3]>,
    trees: Vec<[String; 3]>,
    devices: Vec<[String; 2]>,
    subjects: Vec<[String; 4]>,
}

/// A table and its words.
#[derive(Serialize)]
struct TableModel<'a> {
    title: &'a str,
    method: &'a str,
    grid: Grid,
}

/// Returns an environment without filters, whose tags on lines of their own leave no line.
pub fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
    // Only other delimiters could be wrong.
    environment.set_syntax(syntax.build().unwrap_or_default());
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment
}

/// Fills a template with a session.
///
/// Errors: `Failed` for a template that names what there is not, which tests rule out.
pub fn render(environment: &Environment<'_>, template: &str, results: &Results) -> Result<String> {
    let overview = overview::tables(results);
    let filled = environment.render_str(template, Serde(shown(results, &overview)));
    filled.map_err(|error| Error::failed(format!("the report cannot be written: {error}")))
}

fn shown<'a>(results: &'a Results, overview: &'a [Table]) -> Model<'a> {
    let programs = results.programs.iter();
    let trees = results.trees.iter();
    let devices = results.devices.iter();
    let subjects = results.subjects.iter();
    Model {
        results,
        headline: headline(results),
        method: context::method(results),
        machine: context::machine(results),
        tables: results.tables.iter().map(table_model).collect(),
        has_quotes: results.tables.iter().any(|table| table.columns.iter().any(|column| column.quoted)),
        overview: overview.iter().map(table_model).collect(),
        programs: programs.map(|it| [&*it.name, &it.version, it.path.as_deref().unwrap_or("")]).collect(),
        trees: trees.map(|it| [it.id.clone(), context::tree(it), it.made_by.clone()]).collect(),
        devices: devices.map(|it| [it.id.clone(), context::device(it)]).collect(),
        subjects: subjects
            .map(|it| {
                let size = it.stored_len.map_or_else(String::new, figures::length);
                [it.id.clone(), it.tree.clone(), size, it.command.clone()]
            })
            .collect(),
    }
}

fn table_model(table: &Table) -> TableModel<'_> {
    TableModel { title: &table.title, method: &table.method, grid: Grid::new(table, true) }
}

/// Returns how much was measured, of which trees, on how many processors.
fn headline(results: &Results) -> String {
    let trees: Vec<_> =
        results.trees.iter().map(|tree| format!("{} ({})", tree.id, context::tree(tree))).collect();
    let limit = results.settings.cpu_limit.as_ref();
    format!(
        "{}{} of {}{}{}",
        if results.settings.quick { "A quick run, whose figures are rough: " } else { "" },
        figures::counted(results.measurements.len() as u64, "measurement"),
        figures::counted(results.subjects.len() as u64, "subject"),
        if trees.is_empty() { String::new() } else { format!(" holding {}", trees.join("; ")) },
        limit.map_or_else(String::new, |limit| format!(", with {}", limit.spelled())),
    )
}
