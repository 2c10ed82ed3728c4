//! fsck.erofs of erofs-utils 1.9.

use crate::common::numbers::size;
use crate::common::parse::{Given, Row, Style, Takes, acts, ignored, parse};
use crate::common::teller::{Form, Teller};
use crate::common::{selected, usage};
use crate::erofs::digests;
use crate::mkfs_erofs::EROFS_UTILS;
use packfs::check;
use packfs::read::LoadedVolume;
use packfs::sink::{Existing, OwnerPolicy, UnpackOptions};
use packfs::{Error, ErrorKind, ImagePath, InodeId, NodeKind, OpenOptions, Opened, Result, Severity};
use packfs_terminal::{Outcome, report};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

const ROWS: &[Row] = &[
    acts("-V --version", Takes::Nothing),
    acts("-h --help", Takes::Nothing),
    acts("-d", Takes::One),
    acts("-p", Takes::Nothing),
    acts("--device", Takes::One),
    acts("--extract", Takes::Attached),
    acts("--offset", Takes::One),
    acts("--path", Takes::One),
    acts("--nid", Takes::One),
    acts("--no-sbcrc", Takes::Nothing),
    acts("--xattr-inode-digest", Takes::Nothing),
    acts("--xattrs", Takes::Nothing),
    acts("--no-xattrs", Takes::Nothing),
    acts("--force", Takes::Nothing),
    acts("--overwrite", Takes::Nothing),
    acts("--preserve", Takes::Nothing),
    acts("--preserve-owner", Takes::Nothing),
    acts("--preserve-perms", Takes::Nothing),
    acts("--no-preserve", Takes::Nothing),
    acts("--no-preserve-owner", Takes::Nothing),
    acts("--no-preserve-perms", Takes::Nothing),
    ignored("-a -A -y", Takes::Nothing),
];

const EXTRACTION: [&str; 8] = [
    "--force",
    "--overwrite",
    "--preserve",
    "--preserve-owner",
    "--preserve-perms",
    "--no-preserve",
    "--no-preserve-owner",
    "--no-preserve-perms",
];

/// Message level from which the tool reports success.
const INFO: u8 = 3;

pub fn run(args: &[OsString]) -> Outcome {
    let given = parse(&[ROWS], Style::Getopt, args)?;
    if given.has("-V") {
        report::line(format_args!(
            "fsck.erofs (erofs-utils) {EROFS_UTILS} (packfs {})\n\
             available decompressors: lz4, lz4hc, lzma, deflate, libdeflate, zstd",
            env!("CARGO_PKG_VERSION")
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    if given.has("-h") {
        report::print(format_args!("Usage: fsck.erofs [OPTIONS] IMAGE\n\n{}", usage::table(&[ROWS])))?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--extract=") {
        return Err(Error::usage("empty value given for --extract=X"));
    }
    let target = given.last("--extract").filter(|target| !target.is_empty()).map(Path::new);
    if let (None, Some(option)) = (target, EXTRACTION.iter().find(|option| given.has(option))) {
        return Err(Error::usage(format!("{option} must be used together with --extract=X")));
    }
    if target == Some(Path::new("/")) && !given.has("--force") {
        return Err(Error::usage("--extract=/ must be used together with --force"));
    }
    let opened = open(&given)?;
    let teller = Teller::new(Form::Silent);
    let faults = checked(&given, &opened, target, &teller)?;
    if faults > 0 {
        let what = if target.is_some() {
            "Failed to extract filesystem"
        } else {
            "Found some filesystem corruption"
        };
        report::note(format_args!("<E> erofs: {what}"));
        return Ok(ExitCode::FAILURE);
    }
    if given.number::<u8>("-d")?.unwrap_or(2) >= INFO {
        let what = if target.is_some() { "Extracted filesystem successfully" } else { "No errors found" };
        report::line(format_args!("<I> erofs: {what}"))?;
        if given.has("-p") {
            tell_ratio(&opened, &teller)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Errors: `Usage` without an image.
pub fn open(given: &Given) -> Result<Opened> {
    let [image] = &given.operands[..] else { return Err(Error::usage("missing argument: IMAGE")) };
    let offset = given.text("--offset")?.map(|text| size("--offset", text)).transpose()?.unwrap_or(0);
    let options = given
        .all("--device")
        .fold(OpenOptions::new().offset(offset), |options, device| options.device(Path::new(device)));
    let options = if given.has("--no-sbcrc") { options.ignore_checksum() } else { options };
    let opened = options.outermost().open(Path::new(image))?;
    match opened.format().name() {
        "erofs" => Ok(opened),
        other => Err(Error::failed(format!("cannot find valid erofs superblock: {image:?} is {other}"))),
    }
}

pub fn path_of(opened: &Opened, id: InodeId) -> Result<ImagePath> {
    let found = opened.walk().filter_map(Result::ok).find(|entry| entry.id == id).map(|entry| entry.path);
    found.ok_or_else(|| Error::not_found(format!("failed to get inode (nid: {})", id.0)))
}

/// Returns the number of faults. Data is decoded if extracted, with `--extract` alone, or to be
/// compared with digests.
fn checked(given: &Given, opened: &Opened, target: Option<&Path>, teller: &Teller) -> Result<u64> {
    let mut count = 0;
    let mut found = |finding: packfs::Finding| {
        let is_excused =
            given.has("--no-sbcrc") && finding.place == "superblock" && finding.fault.contains("checksum");
        if finding.severity == Severity::Error && !is_excused {
            count += 1;
            report::note(format_args!("<E> erofs: {}: {}", finding.place, finding.fault));
        }
    };
    let top = match (given.last("--path"), given.number::<u64>("--nid")?) {
        (Some(path), _) => Some(ImagePath::parse(path.as_bytes())?),
        (None, Some(nid)) => Some(path_of(opened, InodeId(nid))?),
        (None, None) => None,
    };
    if target.is_none() && top.is_none() {
        opened.volume().check(&mut found)?;
    }
    let loaded = opened.load_what_is_there(teller)?;
    let met = if top.is_none() { loaded.faults.count() } else { 0 };
    let loaded = match &top {
        Some(path) if !path.is_root() => selected::below(loaded, path)?,
        _ => loaded,
    };
    if target.is_none() && given.has("--extract") {
        check::content(opened.engine(), &loaded, teller, &mut found)?;
    }
    if given.has("--xattr-inode-digest") {
        digests::compared(opened, &loaded, teller, &mut found)?;
    }
    if let Some(target) = target {
        extract(given, opened, loaded, target, teller)?;
    }
    Ok(count + met)
}

/// The last of these options decides.
fn switched(given: &Given, on: [&str; 2], off: [&str; 2], default: bool) -> bool {
    let is_meant = |name: &str| on.contains(&name) || off.contains(&name);
    let last = given.options.iter().rev().find(|(name, _)| is_meant(name));
    last.map_or(default, |(name, _)| on.contains(name))
}

fn extract(
    given: &Given,
    opened: &Opened,
    loaded: LoadedVolume,
    target: &Path,
    teller: &Teller,
) -> Result<()> {
    let is_root = packfs::mount::is_root();
    let keeps_owner = switched(
        given,
        ["--preserve", "--preserve-owner"],
        ["--no-preserve", "--no-preserve-owner"],
        is_root,
    );
    let keeps_modes = switched(
        given,
        ["--preserve", "--preserve-perms"],
        ["--no-preserve", "--no-preserve-perms"],
        is_root,
    );
    let loaded = if keeps_modes { loaded } else { masked(loaded)? };
    let options = UnpackOptions {
        existing: if given.has("--overwrite") { Existing::Replace } else { Existing::Merge },
        owner: if keeps_owner { OwnerPolicy::Image } else { OwnerPolicy::Current },
        xattrs: given.switched("--xattrs", "--no-xattrs", false),
        ..UnpackOptions::default()
    };
    let unpacked = packfs::sink::unpack(opened.engine(), &loaded, target, &options, teller);
    let unpacked = unpacked.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => error.hint("--overwrite replaces it"),
        _ => error,
    })?;
    for row in &unpacked.not_restored {
        report::note(format_args!("<W> erofs: {row}"));
    }
    Ok(())
}

/// Clears the bits of the umask.
fn masked(loaded: LoadedVolume) -> Result<LoadedVolume> {
    let kept = selected::kept_by_umask();
    selected::selected(loaded, |_, node, edit| {
        if !matches!(node.kind, NodeKind::Symlink(_)) {
            edit.meta.mode &= kept;
        }
        true
    })
}

fn tell_ratio(opened: &Opened, teller: &Teller) -> Result<()> {
    let loaded = opened.load_what_is_there(teller)?;
    let lens =
        loaded.tree.nodes().map(|(_, node)| if let NodeKind::File { len, .. } = node.kind { len } else { 0 });
    let logical = lens.fold(0_u64, u64::saturating_add);
    let physical = opened.volume().image_len().unwrap_or_else(|| opened.image().len());
    let ratio = if logical == 0 { 100.0 } else { physical as f64 * 100.0 / logical as f64 };
    report::line(format_args!("<I> erofs: Compression ratio: {ratio:.2}(%)"))
}
