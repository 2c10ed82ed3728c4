//! `packfs tar`: an image as a tar archive.

use crate::report;
use crate::shared::{ImageInput, Work, patterns};
use crate::{Outcome, text};
use packfs::sink::{TarOptions, TarReport};
use packfs::{Error, Result, ResultExt};
use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write an image as a tar archive, to standard output or a file
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    #[command(flatten)]
    input: ImageInput,

    /// Only these paths and what is below them; * ? [a-z] stay within a name, ** spans any number of directories
    #[arg(value_name = "PATHS")]
    paths: Vec<OsString>,

    /// Write to this file, which gets its name once it is complete; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Leave out the entry of the root directory itself (./)
    #[arg(long)]
    no_root: bool,

    #[command(flatten)]
    work: Work,
}

const EXAMPLES: &str = "\
Examples:
  packfs tar root.sqfs | docker import - root
  packfs tar root.sqfs -o root.tar
  packfs tar root.sqfs usr/share/doc | zstd > doc.tar.zst
  packfs tar root.sqfs | packfs pack - same.sqfs      the same image again";

impl Opts {
    /// Writes.
    pub fn run(self) -> Outcome {
        let output = self.output.as_deref().filter(|path| *path != Path::new("-"));
        if output.is_none() && std::io::stdout().is_terminal() {
            let error = Error::usage("a tar archive is no text for a terminal");
            return Err(error.hint("write it to a file with -o FILE, or into a pipe"));
        }
        let options = TarOptions { paths: patterns(&self.paths)?, without_root: self.no_root };
        let output = Output::open(output)?;
        let opened = self.input.open_reaching(self.work.jobs(), |sandbox| match &output {
            Output::Named { beside, .. } => sandbox.name_in(*beside),
            Output::Open(_) => sandbox,
        })?;
        let bars = self.work.bars(false);
        let outcome = output.write(|out| opened.write_tar_file(out, &options, &bars));
        bars.finish();
        let outcome = outcome.map(|report| {
            warn_of_sockets(&report);
            ExitCode::SUCCESS
        });
        report::or_stopped(outcome, &bars)
    }
}

fn warn_of_sockets(report: &TarReport) {
    if let Some(example) = &report.socket_example {
        let sockets = text::counted(report.sockets, "socket");
        report::warning(&format!("left out {sockets}, such as {example:?}: a tar archive cannot hold them"));
    }
}

/// Where the archive goes; open before the image is looked at.
enum Output<'a> {
    /// Standard output, or what is no regular file (a fifo, a device), which is written in place.
    Open(File),
    /// Written beside its name, which it gets once it is complete: there is never half an archive under it.
    Named { path: &'a Path, beside: &'a Path, temporary: tempfile::NamedTempFile },
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write to {path:?}")
}

impl<'a> Output<'a> {
    /// `None` is standard output.
    fn open(path: Option<&'a Path>) -> Result<Self> {
        let Some(path) = path else { return report::stdout_bytes().map(Output::Open) };
        let cannot = || cannot_write(path);
        if std::fs::metadata(path).is_ok_and(|existing| !existing.is_file()) {
            return File::options().write(true).open(path).or_io(cannot).map(Output::Open);
        }
        let beside = match path.parent() {
            Some(dir) if !dir.as_os_str().is_empty() => dir,
            _ => Path::new("."),
        };
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        let temporary = tempfile::Builder::new().permissions(mode).tempfile_in(beside).or_io(cannot)?;
        Ok(Output::Named { path, beside, temporary })
    }

    fn write(self, write: impl FnOnce(&mut File) -> Result<TarReport>) -> Result<TarReport> {
        match self {
            Output::Open(mut file) => write(&mut file),
            Output::Named { path, mut temporary, .. } => {
                let report = write(temporary.as_file_mut())?;
                temporary.as_file_mut().flush().or_io(|| cannot_write(path))?;
                temporary.persist(path).map_err(|error| error.error).or_io(|| cannot_write(path))?;
                Ok(report)
            }
        }
    }
}
