//! `packfs tar`: an image as a tar archive.

use crate::args::{ImageInput, patterns, writing};
use crate::out::Output;
use crate::out::report;
use crate::out::{Outcome, text};
use packfs::Error;
use packfs::sink::{TarOptions, TarReport};
use packfs_terminal::work::Work;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write an image as a tar archive, to standard output or a file
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    #[command(flatten)]
    input: ImageInput,

    /// Paths to write, with everything below them
    ///
    /// * ? [a-z] match within a name, ** matches any number of directories.
    ///
    /// A single dash is standard output, as with --output.
    #[arg(value_name = "PATHS")]
    paths: Vec<OsString>,

    /// Write to FILE; - is standard output
    ///
    /// FILE gets its name when it is complete.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Omit the entry of the root directory (./)
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
            let error = Error::usage("cannot write a tar archive to a terminal");
            return Err(error.hint("use -o FILE, or a pipe"));
        }
        // A path of this name is ./-.
        let paths: Vec<OsString> = self.paths.into_iter().filter(|path| path != "-").collect();
        let options = TarOptions { paths: patterns(&paths)?, without_root: self.no_root };
        let output = Output::open(output)?;
        let opened = self.input.open_reaching(self.work.jobs(), |sandbox| writing(sandbox, &output))?;
        self.work.shown(false, |bars| {
            let report = output.write(|out| opened.write_tar_file(out, &options, bars))?;
            bars.finish();
            warn_of_sockets(&report);
            Ok(ExitCode::SUCCESS)
        })
    }
}

fn warn_of_sockets(report: &TarReport) {
    if let Some(example) = &report.socket_example {
        let sockets = text::counted(report.sockets, "socket");
        report::warning(&format!("skipped {sockets}, such as {example:?}: a tar archive cannot hold them"));
    }
}
