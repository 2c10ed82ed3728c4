//! mkcomposefs of composefs 1.0.

use crate::common::parse::{Given, Row, Style, Takes, acts, parse};
use crate::common::teller::{Form, Teller};
use crate::common::usage;
use packfs::composefs::{ComposefsOptions, Made, Versions, make_of, make_of_dump};
use packfs::source::{Selection, Shape};
use packfs::{Error, Result, ResultExt, Source, Timestamp};
use packfs_terminal::{Outcome, Output, report};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufReader, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const ROWS: &[Row] = &[
    acts("--digest-store", Takes::One),
    acts("--use-epoch", Takes::Nothing),
    acts("--skip-devices", Takes::Nothing),
    acts("--skip-xattrs", Takes::Nothing),
    acts("--user-xattrs", Takes::Nothing),
    acts("--print-digest", Takes::Nothing),
    acts("--print-digest-only", Takes::Nothing),
    acts("--from-file", Takes::Nothing),
    acts("--min-version", Takes::One),
    acts("--max-version", Takes::One),
    acts("--threads", Takes::One),
];

const USAGE: &str = "Usage: mkcomposefs [OPTIONS] SOURCE IMAGE";

pub fn run(args: &[OsString]) -> Outcome {
    let given = parse(&[ROWS], Style::Getopt, args)?;
    let digest_only = given.has("--print-digest-only");
    let (source, image) = match (&given.operands[..], digest_only) {
        ([source], true) => (Path::new(source), None),
        ([source, image], false) => (Path::new(source), Some(Path::new(image))),
        _ => {
            report::aside(format_args!("{USAGE}\n\n{}", usage::table(&[ROWS])));
            return Ok(ExitCode::FAILURE);
        }
    };
    let to_stdout = image == Some(Path::new("-"));
    if to_stdout && std::io::stdout().is_terminal() {
        return Err(Error::usage("stdout is a tty.  Refusing to use it"));
    }
    let output = image.map(|image| Output::open(Some(image).filter(|_| !to_stdout))).transpose()?;
    let teller = Teller::new(Form::Silent);
    let made = made(&given, source, image, &teller);
    teller.finish();
    let Made { bytes, report } = match (made, teller.stopped()) {
        (Err(_), Some(code)) => return Ok(ExitCode::from(code)),
        (made, _) => made?,
    };
    if let Some(output) = output {
        output.write(|out| out.write_all(&bytes).or_io(|| format!("cannot write {image:?}")))?;
    }
    if digest_only || given.has("--print-digest") {
        writeln!(report::stdout_bytes()?, "{}", report.digest).or_io(report::cannot_write)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn made(given: &Given, source: &Path, image: Option<&Path>, teller: &Teller) -> Result<Made> {
    let (min, max) = (given.number("--min-version")?, given.number("--max-version")?);
    let versions = match (min, max) {
        (None, None) => Versions::default(),
        // Setting one of them sets the other one to 0.
        (min, max) => Versions { min: min.unwrap_or(0), max: max.unwrap_or(0) },
    };
    if given.has("--from-file") {
        if source == Path::new("-") {
            return make_of_dump(&mut std::io::stdin().lock(), versions);
        }
        let file = File::open(source).or_io(|| format!("cannot read {source:?}"))?;
        return make_of_dump(&mut BufReader::new(file), versions);
    }
    if given.has("--skip-xattrs") && given.has("--user-xattrs") {
        return Err(Error::usage("--skip-xattrs and --user-xattrs contradict each other"));
    }
    let options = ComposefsOptions {
        objects: given.last("--digest-store").map(PathBuf::from),
        versions,
        splits_links: true,
        shape: shape(given, source),
        jobs: given.number::<u16>("--threads")?.map_or(0, usize::from),
        output: image.map(PathBuf::from),
        ..ComposefsOptions::default()
    };
    make_of(&Source::Directory(source.into()), &options, teller)
}

fn shape(given: &Given, source: &Path) -> Shape {
    let all = |name| if given.has(name) { vec!["**".to_owned()] } else { Vec::new() };
    let root = source.to_owned();
    let is_device = move |path: &packfs::ImagePath| {
        let found = root.join(std::ffi::OsStr::from_bytes(path.as_bytes())).symlink_metadata();
        found.is_ok_and(|found| found.file_type().is_block_device() || found.file_type().is_char_device())
    };
    Shape {
        mtime: given.has("--use-epoch").then(Timestamp::default),
        xattr_exclude: all("--skip-xattrs"),
        xattr_include: if given.has("--user-xattrs") { vec!["user.**".to_owned()] } else { Vec::new() },
        select: given.has("--skip-devices").then(|| Selection::new(is_device)),
        ..Shape::default()
    }
}
