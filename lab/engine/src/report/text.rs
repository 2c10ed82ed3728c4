//! The report as text: for a terminal, the figures and what is missing; as Markdown, with
//! everything. Both draw the same sections and tables, and differ in what lines and words look
//! like.

mod layout;

use packfs::printable;

use crate::report::grid::{Grid, GridCell, Heading};
use crate::report::markdown::{code, plain};
use crate::report::sections::{Part, sections};
use crate::results::{Results, Table};

/// Abilities of a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// Columns; none where lines may be as long as they like: in a file or a pipe.
    pub width: Option<usize>,
    /// True if lines may hold colours. A caller that takes colours out where none are wanted may
    /// say so always.
    pub colours: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Style {
    Terminal(Terminal),
    Markdown,
}

impl Style {
    fn bold(self, words: &str) -> String {
        self.painted("1", words)
    }

    /// Words that step back: quoted figures, notes.
    fn dim(self, words: &str) -> String {
        self.painted("2", words)
    }

    fn yellow(self, words: &str) -> String {
        self.painted("33", words)
    }

    fn painted(self, style: &str, words: &str) -> String {
        match self {
            Self::Terminal(Terminal { colours: true, .. }) if !words.is_empty() => {
                format!("\x1b[{style}m{words}\x1b[0m")
            }
            _ => words.to_owned(),
        }
    }

    /// Words none of which acts on a terminal, or on a reader of Markdown.
    fn safe(self, words: &str) -> String {
        match self {
            Self::Terminal(_) => printable(words).into_owned(),
            Self::Markdown => plain(words),
        }
    }

    fn width(self) -> usize {
        match self {
            Self::Terminal(terminal) => terminal.width.unwrap_or(usize::MAX).max(20),
            Self::Markdown => usize::MAX,
        }
    }
}

/// A session for people at a terminal.
pub fn text(results: &Results, terminal: Terminal) -> String {
    report(results, Style::Terminal(terminal))
}

/// A session as a document. Figures of others, quoted for comparison, are set in italics; what is
/// missing names its reason below its table.
pub fn markdown(results: &Results) -> String {
    report(results, Style::Markdown)
}

fn report(results: &Results, style: Style) -> String {
    let mut page = Text::new(style);
    page.heading(1, &results.title);
    for section in sections(results) {
        if section.is_brief || matches!(style, Style::Markdown) {
            page.heading(2, section.title);
            section.parts.iter().for_each(|part| page.part(part));
        }
    }
    page.text
}

pub(crate) struct Text {
    pub(crate) text: String,
    style: Style,
}

impl Text {
    pub(crate) fn new(style: Style) -> Self {
        Self { text: String::new(), style }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn heading(&mut self, level: usize, words: &str) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
        let words = self.style.safe(words);
        match self.style {
            Style::Terminal(_) => self.line(&self.style.bold(&words)),
            Style::Markdown => self.line(&format!("{} {words}", "#".repeat(level))),
        }
        if matches!(self.style, Style::Markdown) {
            self.text.push('\n');
        }
    }

    fn part(&mut self, part: &Part) {
        match part {
            Part::Facts(lines) => self.facts(lines),
            Part::Table(table) => self.table(table),
            Part::Reasons(reasons) => reasons.iter().for_each(|(what, why)| {
                let what = self.style.yellow(&self.style.safe(what));
                self.wrapped(
                    if matches!(self.style, Style::Markdown) { "- " } else { "  " },
                    &what,
                    &format!(": {why}"),
                );
            }),
            Part::Words(words) => self.words(words),
        }
    }

    fn facts(&mut self, lines: &[(&str, String)]) {
        let width = lines.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
        for (label, what) in lines {
            match self.style {
                Style::Markdown if *label == "Command" => self.line(&format!("- {label}: {}", code(what))),
                Style::Markdown => self.wrapped("- ", label, &format!(": {what}")),
                Style::Terminal(_) => {
                    self.wrapped("  ", &self.style.dim(&format!("{label:width$}")), &format!("  {what}"));
                }
            }
        }
    }

    pub(crate) fn words(&mut self, words: &str) {
        self.wrapped("", "", words);
    }

    pub(crate) fn table(&mut self, table: &Table) {
        if !table.title.is_empty() {
            self.heading(3, &table.title);
        }
        if !table.method.is_empty() {
            self.words(&table.method);
        }
        match self.style {
            Style::Terminal(terminal) => self.table_within(table, terminal.width),
            Style::Markdown => self.bars(&Grid::new(table, true)),
        }
    }

    /// A table on a terminal, without a heading.
    pub(crate) fn table_within(&mut self, table: &Table, width: Option<usize>) {
        layout::lines(table, self.style, width).iter().for_each(|line| self.line(line));
    }

    fn bars(&mut self, grid: &Grid) {
        if !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
        let row = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
        self.line(&row(grid.headings.iter().map(|heading| plain(&heading.title)).collect()));
        let line = |heading: &Heading| if heading.figures { "--:" } else { "---" }.to_owned();
        self.line(&row(grid.headings.iter().map(line).collect()));
        let cell = |(cell, heading): (&GridCell, &Heading)| match (heading.code, heading.quoted) {
            (true, _) => code(&cell.text),
            (_, true) if !cell.text.is_empty() => format!("*{}*", plain(&cell.text)),
            _ => plain(&cell.text),
        };
        for cells in &grid.rows {
            self.line(&row(cells.iter().zip(&grid.headings).map(cell).collect()));
        }
        for (index, why) in grid.notes.iter().enumerate() {
            self.text.push('\n');
            self.words(&format!("({}) {why}", index + 1));
        }
    }

    /// A painted start and plain words, in lines that fit; those after the first are indented by
    /// four more.
    fn wrapped(&mut self, indent: &str, start: &str, words: &str) {
        let words = self.style.safe(words);
        let mut line = format!("{indent}{start}");
        let mut used = indent.len() + layout::shown_width(start);
        for (index, word) in words.split(' ').enumerate() {
            let len = word.chars().count();
            if index > 0 && used + 1 + len > self.style.width() {
                self.line(&line);
                line = format!("{indent}    {word}");
                used = indent.len() + 4 + len;
                continue;
            }
            let blank = if index > 0 { " " } else { "" };
            line += &format!("{blank}{word}");
            used += blank.len() + len;
        }
        self.line(&line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_wrap_and_nothing_acts_on_the_terminal() {
        let mut page = Text::new(Style::Terminal(Terminal { width: Some(24), colours: false }));
        page.wrapped("  ", "what", ": one two three four five \x1b[31msix");
        assert_eq!(page.text, "  what: one two three\n      four five\n      \\x1b[31msix\n");
    }

    #[test]
    fn colours_are_there_only_if_wanted() {
        let results = Results { title: "title".into(), ..Results::default() };
        assert!(!text(&results, Terminal::default()).contains('\x1b'));
        assert!(text(&results, Terminal { width: None, colours: true }).starts_with("\x1b[1mtitle\x1b[0m\n"));
    }
}
