//! `packfs check`: whether an image keeps the rules of its format, and can be decoded.

mod hints;

use crate::args::ImageInput;
use crate::out::json;
use crate::out::report::Out;
use crate::out::{Outcome, text};
use hints::Hints;
use owo_colors::OwoColorize;
use packfs::check::{CheckReport, ContentReport, Findings};
use packfs::integrity;
use packfs::{Error, ErrorKind, Finding, OpenOptions, Result, Severity, printable};
use packfs_terminal::work::Answering;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

/// Check the structures of an image; with --data all data
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    #[command(flatten)]
    input: ImageInput,

    /// Also decode all file data
    #[arg(long)]
    data: bool,

    /// Also list damaged files and test recovery data
    ///
    /// Decodes all file data, counts the undamaged files, and reports if the recovery data beside
    /// the image can repair it.
    #[arg(long)]
    repair_hints: bool,

    #[command(flatten)]
    answering: Answering,
}

const EXAMPLES: &str = "\
Examples:
  packfs check root.sqfs
  packfs check --data root.sqfs && echo sound
  packfs check --repair-hints root.sqfs    damaged files, and recovery data
  packfs check --json root.sqfs | jq '.findings[] | .fault'

Exit code 3 if the image breaks the rules of its format; warnings and notes
alone are no failure.";

impl Opts {
    /// Checks.
    pub fn run(self) -> Outcome {
        // What checksums say is among the findings.
        let options = self.input.options(self.answering.work.jobs())?.ignore_checksum();
        let mut found = Findings::default();
        if self.repair_hints && packfs::is_reference(&self.input.image) {
            return Err(Error::usage(
                "cannot look for recovery data beside a URL; --repair-hints needs a file",
            ));
        }
        self.input.enter_sandbox(|sandbox| {
            if self.repair_hints {
                sandbox.read(integrity::recovery_path(&self.input.image))
            } else {
                sandbox
            }
        })?;
        let hash_tree = appended_tree(&self.input.image, &options)?;
        let options = match &hash_tree {
            // Under a root hash the image ends where its tree begins.
            Some((at, _)) if !options.is_checked() => {
                let len = at.saturating_sub(options.image_offset());
                options.len(len)
            }
            _ => options,
        };
        let opened = self.input.open_with(&options)?;
        if let Some((_, finding)) = hash_tree {
            found.add(finding);
        }
        self.answering.shown(|bars| {
            let outcome = opened.check(self.data || self.repair_hints, bars, &mut found);
            let hints =
                self.repair_hints.then(|| Hints::look(&self.input.image, self.answering.work.jobs(), bars));
            bars.finish();
            let content = outcome?;
            if self.answering.json {
                json::print(&Document::new(&found, content, hints.as_ref()))?
            } else {
                self.print(&found, content, hints.as_ref())?
            }
            Ok(if found.errors == 0 {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(ErrorKind::Corrupt.exit_code())
            })
        })
    }

    fn print(&self, found: &Findings, content: Option<ContentReport>, hints: Option<&Hints>) -> Result<()> {
        let mut out = Out::stdout();
        for finding in &found.findings {
            let severity = match finding.severity {
                Severity::Error => "error".red().to_string(),
                Severity::Warning => "warning".yellow().to_string(),
                Severity::Note => "note".cyan().to_string(),
            };
            let (place, fault) = (printable(&finding.place), printable(&finding.fault));
            out.line(format_args!("{severity}: {place}: {fault}"))?;
        }
        if found.left_out > 0 {
            out.line(format_args!("and {} more", text::count(found.left_out)))?;
        }
        if found.errors > 0 {
            out.line(format_args!("{}: {}", "not sound".red().bold(), text::counted(found.errors, "error")))?;
        } else if !self.answering.work.quiet {
            let what = match content {
                Some(report) => {
                    format!(
                        "structure, and data of {} ({})",
                        text::counted(report.files, "file"),
                        text::size(report.file_bytes)
                    )
                }
                None => "structure (file data was not decoded; --data does that)".into(),
            };
            let verdict = match found.unchecked {
                0 => "sound".green().bold().to_string(),
                _ => "no errors in what was checked".yellow().bold().to_string(),
            };
            out.line(format_args!("{verdict}: {what}"))?;
            if let Some(report) = content.filter(|report| report.unverifiable_bytes > 0) {
                let share = report.unverifiable_bytes as f64 * 100.0 / report.file_bytes.max(1) as f64;
                let stored = text::size(report.unverifiable_bytes);
                out.line(format_args!(
                    "{stored} of the data ({share:.1} %) cannot be verified: stored uncompressed, without a checksum"
                ))?;
            }
        }
        if let Some(hints) = hints {
            hints.print(&mut out, &self.input.image, found.errors == 0, content)?;
        }
        out.finish()
    }
}

/// A dm-verity hash tree at the end of the file is no part of the image: where it begins, and what
/// is said of it.
fn appended_tree(image: &Path, options: &OpenOptions) -> Result<Option<(u64, Finding)>> {
    let image = match options.bytes_at(image) {
        // Layers of an OCI image over each other have no bytes of their own.
        Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(None),
        image => image?,
    };
    let found = integrity::find_appended(&*image)?.filter(|(at, _)| *at > options.image_offset());
    Ok(found.map(|(at, params)| {
        let fault = format!(
            "a dm-verity hash tree of {} bytes, {}, which verity --verify checks",
            params.hash_len(),
            params.algorithm.name()
        );
        (at, Finding::new(Severity::Note, format!("{at:#x}"), fault))
    }))
}

/// Document of `check --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    #[serde(flatten)]
    report: CheckReport<'a>,
    #[serde(flatten)]
    repair: Option<Survivors<'a>>,
}

/// Additions of `--repair-hints`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Survivors<'a> {
    /// With `--repair-hints`: files that cannot be decoded, as findings name them.
    damaged_paths: &'a [String],
    /// With `--repair-hints`: state of the recovery data beside the image, null without any.
    #[cfg_attr(test, schemars(extend("nullable" = true)))]
    recovery: Option<hints::Recovery>,
}

impl<'a> Document<'a> {
    fn new(found: &'a Findings, content: Option<ContentReport>, hints: Option<&Hints>) -> Self {
        Document {
            report: found.report(content),
            repair: hints
                .map(|hints| Survivors { damaged_paths: &found.damaged, recovery: hints.recovery() }),
        }
    }
}
