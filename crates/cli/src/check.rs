//! `packfs check`: whether an image keeps the rules of its format, and can be decoded.

use crate::json::{self, Object, Value, json};
use crate::report::{self, Out};
use crate::shared::{ImageInput, Work};
use crate::{Outcome, text};
use owo_colors::OwoColorize;
use packfs::{ErrorKind, Finding, Opened, Progress, Result, Severity, Stage};
use std::process::ExitCode;

/// Check an image: every structure, and with --data that everything can be decoded
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    #[command(flatten)]
    input: ImageInput,

    /// Decode all file data, too
    #[arg(long)]
    data: bool,

    /// Print a JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    work: Work,
}

const EXAMPLES: &str = "\
Examples:
  packfs check root.sqfs
  packfs check --data root.sqfs && echo sound
  packfs check --json root.sqfs | jq '.findings[] | .fault'

Exit code 3 if the image breaks the rules of its format; warnings and notes alone are no failure.";

/// Printed at most; an image that is damaged all over has nothing more to say.
const FINDINGS_MAX: usize = 1000;
