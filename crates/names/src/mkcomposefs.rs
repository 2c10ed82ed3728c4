//! mkcomposefs of composefs 1.0.

use crate::common::parse::{Given, Row, Style, Takes, acts, parse, sets, switches};
use crate::common::teller::{Form, Teller, told};
use crate::common::usage;
use packfs::composefs::{ComposefsOptions, Made, Versions, make_of, make_of_dump};
use packfs::source::Selection;
use packfs::{Error, Result, ResultExt, Source};
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
    switches("--use-epoch", "mtime=0"),
    acts("--skip-devices", Takes::Nothing),
    switches("--skip-xattrs", "xattr-exclude=**"),
    switches("--user-xattrs", "xattr-include=user.**"),
    acts("--print-digest", Takes::Nothing),
    acts("--print-digest-only", Takes::Nothing),
    acts("--from-file", Takes::Nothing),
    acts("--min-version", Takes::One),
    acts("--max-version", Takes::One),
    sets("--threads", "jobs"),
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
    let work = |teller: &Teller| made(&given, source, image, teller);
    told(Form::Silent, work, |Made { bytes, report, .. }| {
        if let Some(output) = output {
            output.write(|out| out.write_all(&bytes).or_io(|| format!("cannot write {image:?}")))?;
        }
        if digest_only || given.has("--print-digest") {
            writeln!(report::stdout_bytes()?, "{}", report.digest).or_io(report::cannot_write)?;
        }
        Ok(())
    })
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
    let mut wanted = given.pack_options(&[])?;
    wanted.shape.select = given.has("--skip-devices").then(|| without_devices(source));
    let options = ComposefsOptions {
        objects: given.last("--digest-store").map(PathBuf::from),
        versions,
        splits_links: true,
        shape: wanted.shape,
        jobs: wanted.jobs,
        output: image.map(PathBuf::from),
        ..ComposefsOptions::default()
    };
    make_of(&Source::Directory(source.into()), &options, teller)
}

fn without_devices(source: &Path) -> Selection {
    let root = source.to_owned();
    Selection::new(move |path| {
        let found = root.join(std::ffi::OsStr::from_bytes(path.as_bytes())).symlink_metadata();
        found.is_ok_and(|found| found.file_type().is_block_device() || found.file_type().is_char_device())
    })
}
