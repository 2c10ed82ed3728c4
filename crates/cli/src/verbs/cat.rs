//! `packfs cat`: the contents of files.

use crate::args::ImageInput;
use crate::out::Outcome;
use crate::out::report;
use packfs::ImagePath;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

/// Print the contents of files
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    #[command(flatten)]
    input: ImageInput,

    /// Files to print, as paths from the root of the image
    ///
    /// Symbolic links are followed inside the image.
    #[arg(value_name = "PATHS", required = true)]
    paths: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  packfs cat root.sqfs etc/os-release
  packfs cat root.sqfs usr/bin/env | file -
  packfs cat root.sqfs var/log/a.log var/log/b.log > both.log";

impl Opts {
    /// Prints.
    pub fn run(self) -> Outcome {
        let opened = self.input.open(0)?;
        let paths: Vec<_> =
            self.paths.iter().map(|p| ImagePath::parse(p.as_bytes())).collect::<Result<_, _>>()?;
        let mut out = report::stdout_bytes()?;
        for path in &paths {
            opened.copy_file(path, &mut out)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
