//! `packfs protect`: recovery data for an image, in a file beside it.

use crate::out::json;
use crate::out::report::Out;
use crate::out::{Outcome, text};
use owo_colors::OwoColorize;
use packfs::FileImage;
use packfs::integrity::{self, RecoveryParams, Replacement};
use packfs::{Image, Progress, Result};
use packfs_terminal::work::Answering;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write recovery data, from which repair restores lost blocks
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Image to protect
    #[arg(value_name = "IMAGE")]
    image: PathBuf,

    /// Protect against the loss of N percent of the blocks
    ///
    /// The recovery data takes as much space.
    #[arg(short = 'p', long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=100))]
    percent: u32,

    /// Write recovery data to FILE (default: IMAGE.rec)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    answering: Answering,
}

const EXAMPLES: &str = "\
Examples:
  packfs protect root.sqfs                      root.sqfs.rec, 5 % of the blocks
  packfs protect root.sqfs --percent 20 -o /backup/root.rec
  packfs repair root.sqfs

Recovery data repairs accidents. Against manipulation use packfs sign.";

impl Opts {
    /// Writes recovery data.
    pub fn run(self) -> Outcome {
        let output = self.output.clone().unwrap_or_else(|| integrity::recovery_path(&self.image));
        self.answering.shown(|bars| {
            let params = self.protect(&output, bars)?;
            bars.finish();
            self.tell(&output, &params)?;
            Ok(ExitCode::SUCCESS)
        })
    }

    fn protect(&self, output: &Path, bars: &dyn Progress) -> Result<RecoveryParams> {
        let image = FileImage::open(&self.image)?;
        let params = RecoveryParams::new(image.len(), self.percent)?;
        let out = Replacement::create(output)?;
        integrity::protect(&image, params, out.file(), self.answering.work.jobs(), bars)?;
        image.check_unchanged()?;
        out.finish()?;
        Ok(params)
    }

    fn tell(&self, output: &Path, params: &RecoveryParams) -> Result<()> {
        if self.answering.json {
            return json::print(&Document {
                image: json::Bytes::from(&self.image),
                recovery_file: json::Bytes::from(output),
                recovery_size: params.file_len(),
                block_size: params.block_len,
                blocks: params.data_count,
                recovery_blocks: params.recovery_count,
            });
        }
        if self.answering.work.quiet {
            return Ok(());
        }
        let mut out = Out::stdout();
        out.line(format_args!(
            "{}: {output:?} ({}) repairs up to {} of {} of {}",
            "protected".green().bold(),
            text::size(params.file_len()),
            text::count(params.recovery_count.into()),
            text::counted(params.data_count.into(), "block"),
            text::size(params.block_len.into())
        ))?;
        out.finish()
    }
}

/// Document of `protect --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    #[serde(flatten)]
    image: json::Bytes<'a, json::Image>,
    #[serde(flatten)]
    recovery_file: json::Bytes<'a, RecoveryFile>,
    /// Length of the recovery file.
    recovery_size: u64,
    /// Length of a block.
    block_size: u32,
    /// Blocks of the image.
    blocks: u32,
    /// Recovery blocks: as many lost blocks can be repaired.
    recovery_blocks: u32,
}

json::byte_key!(RecoveryFile, "recovery_file", "Path of the recovery file.");
