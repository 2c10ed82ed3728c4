//! Running other programs. An error holds the command line and its output.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::{Failure, Result};

pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().map_err(|error| not_started(command, error))?;
    if status.success() { Ok(()) } else { Err(Failure::new(format!("{}: {status}", spelled(command)))) }
}

/// Runs a command without showing its output; an error holds the last lines.
pub fn run_quietly(command: &mut Command) -> Result<()> {
    capture(command).map(|_| ())
}

pub fn capture(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| not_started(command, error))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let said = stdout + &String::from_utf8_lossy(&output.stderr);
    Err(Failure::new(format!("{}: {}\n{}", spelled(command), output.status, last_lines(&said, 20))))
}

pub fn spelled(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(quoted).collect::<Vec<_>>().join(" ")
}

pub fn quoted(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+%@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Finds a program on `PATH`, and in the sbin folders, which are not on every user's `PATH`.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let administrator = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(administrator).map(|dir| dir.join(name)).find(|file| is_file(file))
}

/// Returns true if the effective user is root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file())
}

fn not_started(command: &Command, error: std::io::Error) -> Failure {
    Failure::new(format!("cannot run {}: {error}", spelled(command)))
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_words_that_a_shell_would_split() {
        assert_eq!(quoted(OsStr::new("a-b_c.d/e")), "a-b_c.d/e");
        assert_eq!(quoted(OsStr::new("it's")), r"'it'\''s'");
        assert_eq!(quoted(OsStr::new("")), "''");
    }

    #[test]
    fn an_error_holds_the_output_of_the_command() {
        let error = capture(Command::new("sh").args(["-c", "echo no; exit 3"])).unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.ends_with("\nno"), "{error}");
    }

    #[test]
    fn keeps_only_the_last_lines() {
        assert_eq!(last_lines("a\nb\nc", 2), "b\nc");
        assert_eq!(last_lines("a", 2), "a");
    }
}
