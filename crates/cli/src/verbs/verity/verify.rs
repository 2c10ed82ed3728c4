//! `packfs verity --verify`: whether an image, its hash tree and a root hash agree.

use super::{Opts, parse_hex};
use crate::out::json;
use crate::out::report::Out;
use crate::out::{Outcome, text};
use owo_colors::OwoColorize;
use packfs::FileImage;
use packfs::integrity::{self, VerityParams, VerityReport};
use packfs::{Error, ErrorKind, Image, Progress, Result, ResultExt, to_hex};
use serde::Serialize;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

/// More than any root hash has digits.
const ROOT_HASH_FILE_LEN_MAX: u64 = 1024;

/// Verifies.
pub fn run(opts: &Opts, path: &Path, bars: &crate::out::progress::Bars) -> Outcome {
    let expected = expected(opts)?;
    let image = FileImage::open(path)?;
    let hashes = match &opts.hash_file {
        Some(file) => FileImage::open(file)?,
        None => FileImage::open(path)?,
    };
    let (offset, params) = find(opts, &hashes)?;
    if let Some(expected) = &expected
        && expected.len() != params.algorithm.digest_len()
    {
        let name = params.algorithm.name();
        return Err(Error::usage(format!(
            "cannot compare root hashes: {} bytes given, but the tree uses {name}",
            expected.len()
        )));
    }
    let watched: &dyn Progress = bars;
    let found = integrity::verify_verity(&image, &params, &hashes, offset, opts.work.jobs(), watched)?;
    bars.finish();
    let is_sound = found.is_sound(expected.as_ref().unwrap_or(&found.stored_root_hash));
    if opts.json {
        print_json(&found, is_sound, expected.is_some())?;
    } else {
        print(opts, &params, &found, is_sound, expected.as_deref())?;
    }
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::from(ErrorKind::Corrupt.exit_code()) })
}

/// The root hash that is given.
fn expected(opts: &Opts) -> Result<Option<Vec<u8>>> {
    let typed = match (&opts.root_hash, &opts.root_hash_file) {
        (Some(typed), _) => typed.clone(),
        (None, Some(file)) => {
            let (mut typed, cannot) = (String::new(), || format!("cannot read {file:?}"));
            let opened = std::fs::File::open(file).or_io(cannot)?;
            opened.take(ROOT_HASH_FILE_LEN_MAX).read_to_string(&mut typed).or_io(cannot)?;
            typed
        }
        (None, None) => return Ok(None),
    };
    parse_hex("root hash", typed.trim()).map(Some)
}

/// The superblock: where it is said to be, at the beginning of a file of its own, or at the end of
/// the image.
fn find(opts: &Opts, hashes: &FileImage) -> Result<(u64, VerityParams)> {
    let offset = match (opts.hash_offset, &opts.hash_file) {
        (Some(offset), _) => offset,
        (None, Some(_)) => 0,
        (None, None) => {
            return integrity::find_appended(hashes)?.ok_or_else(|| {
                let error =
                    Error::failed(format!("cannot verify {}: no hash tree at its end", hashes.name()));
                error.hint(
                    "use --hash-file FILE for a separate tree, or --hash-offset BYTES for another place",
                )
            });
        }
    };
    Ok((offset, integrity::read_verity(hashes, offset)?))
}

fn print(
    opts: &Opts,
    params: &VerityParams,
    found: &VerityReport,
    is_sound: bool,
    expected: Option<&[u8]>,
) -> Result<()> {
    let mut out = Out::stdout();
    let error = "error:".red().bold().to_string();
    if found.is_tree_damaged {
        out.line(format_args!("{error} the hash tree does not agree with itself"))?;
    }
    if let Some(expected) = expected
        && expected != found.stored_root_hash
    {
        let stored = to_hex(&found.stored_root_hash);
        out.line(format_args!("{error} the tree has the root hash {stored}"))?;
    }
    if found.damaged_blocks > 0 {
        let first: Vec<String> = found
            .first_damaged
            .iter()
            .take(10)
            .map(|block| format!("{:#x}", block * u64::from(params.data_block_len)))
            .collect();
        let count = text::counted(found.damaged_blocks, "block");
        let len = params.data_block_len;
        out.line(format_args!(
            "{error} {count} of {len} bytes with other contents, the first at {}",
            first.join(", ")
        ))?;
    }
    if is_sound && !opts.work.quiet {
        let covered = text::size(params.data_len());
        let told = match expected {
            Some(_) => "root hash, hash tree and data agree".to_owned(),
            None => {
                format!("hash tree and data agree; the root hash is {}, compare it", to_hex(&found.root_hash))
            }
        };
        out.line(format_args!("{}: {told} ({covered})", "sound".green().bold()))?;
    } else if !is_sound {
        out.line(format_args!("{}", "not sound".red().bold()))?;
    }
    out.finish()
}

fn print_json(found: &VerityReport, is_sound: bool, is_compared: bool) -> Result<()> {
    json::print(&Verified {
        sound: is_sound,
        root_hash: to_hex(&found.root_hash),
        tree_root_hash: to_hex(&found.stored_root_hash),
        compared: is_compared,
        tree_damaged: found.is_tree_damaged,
        damaged_blocks: found.damaged_blocks,
        first_damaged: &found.first_damaged,
    })
}

/// Document of `verity --verify --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Verified<'a> {
    /// True if data, hash tree and root hash agree.
    sound: bool,
    /// Root hash of the data, in hexadecimal.
    root_hash: String,
    /// Root hash of the stored tree, in hexadecimal.
    tree_root_hash: String,
    /// True if a root hash was given.
    compared: bool,
    /// True if the tree contradicts itself.
    tree_damaged: bool,
    /// Data blocks whose hash differs from the one in the tree.
    damaged_blocks: u64,
    /// Numbers of the first 100 of them.
    first_damaged: &'a [u64],
}
