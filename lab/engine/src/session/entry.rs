//! Lines of a journal.

use super::plan::Plan;
use crate::results::{DeviceFacts, Machine, Missing, Program, Run, Subject};
use serde::{Deserialize, Serialize};

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Entry {
    /// The first one.
    Plan(Box<Plan>),
    /// The machine; again each time the session is taken up.
    Machine(Machine),
    /// A program took part.
    Program(Program),
    /// A device is used.
    Device(DeviceFacts),
    /// A subject was made; a later line about it holds.
    Subject(Subject),
    /// A run was measured.
    Run { cell: usize, round: u32, command: String, run: Run },
    /// An untimed cell was counted; its subject holds the result.
    Counted { cell: usize },
    /// Cells cannot be measured.
    Missing { cells: Vec<usize>, missing: Missing },
}
