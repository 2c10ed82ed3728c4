//! Messages for people: errors with hints, warnings, and standard output, which may be closed at
//! any time.
//!
//! Names and texts of an input are escaped where they become part of a message; here the whole of a
//! message is looked through once more, so that none can act on a terminal.

use owo_colors::OwoColorize;
use packfs::{Error, Progress, Result, ResultExt, printable};
use std::fmt;
use std::fs::File;
use std::io::{BufWriter, ErrorKind as IoErrorKind, Stdout, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;

/// Exit code of a program whose standard output was closed (128 + SIGPIPE).
const CLOSED_OUTPUT: u8 = 141;

/// Largest pipe that Linux allows unprivileged users (`/proc/sys/fs/pipe-max-size`).
const PIPE_LEN: usize = 1 << 20;

/// Returns the width of a terminal, in columns; none if `out` is no terminal.
pub fn columns(out: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(out).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Prints `error: ...` and `hint: ...` lines; returns the exit code that goes with them.
pub fn failure(error: &Error) -> ExitCode {
    if error.io_source().is_some_and(|source| source.kind() == IoErrorKind::BrokenPipe) {
        return ExitCode::from(CLOSED_OUTPUT);
    }
    anstream::eprintln!("{} {}", "error:".red().bold(), printable(&error.to_string()));
    for hint in error.hints() {
        anstream::eprintln!("{} {}", "hint:".cyan().bold(), printable(hint));
    }
    ExitCode::from(error.kind().exit_code())
}

/// Prints that a signal stopped the work.
pub fn stopped() {
    anstream::eprintln!("{} stopped", "error:".red().bold());
}

/// Prints `warning: ...`.
pub fn warning(message: &str) {
    anstream::eprintln!("{} {}", "warning:".yellow().bold(), printable(message));
}

/// Prints warnings as they come, and shows nothing else.
pub struct PrintWarnings;

impl Progress for PrintWarnings {
    fn warn(&self, message: &str) {
        warning(message);
    }
}

/// Prints the warnings about an image that was opened.
pub fn opened(opened: &packfs::Opened) {
    opened.warnings().iter().for_each(|text| warning(text));
}

/// Standard output: buffered, colours only where they are wanted, errors as ours.
pub struct Out {
    out: BufWriter<Stdout>,
    colours: bool,
}

impl Out {
    /// Standard output.
    pub fn stdout() -> Self {
        let out = std::io::stdout();
        let colours = anstream::AutoStream::choice(&out) != anstream::ColorChoice::Never;
        Out { out: BufWriter::with_capacity(64 << 10, out), colours }
    }

    /// Prints a line of text. It may hold colors, so the caller escapes names from the input.
    pub fn line(&mut self, line: impl fmt::Display) -> Result<()> {
        if self.colours {
            return writeln!(self.out, "{line}").or_io(cannot_write);
        }
        writeln!(self.out, "{}", anstream::adapter::strip_str(&line.to_string())).or_io(cannot_write)
    }

    /// The writer, for those who write bytes: nothing is taken out of them.
    pub fn writer(&mut self) -> &mut dyn Write {
        &mut self.out
    }

    /// Writes out what is buffered. Without it an error would go unnoticed.
    pub fn finish(mut self) -> Result<()> {
        self.out.flush().or_io(cannot_write)
    }
}

/// Returns standard output for bytes, without line buffer and color filter. A pipe is enlarged to
/// the limit for unprivileged users, so that both ends wait less for each other.
pub fn stdout_bytes() -> Result<File> {
    let out = std::io::stdout().as_fd().try_clone_to_owned().or_io(cannot_write)?;
    // What is no pipe says so, and nothing is lost by it.
    let _ = rustix::pipe::fcntl_setpipe_size(&out, PIPE_LEN);
    Ok(File::from(out))
}

/// Returns the message for failures of standard output.
pub fn cannot_write() -> &'static str {
    "cannot write to standard output"
}
