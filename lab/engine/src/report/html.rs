//! One page that needs no network: plots, a table of all measurements that can be filtered and sorted, the tables of the session,
//! what is missing, machine and method. What is chosen on it stands in its address behind `#`: `report.html#filter=erofs`.

mod rows;

use std::fmt::Write as _;

use packfs::Result;
use packfs_page::{Page, data, escape};

use crate::report::context::{self, Line};
use crate::report::figures;
use crate::report::grid::Grid;
use crate::results::{Results, Table};

/// The whole file. What can be said without a script is said without one.
///
/// Errors: none that results can cause; figures that are no numbers are `null` to the script.
pub fn html(results: &Results) -> Result<String> {
    let mut body = Body::default();
    body.header(results);
    body.plots();
    body.tables(results);
    body.missing(results);
    body.context(results);
    let page = Page {
        title: format!("{} - packfs lab", results.title),
        style: include_str!("html/report.css"),
        scripts: &[
            include_str!("html/axes.js"),
            include_str!("html/plots.js"),
            include_str!("html/table.js"),
            include_str!("html/main.js"),
        ],
        data: data(&rows::data(results))?,
        body: body.0,
    };
    Ok(page.html())
}

/// Markup as it grows.
#[derive(Default)]
struct Body(String);

impl Body {
    fn header(&mut self, results: &Results) {
        let trees: Vec<String> =
            results.trees.iter().map(|tree| format!("{} ({})", tree.id, context::tree(tree))).collect();
        let limit = results.settings.cpu_limit.as_ref();
        let words = format!(
            "{}{} of {}{}{}",
            if results.settings.quick { "A quick run, whose figures are rough: " } else { "" },
            figures::counted(results.measurements.len() as u64, "measurement"),
            figures::counted(results.subjects.len() as u64, "subject"),
            if trees.is_empty() { String::new() } else { format!(" holding {}", trees.join("; ")) },
            limit.map_or_else(String::new, |limit| format!(", with {}", limit.spelled())),
        );
        let links: String = [
            ("sizes-title", "Size against time"),
            ("jobs-title", "Jobs"),
            ("bars-title", "Workloads"),
            ("table-title", "All measurements"),
            ("tables-title", "Tables"),
            ("missing-title", "Missing"),
            ("context-title", "Machine and method"),
        ]
        .iter()
        .filter(|(id, _)| *id != "tables-title" || !results.tables.is_empty())
        // The address behind # holds what is chosen, so these go by script.
        .map(|(id, words)| format!("<a href=\"#\" data-to=\"{id}\">{words}</a>\n"))
        .collect();
        self.push(format_args!(
            "<header>\n<h1>{}</h1>\n<p>{}</p>\n<p class=\"faint\">{}, {}, {}</p>\n<nav class=\"screen\" \
             aria-label=\"Sections\">\n{links}</nav>\n</header>\n",
            escape(&results.title),
            escape(&words),
            escape(&results.machine.processor),
            escape(&results.machine.kernel),
            escape(&results.machine.started),
        ));
    }

    /// Places for what the script draws.
    fn plots(&mut self) {
        self.push(format_args!(
            "<main>\n<noscript><p class=\"alert\">Plots and the table of all measurements are drawn by a script. The tables \
             below need none; report.md, beside this page, has every figure.</p></noscript>\n\
             <div class=\"controls screen\" id=\"controls\" role=\"search\"></div>\n\
             <h2 id=\"sizes-title\">Size against time</h2>\n\
             <p class=\"faint\">Each mark is a subject: to the left is smaller, further down is faster. Point at a mark, or come \
             to it by the Tab key, to read what it is.</p>\n<div id=\"sizes\"></div>\n\
             <h2 id=\"jobs-title\">Speedup and efficiency by jobs</h2>\n<div id=\"jobs\"></div>\n\
             <h2 id=\"bars-title\">Workloads</h2>\n\
             <p class=\"faint\">Filled bars are packfs's, hollow ones those of others; colours tell formats apart as above.</p>\n\
             <div id=\"bars\" class=\"pair\"></div>\n\
             <h2 id=\"table-title\">All measurements</h2>\n\
             <p class=\"faint\">Of all trees and devices. Choose a heading to sort by it; the filter above applies. Lengths and \
             rates are in powers of 1024; least and most are the fastest and the slowest run.</p>\n<div id=\"table\"></div>\n"
        ));
    }

    fn tables(&mut self, results: &Results) {
        if results.tables.is_empty() {
            return;
        }
        self.0.push_str("<h2 id=\"tables-title\">Tables</h2>\n");
        if results.tables.iter().any(|table| table.columns.iter().any(|column| column.quoted)) {
            self.0.push_str(
                "<p class=\"faint\">Columns in italics are quoted from somebody else, for comparison.</p>\n",
            );
        }
        results.tables.iter().for_each(|table| self.table(table));
    }

    fn table(&mut self, table: &Table) {
        self.push(format_args!("<h3>{}</h3>\n", escape(&table.title)));
        if !table.method.is_empty() {
            self.push(format_args!("<p class=\"faint\">{}</p>\n", escape(&table.method)));
        }
        let grid = Grid::new(table, true);
        let class = |figures: bool, quoted: bool, missing: bool| {
            let classes = [(figures, "figure"), (quoted, "quoted"), (missing, "missing")];
            let classes: Vec<_> = classes.iter().filter(|(is, _)| *is).map(|(_, class)| *class).collect();
            if classes.is_empty() { String::new() } else { format!(" class=\"{}\"", classes.join(" ")) }
        };
        let label = escape(&table.title);
        self.push(format_args!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table>\n<thead><tr>"
        ));
        for heading in &grid.headings {
            let class = class(heading.figures, heading.quoted, false);
            self.push(format_args!("<th scope=\"col\"{class}>{}</th>", escape(&heading.title)));
        }
        self.0.push_str("</tr></thead>\n<tbody>\n");
        for row in &grid.rows {
            self.0.push_str("<tr>");
            for (cell, heading) in row.iter().zip(&grid.headings) {
                let class = class(heading.figures, heading.quoted, cell.missing);
                self.push(format_args!("<td{class}>{}</td>", escape(&cell.text)));
            }
            self.0.push_str("</tr>\n");
        }
        self.0.push_str("</tbody>\n</table></div>\n");
        for (index, why) in grid.notes.iter().enumerate() {
            self.push(format_args!("<p class=\"faint\">({}) {}</p>\n", index + 1, escape(why)));
        }
    }

    fn missing(&mut self, results: &Results) {
        self.0.push_str("<h2 id=\"missing-title\">Missing</h2>\n");
        if results.missing.is_empty() {
            self.0.push_str("<p>Nothing: all that was asked for was measured.</p>\n");
            return;
        }
        self.0.push_str("<dl id=\"missing\">\n");
        for missing in &results.missing {
            self.push(format_args!(
                "<dt class=\"alert\">{}</dt><dd>{}</dd>\n",
                escape(&missing.what),
                escape(&missing.why)
            ));
        }
        self.0.push_str("</dl>\n");
    }

    fn context(&mut self, results: &Results) {
        self.0.push_str("<h2 id=\"context-title\">Machine and method</h2>\n");
        self.facts(&context::method(results));
        self.facts(&context::machine(results));
        let program = |program: &crate::results::Program| {
            [program.name.clone(), program.version.clone(), program.path.clone().unwrap_or_default()]
        };
        self.rows(
            "Programs and drivers",
            &["program", "version", "found at"],
            results.programs.iter().map(program),
        );
        let tree =
            |tree: &crate::results::TreeFacts| [tree.id.clone(), context::tree(tree), tree.made_by.clone()];
        self.rows("Trees", &["tree", "holds", "made by"], results.trees.iter().map(tree));
        let device = |device: &crate::results::DeviceFacts| [device.id.clone(), context::device(device)];
        self.rows("Devices", &["device", "what it is"], results.devices.iter().map(device));
        let subject = |subject: &crate::results::Subject| {
            let size = subject.stored_len.map_or_else(String::new, figures::length);
            [subject.id.clone(), subject.tree.clone(), size, subject.command.clone()]
        };
        self.rows("Subjects", &["subject", "tree", "size", "command"], results.subjects.iter().map(subject));
        self.0.push_str("</main>\n");
    }

    fn facts(&mut self, lines: &[Line]) {
        self.0.push_str("<dl>\n");
        for (label, what) in lines {
            let what = escape(what);
            let what = if *label == "Command" { format!("<code>{what}</code>") } else { what };
            self.push(format_args!("<dt>{label}</dt><dd>{what}</dd>\n"));
        }
        self.0.push_str("</dl>\n");
    }

    /// A table of words.
    fn rows<const N: usize>(
        &mut self,
        title: &str,
        headings: &[&str; N],
        rows: impl ExactSizeIterator<Item = [String; N]>,
    ) {
        if rows.len() == 0 {
            return;
        }
        self.push(format_args!(
            "<h3>{title}</h3>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\"><table>\n<thead><tr>"
        ));
        for heading in headings {
            self.push(format_args!("<th scope=\"col\">{heading}</th>"));
        }
        self.0.push_str("</tr></thead>\n<tbody>\n");
        for row in rows {
            self.0.push_str("<tr>");
            for (cell, heading) in row.iter().zip(headings) {
                let cell = escape(cell);
                let cell = if *heading == "command" { format!("<code>{cell}</code>") } else { cell };
                self.push(format_args!("<td>{cell}</td>"));
            }
            self.0.push_str("</tr>\n");
        }
        self.0.push_str("</tbody>\n</table></div>\n");
    }

    fn push(&mut self, markup: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.0.write_fmt(markup);
    }
}
