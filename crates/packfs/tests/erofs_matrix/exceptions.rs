//! What is known to go wrong, and where. When one of these changes the tests fail, so that the table stays true.

use crate::readers::Outcome;
use crate::rows;
use crate::table::Line;

/// How a reader fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It finds something else than went in.
    Disagrees,
    /// It finds nothing.
    Cannot,
}

/// A writer's row that some readers get wrong.
pub struct Exception {
    pub writer: &'static str,
    pub row: &'static str,
    pub readers: &'static [&'static str],
    pub fault: Fault,
    /// What the differences, or the reader's words, contain.
    pub evidence: &'static str,
    /// Who is wrong, and why.
    pub why: &'static str,
}

pub const EXCEPTIONS: &[Exception] = &[];

/// What is known of a cell.
pub fn known(line: &Line) -> Option<&'static Exception> {
    EXCEPTIONS.iter().find(|exception| {
        exception.writer == line.writer
            && exception.row == line.row
            && exception.readers.contains(&line.reader)
    })
}

/// What about a cell is not as it should be, or as it is known to be.
pub fn surprise(line: &Line) -> Option<String> {
    let Line { writer, row, reader, outcome } = line;
    let cell = format!("{writer}, {row}, {reader}");
    let (fault, text) = match outcome {
        Outcome::Agree => {
            return known(line).map(|_| format!("{cell}: agrees, but is known not to; say so no more"));
        }
        Outcome::Disagree(text) => (Fault::Disagrees, text),
        Outcome::Cannot(text) => (Fault::Cannot, text),
    };
    match known(line) {
        None => Some(format!("{cell}: {fault:?}: {text}")),
        Some(known) if known.fault != fault || !text.contains(known.evidence) => {
            Some(format!("{cell}: {fault:?}: {text}; known was {:?} {:?}", known.fault, known.evidence))
        }
        Some(_) => None,
    }
}

/// Panics where an exception is about nothing.
pub fn all_have_a_cell() {
    for exception in EXCEPTIONS {
        assert!(rows::all().any(|row| row.name == exception.row), "{}", exception.row);
        assert!(["mkfs.erofs", "packfs"].contains(&exception.writer), "{}", exception.writer);
        let known = ["kernel", "erofsfuse", "fsck.erofs", "packfs"];
        assert!(exception.readers.iter().all(|reader| known.contains(reader)), "{:?}", exception.readers);
    }
}
