//! mkfs.cramfs and fsck.cramfs of util-linux, and mkcramfs of Buildroot.

use crate::common::parse::{Given, Row, Style, Takes, acts, ignored, parse, refused};
use crate::common::teller::{Form, Teller};
use crate::common::{elf, usage};
use packfs::check;
use packfs::sink::{Existing, UnpackOptions};
use packfs::source::Shape;
use packfs::{Error, MadeAt, Pack, PackOptions, Result, Severity, Source};
use packfs_terminal::{Outcome, report};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

const MAKE: &[Row] = &[
    acts("-h --help", Takes::Nothing),
    acts("-V --version", Takes::Nothing),
    ignored("-v -s", Takes::Nothing),
    acts("-E", Takes::Nothing),
    acts("-b", Takes::One),
    acts("-e", Takes::One),
    acts("-N", Takes::One),
    refused("-i", Takes::One, "images of other filesystems in a cramfs are read by no current kernel"),
    acts("-n", Takes::One),
    acts("-p", Takes::Nothing),
    acts("-z", Takes::Nothing),
    acts("-L", Takes::Nothing),
    acts("-B", Takes::Nothing),
    acts("-q", Takes::Nothing),
    acts("-x", Takes::Nothing),
    acts("-X", Takes::Nothing),
    acts("-D", Takes::One),
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

/// Warns if the name is truncated.
fn cut(name: &str) -> &str {
    let kept = &name[..name.floor_char_boundary(NAME_LEN)];
    if kept.len() < name.len() {
        report::note(format_args!(
            "warning: the name is cut to {kept:?}, the {NAME_LEN} bytes that are held"
        ));
    }
    kept
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
    let mut options: Vec<(String, String)> = Vec::new();
    let mut set = |name: &str, value: &str| options.push((name.to_owned(), value.to_owned()));
    let host = if cfg!(target_endian = "big") { "big" } else { "little" };
    match given.text("-N")? {
        Some("big") => set("endian", "big"),
        Some("little") => set("endian", "little"),
        None if given.has("-B") => set("endian", "big"),
        None if given.has("-L") => set("endian", "little"),
        None | Some("host") => set("endian", host),
        Some(other) => {
            return Err(Error::usage(format!("invalid endianness {other:?}: big, little or host")));
        }
    }
    if let Some(edition) = given.text("-e")? {
        set("edition", edition);
    }
    set("name", cut(given.text("-n")?.unwrap_or("Compressed")));
    if given.has("-p") {
        set("pad", "512");
    }
    if given.has("-z") {
        set("holes", "on");
    }
    if given.has("-x") || given.has("-X") {
        set("pointers", "extended");
    }
    let mut options = PackOptions {
        format: Some("cramfs".into()),
        block_size: given.number("-b")?,
        options,
        made_at: MadeAt::Seconds(0),
        // Only warnings, unless -E is given.
        lossy: !given.has("-E"),
        ..PackOptions::default()
    };
    let teller = Teller::new(Form::Bar);
    let pack = || {
        // Owners of a device table are kept.
        let owner = given.has("-q").then_some(0);
        let mut shape = Shape { uid: owner, gid: owner, ..Shape::default() };
        given.all("-D").try_for_each(|table| shape.additions.add_file(Path::new(table)))?;
        let loaded = Source::Directory(dir.into()).load(&shape, &teller)?;
        if given.has("-X") {
            let programs = elf::programs(&loaded)?.into_iter();
            options.options.extend(programs.map(|path| ("in-place".to_owned(), path)));
        }
        Pack::of_loaded(Arc::new(loaded), Path::new(image)).options(options).run_with(&teller)
    };
    let result = pack();
    teller.finish();
    match (result, teller.stopped()) {
        (Err(_), Some(code)) => Ok(ExitCode::from(code)),
        (result, _) => result.map(|_| ExitCode::SUCCESS),
    }
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
