//! Output of `packfs check --repair-hints`: files that survive in a damaged image, and the state of
//! its recovery data.

use crate::out::report::Out;
use crate::out::text;
use owo_colors::OwoColorize;
use packfs::check::ContentReport;
use packfs::integrity::{self, RecoveryIndex, RecoveryState};
use packfs::{Progress, Result, escaped};
use serde::Serialize;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// State of the recovery data beside an image; `None` without any.
pub struct Hints(Option<Result<(RecoveryIndex, RecoveryState)>>);

impl Hints {
    /// Looks for recovery data beside an image, and compares it with them.
    pub fn look(image: &Path, jobs: usize, bars: &dyn Progress) -> Self {
        Hints(integrity::survey_beside(image, jobs, bars))
    }

    /// Prints a line on what can be unpacked, if something is damaged, and one on what can be
    /// repaired.
    pub fn print(
        &self,
        out: &mut Out,
        image: &Path,
        is_sound: bool,
        content: Option<ContentReport>,
    ) -> Result<()> {
        let hint = "hint:".cyan().bold().to_string();
        let name = escaped(image.as_os_str().as_bytes()).to_string();
        if !is_sound {
            match content {
                Some(report) => {
                    let readable = text::count(report.files.saturating_sub(report.damaged_files));
                    let files = text::counted(report.files, "file");
                    out.line(format_args!(
                        "{hint} {readable} of {files} can be read; packfs unpack {name} DIR writes them"
                    ))?;
                }
                None => out.line(format_args!(
                    "{hint} names and metadata cannot be read, so nothing can be unpacked"
                ))?,
            }
        }
        let told = match &self.0 {
            None if is_sound => return Ok(()),
            None => "no recovery data exists for it; packfs protect creates it while an image is intact"
                .to_owned(),
            Some(Err(error)) => format!("its recovery data cannot be used: {error}"),
            Some(Ok((_, state))) if state.is_intact() && is_sound => return Ok(()),
            Some(Ok((_, state))) if state.is_intact() => {
                "its damage is older than its recovery data, which cannot repair it".to_owned()
            }
            Some(Ok((index, state))) => {
                let lost = text::counted(state.lost.len() as u64, "block");
                let all = text::count(index.params.data_count.into());
                let good = text::count(state.good_recovery.len() as u64);
                if state.is_repairable() {
                    format!(
                        "packfs repair {name} repairs it: {lost} of {all} are lost, up to {good} can be repaired"
                    )
                } else {
                    format!(
                        "packfs repair cannot repair it: {lost} of {all} are lost, only {good} can be repaired"
                    )
                }
            }
        };
        out.line(format_args!("{hint} {told}"))
    }

    /// Returns the same for JSON.
    pub fn recovery(&self) -> Option<Recovery> {
        Some(match self.0.as_ref()? {
            Err(error) => Recovery { error: Some(error.to_string()), state: None },
            Ok((index, state)) => Recovery {
                error: None,
                state: Some(State {
                    intact: state.is_intact(),
                    repairable: state.is_repairable(),
                    blocks: index.params.data_count,
                    lost_blocks: state.lost.len(),
                    good_recovery_blocks: state.good_recovery.len(),
                }),
            },
        })
    }
}

/// State of the recovery data beside an image.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Recovery {
    /// Error that makes them useless; then it is the only key.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    state: Option<State>,
}

/// Comparison of an image with its recovery data.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct State {
    /// True if nothing is lost.
    intact: bool,
    /// True if everything lost can be repaired.
    repairable: bool,
    /// Blocks of the image.
    blocks: u32,
    /// Blocks of the image that are damaged.
    lost_blocks: usize,
    /// Recovery blocks that are intact.
    good_recovery_blocks: usize,
}
