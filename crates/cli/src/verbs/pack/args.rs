//! Options of `pack` and `repack`, and their run.

use super::report::Summary;
use crate::args::{Choice, Texts};
use crate::out::{Outcome, report, text};
use packfs::{Error, OpenOptions, PackOptions, PackReport, Progress, Result};
use packfs_terminal::work::Work;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// Options of packing: those of the image, and those of its source.
#[derive(clap::Args)]
pub struct PackArgs<P: Choice, S: Choice> {
    #[command(flatten)]
    packing: Texts<P>,

    #[command(flatten)]
    source: Texts<S>,

    /// Add space per file class, times and advice to the summary
    #[arg(long, hide_short_help = true)]
    report: bool,

    /// Print the summary as a JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    work: Work,
}

impl<P: Choice, S: Choice> PackArgs<P, S> {
    /// Makes an image at `image` by what `pack` does with the options.
    pub fn run(
        self,
        image: &Path,
        pack: impl FnOnce(PackOptions, &dyn Progress) -> Result<PackReport>,
    ) -> Outcome {
        let is_to_stdout = image == Path::new("-");
        self.work.shown(self.json, |bars| {
            let start = Instant::now();
            if self.json && is_to_stdout {
                let fault = "cannot write both --json and the image to standard output";
                return Err(Error::usage(fault));
            }
            let options = self.options()?;
            let offset = options.offset;
            let report = pack(options, bars)?;
            bars.finish();
            let summary =
                Summary { report: &report, image, offset, took: start.elapsed(), details: self.report };
            if self.json {
                summary.print_json()?;
            } else if !self.work.quiet && !is_to_stdout {
                summary.print()?;
            }
            if !report.skipped.is_empty() {
                let count = text::count(report.skipped.len() as u64);
                report::warning(&format!(
                    "cannot read all files and directories: {count} skipped or stored empty"
                ));
            }
            // Not all that was asked for was done.
            Ok(if report.skipped.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        })
    }

    /// True if an option reads standard input.
    pub fn reads_stdin(&self) -> bool {
        self.packing.of_stdin().next().is_some()
    }

    fn options(&self) -> Result<PackOptions> {
        self.packing.check_stdin()?;
        let (source, jobs) = (OpenOptions::of_texts(self.source.iter())?, self.work.jobs());
        Ok(PackOptions { source, jobs, ..PackOptions::of_texts(self.packing.iter())? })
    }
}
