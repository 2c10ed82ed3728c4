//! The report for the terminal: the tables of a session, or all that was measured if it has none,
//! and missing cells.

mod layout;

use packfs::printable;

use crate::report::context::{self, Line};
use crate::report::overview;
use crate::results::{Results, Table};
pub(crate) use layout::lines as table_lines;

/// Abilities of a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// Columns; none where lines may be as long as they like: in a file or a pipe.
    pub width: Option<usize>,
    /// True if lines may hold colours. A caller that takes colours out where none are wanted may
    /// say so always.
    pub colours: bool,
}

impl Terminal {
    /// Words in bold.
    fn bold(self, words: &str) -> String {
        self.painted("1", words)
    }

    /// Words that step back: quoted figures, methods.
    fn dim(self, words: &str) -> String {
        self.painted("2", words)
    }

    /// Words that ask for attention: what is missing.
    fn yellow(self, words: &str) -> String {
        self.painted("33", words)
    }

    fn painted(self, style: &str, words: &str) -> String {
        if self.colours && !words.is_empty() {
            format!("\x1b[{style}m{words}\x1b[0m")
        } else {
            words.to_owned()
        }
    }
}

/// The whole session.
pub fn text(results: &Results, terminal: Terminal) -> String {
    let mut page = Page { text: String::new(), terminal };
    page.line(&terminal.bold(&printable(&results.title)));
    page.facts(&context::method(results));
    page.facts(&context::machine(results));
    if results.tables.is_empty() {
        overview::tables(results).iter().for_each(|table| page.table(table));
    } else {
        results.tables.iter().for_each(|table| page.table(table));
    }
    if !results.missing.is_empty() {
        page.line("");
        page.line(&terminal.bold("Missing"));
        for missing in &results.missing {
            page.wrapped("  ", &terminal.yellow(&printable(&missing.what)), &format!(": {}", missing.why));
        }
    }
    page.text
}

/// A single table.
#[cfg(test)]
pub(crate) fn table(table: &Table, terminal: Terminal) -> String {
    let mut page = Page { text: String::new(), terminal };
    page.table(table);
    page.text
}

struct Page {
    text: String,
    terminal: Terminal,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn facts(&mut self, lines: &[Line]) {
        let width = lines.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
        for (label, what) in lines {
            let label = self.terminal.dim(&format!("{label:width$}"));
            self.wrapped("  ", &label, &format!("  {what}"));
        }
    }

    fn table(&mut self, table: &Table) {
        self.line("");
        self.line(&self.terminal.bold(&printable(&table.title)));
        if !table.method.is_empty() {
            self.wrapped("", "", &table.method);
        }
        for line in layout::lines(table, self.terminal) {
            self.line(&line);
        }
    }

    /// A painted start and plain words, in lines that fit; those after the first are indented by
    /// four more.
    fn wrapped(&mut self, indent: &str, start: &str, words: &str) {
        let words = printable(words).into_owned();
        let width = self.terminal.width.unwrap_or(usize::MAX).max(20);
        let mut line = format!("{indent}{start}");
        let mut used = indent.len() + layout::shown_width(start);
        // Spaces in front, such as those between a label and its words, stay.
        let lead = words.len() - words.trim_start().len();
        line.push_str(&words[..lead]);
        used += lead;
        let mut is_first = true;
        for word in words[lead..].split(' ') {
            let len = word.chars().count();
            if !is_first && used + 1 + len > width {
                self.line(&line);
                line = format!("{indent}    {word}");
                used = indent.len() + 4 + len;
                continue;
            }
            if !is_first {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += len;
            is_first = false;
        }
        self.line(&line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_wrap_and_nothing_acts_on_the_terminal() {
        let mut page = Page { text: String::new(), terminal: Terminal { width: Some(24), colours: false } };
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
