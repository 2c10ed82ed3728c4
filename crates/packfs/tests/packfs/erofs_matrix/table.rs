//! Tables of the matrix: images by row, and cells that are not `ok` by row, writer, and reader.

use super::exceptions;
use super::readers::Outcome;
use super::rows::{self, Row};
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

    /// Returns the rows with the lengths of their images.
    pub fn images(&self) -> String {
        let mut text =
            "| row | mkfs.erofs | bytes | packfs pack | bytes |\n|---|---|---:|---|---:|\n".to_owned();
        for cells in self.lines.chunk_by(|a, b| a.row == b.row) {
            let Some(row) = cells.first().and_then(|first| rows::all().find(|row| row.name == first.row))
            else {
                continue;
            };
            let of = |writer| {
                let len = self.lens.get(&(writer, row.name)).copied().unwrap_or(0);
                let options = row.options(writer);
                if options.is_empty() { format!("| {len}") } else { format!("`{options}` | {len}") }
            };
            let _ = writeln!(text, "| {} | {} | {} |", row.name, of("mkfs.erofs"), of("packfs"));
        }
        text
    }

    /// Returns the cells of rows that some reader gets wrong, and the reasons.
    ///
    /// Rows with equal cells are joined.
    pub fn exceptions(&self) -> String {
        let mut readers: Vec<&str> = Vec::new();
        for line in &self.lines {
            if !readers.contains(&line.reader) {
                readers.push(line.reader);
            }
        }
        let mut notes: Vec<String> = Vec::new();
        let mut found: Vec<(String, Vec<&str>)> = Vec::new();
        for cells in self.lines.chunk_by(|a, b| (a.writer, a.row) == (b.writer, b.row)) {
            if cells.iter().all(|line| matches!(line.outcome, Outcome::Agree)) {
                continue;
            }
            let words: Vec<String> = cells.iter().map(|line| word(line, &mut notes)).collect();
            let row = format!("{} | {}", cells[0].writer, words.join(" | "));
            match found.iter_mut().find(|(known, _)| *known == row) {
                Some((_, names)) => names.push(cells[0].row),
                None => found.push((row, vec![cells[0].row])),
            }
        }
        let mut text = format!("| exceptions | written by | {} |\n", readers.join(" | "));
        text += &format!("|---|---|{}\n", "---|".repeat(readers.len()));
        for (row, names) in found {
            let _ = writeln!(text, "| {} | {row} |", names.join("; "));
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
