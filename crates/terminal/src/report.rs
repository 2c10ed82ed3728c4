//! Messages for users: errors with hints, warnings, and standard output, which may be closed at any
//! time.
//!
//! Untrusted names and texts are escaped when a message is composed; whole messages are escaped
//! once more here, so that none can act on a terminal.

use owo_colors::OwoColorize;
use packfs::{Error, Progress, Result, ResultExt, printable};
use std::fmt;
use std::fs::File;
use std::io::{BufWriter, ErrorKind as IoErrorKind, Stdout, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::OnceLock;

/// Exit code after standard output was closed (128 + SIGPIPE).
pub const CLOSED_OUTPUT: u8 = 141;

/// Largest pipe that Linux allows unprivileged users (`/proc/sys/fs/pipe-max-size`).
const PIPE_LEN: usize = 1 << 20;

/// Returns the width in columns if `out` is a terminal.
pub fn columns(out: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(out).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Returns true if the reader of the output is gone, which is not reported.
pub fn is_closed_output(error: &Error) -> bool {
    error.io_source().is_some_and(|source| source.kind() == IoErrorKind::BrokenPipe)
}

/// Returns true for an error of standard output, such as a full disk.
pub fn is_lost_output(error: &Error) -> bool {
    error.to_string().starts_with(cannot_write())
}

/// Prints `error: ...` and `hint: ...` lines; returns the exit code.
pub fn failure(error: &Error) -> ExitCode {
    if is_closed_output(error) {
        return ExitCode::from(CLOSED_OUTPUT);
    }
    aside(format_args!("{} {}\n", "error:".red().bold(), printable(&error.to_string())));
    hints(error);
    ExitCode::from(error.kind().exit_code())
}

fn hints(error: &Error) {
    error.hints().iter().for_each(|text| hint(text));
}

fn hint(text: &str) {
    aside(format_args!("{} {}\n", "hint:".cyan().bold(), printable(text)));
}

/// Prints an error with the tool's name before each line.
pub fn failure_of(name: &str, error: &Error) {
    note(format_args!("{name}: {error}"));
    error.hints().iter().for_each(|hint| note(format_args!("{name}: hint: {hint}")));
}

/// Reports that a signal stopped the work.
pub fn stopped() {
    aside(format_args!("{} stopped\n", "error:".red().bold()));
}

/// Prints `warning: ...`.
pub fn warning(message: &str) {
    aside(format_args!("{} {}\n", "warning:".yellow().bold(), printable(message)));
}

/// Prints an error after which the work continues, with its hints.
pub fn warning_of(error: &Error) {
    warning(&error.to_string());
    hints(error);
}

/// Prints a line on standard error.
pub fn note(line: impl fmt::Display) {
    aside(format_args!("{}\n", printable(&line.to_string())));
}

/// Prints text of the program on standard error. A failure cannot be reported.
pub fn aside(text: impl fmt::Display) {
    let _ = anstream::stderr().write_all(text.to_string().as_bytes());
}

/// Prints text of the program on standard output, unbuffered.
///
/// Errors: `Io`.
pub fn print(text: impl fmt::Display) -> Result<()> {
    let mut out = Out::stdout();
    write!(out.writer(), "{text}").or_io(cannot_write)?;
    out.finish()
}

/// Prints a line like [`print()`].
///
/// Errors: `Io`.
pub fn line(line: impl fmt::Display) -> Result<()> {
    print(format_args!("{line}\n"))
}

static NOT_PRINTED: OnceLock<Error> = OnceLock::new();

/// Prints a line like [`line()`] in work that cannot return an error; [`all_printed`] returns it.
pub fn line_on_the_way(text: impl fmt::Display) {
    if let Err(error) = line(text) {
        // The first one counts.
        let _ = NOT_PRINTED.set(error);
    }
}

/// Returns the first error of [`line_on_the_way`]; call at the end of the work.
pub fn all_printed() -> Result<()> {
    NOT_PRINTED.get().map_or(Ok(()), |error| Err(error.clone()))
}

/// Prints the requested help or version, or the error of a command line with a hint; returns the
/// exit code.
pub fn command_line(answer: &clap::Error, advice: Option<&str>) -> ExitCode {
    match answer.print().and_then(|()| std::io::stdout().flush()) {
        Err(error) if !answer.use_stderr() => return failure(&Error::io(cannot_write(), error)),
        _ if answer.use_stderr() => advice.into_iter().for_each(hint),
        _ => {}
    }
    ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2))
}

/// Progress that only prints warnings.
pub struct PrintWarnings;

impl Progress for PrintWarnings {
    fn warn(&self, message: &str) {
        warning(message);
    }
}

/// Prints the warnings about an opened image.
pub fn opened(opened: &packfs::Opened) {
    opened.warnings().iter().for_each(|text| warning(text));
}

/// Standard output: buffered, with colors only if wanted.
pub struct Out {
    out: BufWriter<Stdout>,
    colours: bool,
}

impl Out {
    /// Opens standard output.
    pub fn stdout() -> Self {
        let out = std::io::stdout();
        let colours = anstream::AutoStream::choice(&out) != anstream::ColorChoice::Never;
        Out { out: BufWriter::with_capacity(64 << 10, out), colours }
    }

    /// Prints a line of text, which may contain colors, so the caller escapes untrusted names.
    pub fn line(&mut self, line: impl fmt::Display) -> Result<()> {
        if self.colours {
            return writeln!(self.out, "{line}").or_io(cannot_write);
        }
        writeln!(self.out, "{}", anstream::adapter::strip_str(&line.to_string())).or_io(cannot_write)
    }

    /// Returns the writer for bytes, which are unfiltered.
    pub fn writer(&mut self) -> &mut dyn Write {
        &mut self.out
    }

    /// Flushes the buffer. Otherwise an error would be lost.
    pub fn finish(mut self) -> Result<()> {
        self.out.flush().or_io(cannot_write)
    }
}

/// Returns standard output for bytes, without line buffer and color filter. A pipe is enlarged to
/// the limit for unprivileged users, so that both ends wait less for each other.
pub fn stdout_bytes() -> Result<File> {
    let out = std::io::stdout().as_fd().try_clone_to_owned().or_io(cannot_write)?;
    // Fails harmlessly unless it is a pipe.
    let _ = rustix::pipe::fcntl_setpipe_size(&out, PIPE_LEN);
    Ok(File::from(out))
}

/// Returns the message for failures of standard output.
pub fn cannot_write() -> &'static str {
    "cannot write to standard output"
}
