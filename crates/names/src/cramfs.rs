//! mkfs.cramfs and fsck.cramfs of util-linux, and mkcramfs of Buildroot.

use crate::common::numbers::decimal;
use crate::common::parse::{
    Given, Row, Style, Takes, acts, ignored, parse, refused, sets, sets_as, switches,
};
use crate::common::teller::{Form, Teller, told};
use crate::common::{elf, usage};
use packfs::check;
use packfs::sink::{Existing, UnpackOptions};
use packfs::{Error, Pack, Result, Severity, Source};
use packfs_terminal::{Outcome, report};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

const MAKE: &[Row] = &[
    acts("-h --help", Takes::Nothing),
    acts("-V --version", Takes::Nothing),
    ignored("-v -s", Takes::Nothing),
    // Without it, losses are warnings.
    switches("-E", "lossy=off"),
    sets_as("-b", "block-size", |name, text| Ok(decimal::<u32>(name, text)?.to_string())),
    sets("-e", "-O edition"),
    sets_as("-N", "-O endian", endian),
    refused("-i", Takes::One, "images of other filesystems in a cramfs are read by no current kernel"),
    sets_as("-n", "-O name", cut),
    switches("-p", "-O pad=512"),
    switches("-z", "-O holes=on"),
    switches("-L", "-O endian=little"),
    switches("-B", "-O endian=big"),
    // Owners of a device table are kept.
    switches("-q", "root-owned"),
    switches("-x", "-O pointers=extended"),
    switches("-X", "-O pointers=extended"),
    sets("-D", "add-manifest"),
];

const CHECK: &[Row] = &[
    acts("-h --help", Takes::Nothing),
    acts("-V --version", Takes::Nothing),
    acts("-v --verbose", Takes::Nothing),
    ignored("-a -y", Takes::Nothing),
    ignored("-b --blocksize", Takes::One),
    acts("--extract", Takes::Attached),
    acts("-x", Takes::One),
];

const DEFAULTS: &[&str] = &["format=cramfs", "made-at=0", "lossy", "-O name=Compressed", HOST_ENDIAN];

const HOST_ENDIAN: &str = if cfg!(target_endian = "big") { "-O endian=big" } else { "-O endian=little" };

const NAME_LEN: usize = 16;

const UNCORRECTED: u8 = 4;

fn answered(name: &str, given: &Given, rows: &[Row]) -> Result<bool> {
    if given.has("-V") {
        let version = env!("CARGO_PKG_VERSION");
        report::line(format_args!("{name} from util-linux 2.41 (packfs {version})"))?;
    } else if given.has("-h") {
        let operands = if name == "fsck.cramfs" {
            "[options] <file>"
        } else {
            "[-h] [-v] [-b blksize] [-e edition] [-N endian] [-n name]\n  dirname outfile"
        };
        report::print(format_args!("\nUsage:\n {name} {operands}\n\n{}", usage::table(&[rows])))?;
    }
    Ok(given.has("-V") || given.has("-h"))
}

fn endian(_: &str, text: &str) -> Result<String> {
    match text {
        "big" | "little" => Ok(text.to_owned()),
        "host" => Ok(HOST_ENDIAN.trim_start_matches("-O endian=").to_owned()),
        other => Err(Error::usage(format!("invalid endianness {other:?}: big, little or host"))),
    }
}

/// Warns if the name is truncated.
fn cut(_: &str, name: &str) -> Result<String> {
    let kept = (0..=NAME_LEN).rev().find_map(|end| name.get(..end)).unwrap_or_default();
    if kept.len() < name.len() {
        report::note(format_args!(
            "warning: the name is cut to {kept:?}, the {NAME_LEN} bytes that are held"
        ));
    }
    Ok(kept.to_owned())
}

pub fn run_make(name: &str, args: &[OsString]) -> Outcome {
    let given = parse(&[MAKE], Style::Getopt, args)?;
    if answered(name, &given, MAKE)? {
        return Ok(ExitCode::SUCCESS);
    }
    let [dir, image] = &given.operands[..] else {
        return Err(Error::usage(format!("usage: {name} [options] dirname outfile")));
    };
    if let Err(error) = std::fs::metadata(dir) {
        return Err(Error::usage(format!("stat of {dir:?} failed: {error}")));
    }
    let mut options = given.pack_options(DEFAULTS)?;
    let pack = |teller: &Teller| {
        let loaded = Source::Directory(dir.into()).load(&options.shape, teller)?;
        if given.has("-X") {
            let programs = elf::programs(&loaded)?.into_iter();
            options.options.extend(programs.map(|path| ("in-place".to_owned(), path)));
        }
        Pack::of_loaded(Arc::new(loaded), Path::new(image)).options(options).run_with(teller)
    };
    told(Form::Bar, pack, |_| Ok(()))
}

pub fn run_check(args: &[OsString]) -> Outcome {
    let given = parse(&[CHECK], Style::Getopt, args)?;
    if answered("fsck.cramfs", &given, CHECK)? {
        return Ok(ExitCode::SUCCESS);
    }
    let [image] = &given.operands[..] else {
        return Err(Error::usage("usage: fsck.cramfs [options] <file>"));
    };
    let shown = Path::new(image).display();
    match checked(&given, Path::new(image)) {
        Ok(0) => {
            if given.has("-v") {
                report::line(format_args!("{shown}: OK"))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Ok(_) => Ok(ExitCode::from(UNCORRECTED)),
        Err(error) if error.io_source().is_some() => Err(error),
        Err(error) => {
            report::note(format_args!("fsck.cramfs: {error}"));
            Ok(ExitCode::from(UNCORRECTED))
        }
    }
}

fn checked(given: &Given, image: &Path) -> Result<u64> {
    let opened = packfs::OpenOptions::new().outermost().open(image)?;
    if opened.format().name() != "cramfs" {
        return Err(Error::failed("superblock magic not found"));
    }
    let teller = Teller::new(Form::Silent);
    let mut count = 0;
    let mut found = |finding: packfs::Finding| {
        if finding.severity == Severity::Error {
            count += 1;
            report::note(format_args!("fsck.cramfs: {}: {}", finding.place, finding.fault));
        }
    };
    opened.volume().check(&mut found)?;
    let loaded = opened.load_what_is_there(&teller)?;
    check::content(opened.engine(), &loaded, &teller, &mut found)?;
    count += loaded.faults.count();
    let target = given.last("-x").or(given.last("--extract")).filter(|target| !target.is_empty());
    if let (Some(target), 0) = (target, count) {
        let options = UnpackOptions { existing: Existing::Merge, ..UnpackOptions::default() };
        packfs::sink::unpack(opened.engine(), &loaded, Path::new(target), &options, &teller)?;
    }
    Ok(count)
}
