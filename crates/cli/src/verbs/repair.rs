//! `packfs repair`: repairs an image by its recovery data.

use crate::args::SandboxArg;
use crate::out::json;
use crate::out::report::{self, Out};
use crate::out::{Outcome, text};
use owo_colors::OwoColorize;
use packfs::FileImage;
use packfs::integrity::{self, RecoveryIndex, RecoveryState, Replacement};
use packfs::{Error, ErrorKind, Image, Progress, Result, ResultExt};
use packfs_terminal::work::Answering;
use serde::Serialize;
use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::process::ExitCode;

/// Repair an image from its recovery data
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Image to repair
    #[arg(value_name = "IMAGE")]
    image: PathBuf,

    /// Read recovery data from FILE (default: IMAGE.rec)
    #[arg(short, long, value_name = "FILE")]
    recovery: Option<PathBuf>,

    /// Write the repaired image to FILE
    ///
    /// IMAGE stays unchanged. Without --output a repaired copy replaces IMAGE.
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["in_place", "dry_run"])]
    output: Option<PathBuf>,

    /// Write lost blocks into IMAGE itself
    ///
    /// Needs no further space. An interrupted repair can be repeated.
    #[arg(long, conflicts_with = "dry_run")]
    in_place: bool,

    /// List lost blocks without repairing
    ///
    /// Exit code 3 if any block is lost.
    #[arg(short = 'n', long)]
    dry_run: bool,

    #[command(flatten)]
    sandbox: SandboxArg,

    #[command(flatten)]
    answering: Answering,
}

const EXAMPLES: &str = "\
Examples:
  packfs repair root.sqfs                       uses root.sqfs.rec
  packfs repair --dry-run root.sqfs && echo intact
  packfs repair /dev/sdb1 --recovery root.rec --in-place
  packfs repair root.sqfs -o repaired.sqfs

Exit code 3 if more is lost than can be repaired; nothing is written then.";

/// Destination of repaired blocks. It is opened first, because a sandbox closes the way to it; the
/// error of a failed open is reported when the destination is needed.
enum Target {
    /// Nowhere: it is only looked.
    None,
    /// The image itself.
    Image(Result<File>),
    /// A copy, which gets the name of the image or of another file.
    Copy(Result<Replacement>),
}

impl Opts {
    /// Mends.
    pub fn run(self) -> Outcome {
        let target = self.target();
        self.enter_sandbox(&target)?;
        self.answering.shown(|bars| {
            let (index, state) = self.repair(target, bars)?;
            bars.finish();
            self.tell(&index, &state)?;
            let is_damaged = self.dry_run && !state.is_intact();
            Ok(if is_damaged { ExitCode::from(ErrorKind::Corrupt.exit_code()) } else { ExitCode::SUCCESS })
        })
    }

    fn recovery_path(&self) -> PathBuf {
        self.recovery.clone().unwrap_or_else(|| integrity::recovery_path(&self.image))
    }

    fn target(&self) -> Target {
        if self.dry_run {
            return Target::None;
        }
        if self.in_place {
            let opened = File::options().read(true).write(true).open(&self.image);
            return Target::Image(opened.or_io(|| format!("cannot write to {:?}", self.image)));
        }
        let target = self.output.as_deref().unwrap_or(&self.image);
        if std::fs::metadata(target).is_ok_and(|found| found.file_type().is_block_device()) {
            let error = Error::usage(format!("cannot replace {target:?}: it is a block device"));
            return Target::Copy(Err(
                error.hint("use --in-place to repair it, or -o FILE to write a repaired copy")
            ));
        }
        Target::Copy(Replacement::create(target))
    }

    /// Gives up all but the image, its recovery data, and the target, if that is asked for.
    fn enter_sandbox(&self, target: &Target) -> Result<()> {
        self.sandbox.enter(|sandbox| {
            let sandbox = sandbox.read(&self.image).read(self.recovery_path());
            match target {
                Target::Copy(Ok(copy)) => sandbox.name_in(copy.folder()),
                Target::Copy(Err(_)) | Target::Image(_) | Target::None => sandbox,
            }
        })
    }

    fn repair(&self, target: Target, bars: &dyn Progress) -> Result<(RecoveryIndex, RecoveryState)> {
        let image = FileImage::open(&self.image)?;
        let file = FileImage::open(&self.recovery_path())?;
        let index = RecoveryIndex::read(&file)?;
        let state = integrity::survey(&image, &file, &index, self.answering.work.jobs(), bars)?;
        let nothing_to_do = state.is_intact() && self.output.is_none();
        match target {
            Target::None => {}
            _ if nothing_to_do => {}
            Target::Image(out) => {
                let out = out?;
                integrity::repair(&image, &file, &index, &state, &out, self.answering.work.jobs(), bars)?;
                out.sync_all().or_io(|| format!("cannot write to {:?}", self.image))?;
            }
            Target::Copy(copy) => {
                let copy = copy?;
                integrity::repair_copy(
                    &image,
                    &file,
                    &index,
                    &state,
                    copy.file(),
                    self.answering.work.jobs(),
                    bars,
                )?;
                image.check_unchanged()?;
                self.name_copy(copy)?;
            }
        }
        Ok((index, state))
    }

    /// Gives the complete copy the permissions of what it replaces, and its name.
    fn name_copy(&self, copy: Replacement) -> Result<()> {
        let target = self.output.as_deref().unwrap_or(&self.image);
        if let Ok(found) = std::fs::metadata(target) {
            let permitted = copy.file().set_permissions(found.permissions());
            permitted.or_io(|| format!("cannot write to {target:?}"))?;
        }
        copy.finish()
    }

    fn tell(&self, index: &RecoveryIndex, state: &RecoveryState) -> Result<()> {
        let params = &index.params;
        if self.answering.json {
            return json::print(&Document {
                image: json::Bytes::from(&self.image),
                intact: state.is_intact(),
                repairable: state.is_repairable(),
                repaired: !self.dry_run && !state.is_intact(),
                block_size: params.block_len,
                blocks: params.data_count,
                lost_blocks: &state.lost,
                recovery_blocks: params.recovery_count,
                good_recovery_blocks: state.good_recovery.len(),
                trailing_bytes: state.beyond,
            });
        }
        let mut out = Out::stdout();
        let lost = text::counted(state.lost.len() as u64, "block");
        let of = format!(
            "of {} of {}",
            text::count(params.data_count.into()),
            text::size(params.block_len.into())
        );
        let good = text::count(state.good_recovery.len() as u64);
        match (state.is_intact(), self.dry_run, state.is_repairable()) {
            (true, ..) if self.answering.work.quiet => {}
            (true, ..) => out.line(format_args!("{}: nothing is lost", "intact".green().bold()))?,
            (false, true, true) => {
                out.line(format_args!("{}: {lost} {of}; up to {good} can be repaired", "lost".red().bold()))?;
            }
            (false, true, false) => {
                out.line(format_args!("{}: {lost} {of}; only {good} can be repaired", "lost".red().bold()))?;
            }
            (false, false, _) if self.answering.work.quiet => {}
            (false, false, _) => out.line(format_args!("{}: {lost} {of}", "repaired".green().bold()))?,
        }
        let lost_recovery = params.recovery_count as usize - state.good_recovery.len();
        if lost_recovery > 0 || index.damaged_pages.0 > 0 {
            report::warning(
                "the recovery data is damaged, too; packfs protect creates it anew from the repaired image",
            );
        }
        if state.beyond > 0 && !self.answering.work.quiet {
            let beyond = text::size(state.beyond);
            out.line(format_args!("{beyond} after the protected bytes are unchanged"))?;
        }
        out.finish()
    }
}

/// Document of `repair --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    #[serde(flatten)]
    image: json::Bytes<'a, json::Image>,
    /// True if nothing was lost.
    intact: bool,
    /// True if everything lost can be repaired.
    repairable: bool,
    /// True if it was repaired.
    repaired: bool,
    /// Length of a block.
    block_size: u32,
    /// Blocks of the image.
    blocks: u32,
    /// Numbers of the lost blocks.
    lost_blocks: &'a [u32],
    /// Recovery blocks.
    recovery_blocks: u32,
    /// Recovery blocks that are intact.
    good_recovery_blocks: usize,
    /// Bytes after the protected ones.
    trailing_bytes: u64,
}
