//! The matrix as a table: a line for each writer's row, a column for each reader.

use crate::exceptions;
use crate::readers::Outcome;
use crate::rows::{self, Row};
use std::collections::HashMap;
use std::fmt::Write;

/// One cell.
#[derive(Clone, Debug)]
pub struct Line {
    pub writer: &'static str,
    pub row: &'static str,
    pub reader: &'static str,
    pub outcome: Outcome,
}

/// Cells, those of a row together.
#[derive(Default)]
pub struct Table {
    lines: Vec<Line>,
    lens: HashMap<(&'static str, &'static str), u64>,
}

impl Table {
    #[expect(clippy::print_stderr, reason = "the test harness captures it")]
    pub fn add(&mut self, line: Line) {
        eprintln!("{}, {}, {}: {}", line.writer, line.row, line.reader, line.outcome);
        self.lines.push(line);
    }

    /// Brings together what was found at the same time, in the order of the rows.
    pub fn of(tables: Vec<Self>, rows: &[&Row]) -> Self {
        let mut all = Self::default();
        for table in tables {
            all.lines.extend(table.lines);
            all.lens.extend(table.lens);
        }
        all.lines.sort_by_key(|line| rows.iter().position(|row| row.name == line.row));
        all
    }

    /// Notes how long the image of a writer's row is.
    pub fn note_len(&mut self, writer: &'static str, row: &'static str, len: u64) {
        self.lens.insert((writer, row), len);
    }

    pub fn lines(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter()
    }

    /// A Markdown table, and below it what is behind every cell that is not `ok`.
    pub fn markdown(&self) -> String {
        let mut readers: Vec<&str> = Vec::new();
        for line in &self.lines {
            if !readers.contains(&line.reader) {
                readers.push(line.reader);
            }
        }
        let mut text = format!("| row | made by | bytes | {} |\n", readers.join(" | "));
        text += &format!("|---|---|---:|{}\n", "---|".repeat(readers.len()));
        let mut notes: Vec<String> = Vec::new();
        for cells in self.lines.chunk_by(|a, b| (a.writer, a.row) == (b.writer, b.row)) {
            let Some(first) = cells.first() else { continue };
            let len = self.lens.get(&(first.writer, first.row)).copied().unwrap_or(0);
            let words: Vec<String> = cells.iter().map(|line| word(line, &mut notes)).collect();
            let row = rows::all().find(|row| row.name == first.row);
            let command = row.map_or_else(String::new, |row| row.command(first.writer));
            let _ = writeln!(text, "| {} | `{command}` | {len} | {} |", first.row, words.join(" | "));
        }
        text.push('\n');
        for (index, note) in notes.iter().enumerate() {
            let _ = writeln!(text, "{}. {note}", index + 1);
        }
        text
    }
}

/// A cell in a word, with the numbers of the notes that explain it.
fn word(line: &Line, notes: &mut Vec<String>) -> String {
    let word = match &line.outcome {
        Outcome::Agree => return "ok".into(),
        Outcome::Disagree(_) => "differs",
        Outcome::Cannot(_) => "fails",
    };
    let mut number = |note: String| {
        let index = notes.iter().position(|known| *known == note).unwrap_or_else(|| {
            notes.push(note);
            notes.len() - 1
        });
        (index + 1).to_string()
    };
    let numbers: Vec<String> = exceptions::reasons(line).into_iter().map(&mut number).collect();
    format!("{word} ({})", numbers.join(", "))
}
