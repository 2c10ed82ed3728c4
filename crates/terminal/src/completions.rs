//! Completion scripts of shells.

use crate::Outcome;
use crate::report;
use std::process::ExitCode;

/// Prints the script for a shell. `name` is the name of the program.
///
/// Errors: `Io` if standard output cannot be written.
pub fn print(shell: clap_complete::Shell, mut command: clap::Command, name: &str) -> Outcome {
    // Generated in memory first: the generator panics when it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    report::print(String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
