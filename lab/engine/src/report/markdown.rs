//! Markdown, as documents hold it: title, method, machine and versions, tables with units, what is missing.

use std::fmt::Write as _;

use crate::report::context::{self, Line};
use crate::report::figures;
use crate::report::grid::Grid;
use crate::report::overview;
use crate::results::{Results, Table};

/// The whole session. Figures of others, quoted for comparison, are set in italics; what is missing names its reason below
/// its table.
pub fn markdown(results: &Results) -> String {
    let mut page = Page::default();
    page.heading(1, &results.title);
    page.list(&context::method(results));
    page.heading(2, "Machine");
    page.list(&context::machine(results));
    page.programs(results);
    page.trees_and_devices(results);
    if !results.tables.is_empty() {
        page.heading(2, "Tables");
        results.tables.iter().for_each(|table| page.table(table));
    }
    page.heading(2, "All measurements");
    overview::tables(results).iter().for_each(|table| page.table(table));
    page.subjects(results);
    page.missing(results);
    page.0
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn heading(&mut self, level: usize, title: &str) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.line(&format!("{} {}", "#".repeat(level), text(title)));
    }

    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn paragraph(&mut self, paragraph: &str) {
        if !paragraph.is_empty() {
            self.line(&format!("\n{paragraph}"));
        }
    }

    fn list(&mut self, lines: &[Line]) {
        self.0.push('\n');
        for (label, what) in lines {
            let what = if *label == "Command" { code(what) } else { text(what) };
            self.line(&format!("- {label}: {what}"));
        }
    }

    /// Rows of cells that are Markdown already.
    fn rows(&mut self, headings: &[(String, bool)], rows: impl Iterator<Item = Vec<String>>) {
        let row = |cells: &mut dyn Iterator<Item = String>| {
            cells.fold(String::from("|"), |mut line, cell| {
                // Writing to a string cannot fail.
                let _ = write!(line, " {cell} |");
                line
            })
        };
        self.0.push('\n');
        self.line(&row(&mut headings.iter().map(|(title, _)| title.clone())));
        self.line(&row(&mut headings.iter().map(|(_, right)| if *right { "--:" } else { "---" }.to_owned())));
        for cells in rows {
            self.line(&row(&mut cells.into_iter()));
        }
    }

    fn table(&mut self, table: &Table) {
        self.heading(3, &table.title);
        self.paragraph(&paragraph_start(&text(&table.method)));
        let grid = Grid::new(table, true);
        let headings: Vec<_> =
            grid.headings.iter().map(|heading| (text(&heading.title), heading.figures)).collect();
        let rows = grid.rows.iter().map(|row| {
            let cells = row.iter().zip(&grid.headings);
            let shown = cells.map(|(cell, heading)| {
                let words = text(&cell.text);
                if heading.quoted && !words.is_empty() { format!("*{words}*") } else { words }
            });
            shown.collect()
        });
        self.rows(&headings, rows);
        let notes = grid.notes.iter().enumerate();
        let notes: Vec<_> = notes.map(|(index, why)| format!("({}) {}", index + 1, text(why))).collect();
        self.paragraph(&notes.join("  \n"));
    }

    fn programs(&mut self, results: &Results) {
        if results.programs.is_empty() {
            return;
        }
        let headings = ["program", "version", "found at"].map(|title| (title.to_owned(), false));
        let rows = results.programs.iter().map(|program| {
            let path = program.path.as_ref().map_or_else(|| "the kernel's".into(), |path| cell_code(path));
            vec![text(&program.name), text(&program.version), path]
        });
        self.rows(&headings, rows);
    }

    fn trees_and_devices(&mut self, results: &Results) {
        if !results.trees.is_empty() {
            self.heading(2, "Trees");
            let headings = ["tree", "holds", "made by"].map(|title| (title.to_owned(), false));
            let trees = results.trees.iter();
            self.rows(
                &headings,
                trees.map(|tree| vec![text(&tree.id), text(&context::tree(tree)), text(&tree.made_by)]),
            );
        }
        if !results.devices.is_empty() {
            self.heading(2, "Devices");
            let headings = ["device", "what it is"].map(|title| (title.to_owned(), false));
            let devices = results.devices.iter();
            self.rows(
                &headings,
                devices.map(|device| vec![text(&device.id), text(&context::device(device))]),
            );
        }
    }

    fn subjects(&mut self, results: &Results) {
        if results.subjects.is_empty() {
            return;
        }
        self.heading(2, "Subjects");
        let headings = [("subject", false), ("tree", false), ("size", true), ("command", false)];
        let headings = headings.map(|(title, right)| (title.to_owned(), right));
        let rows = results.subjects.iter().map(|subject| {
            let size = subject.stored_len.map_or_else(String::new, figures::length);
            vec![text(&subject.id), text(&subject.tree), size, cell_code(&subject.command)]
        });
        self.rows(&headings, rows);
    }

    fn missing(&mut self, results: &Results) {
        self.heading(2, "Missing");
        self.0.push('\n');
        if results.missing.is_empty() {
            self.line("Nothing: all that was asked for was measured.");
        }
        for missing in &results.missing {
            self.line(&format!("- {}: {}", text(&missing.what), text(&missing.why)));
        }
    }
}

/// Words that may mean something in Markdown, or in HTML, as words.
fn text(words: &str) -> String {
    let mut escaped = String::with_capacity(words.len());
    let mut before = None;
    let mut rest = words.chars().peekable();
    while let Some(c) = rest.next() {
        let after = rest.peek().copied();
        let within_word = |c: Option<char>| c.is_some_and(|c: char| c.is_alphanumeric() || c == '_');
        let means_something = match c {
            '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '|' | '~' => true,
            '_' => !(within_word(before) && within_word(after)),
            '&' => after.is_some_and(|c| c.is_alphanumeric() || c == '#'),
            _ => false,
        };
        match c {
            '\n' | '\r' => escaped.push(' '),
            c => {
                if means_something {
                    escaped.push('\\');
                }
                escaped.push(c);
            }
        }
        before = Some(c);
    }
    escaped
}

/// As [`text`], where what comes first in a line could begin a heading or a list.
fn paragraph_start(escaped: &str) -> String {
    match escaped.chars().next() {
        Some('#' | '-' | '+' | '=') => format!("\\{escaped}"),
        _ => escaped.to_owned(),
    }
}

/// A command, letter by letter, where bars mean nothing.
fn code(command: &str) -> String {
    if command.trim().is_empty() {
        return String::new();
    }
    let longest = command.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if command.starts_with('`') || command.ends_with('`') { " " } else { "" };
    let command = command.replace(['\n', '\r'], " ");
    format!("{fence}{space}{command}{space}{fence}")
}

/// As [`code`] in a row of a table, which ends a cell at a bar even within code.
fn cell_code(command: &str) -> String {
    code(command).replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_words() {
        assert_eq!(text("</script><b>&\"'"), "\\</script\\>\\<b\\>&\"'");
        assert_eq!(text("squashfuse_ll _a_ a|b\nc&amp; *x*"), "squashfuse_ll \\_a\\_ a\\|b c\\&amp; \\*x\\*");
        assert_eq!(paragraph_start("# x"), "\\# x");
    }

    #[test]
    fn commands_keep_their_letters() {
        assert_eq!(code("tar cf - . | cat"), "`tar cf - . | cat`");
        assert_eq!(cell_code("tar cf - . | cat"), "`tar cf - . \\| cat`");
        assert_eq!(code("echo `date` ``"), "``` echo `date` `` ```");
        assert_eq!(code(" "), "");
    }
}
