//! composefs-info of composefs 1.0.

use crate::common::parse::{Given, Row, Style, Takes, acts, parse};
use crate::common::usage;
use packfs::composefs::{Escape, dump_where, escape, missing, objects};
use packfs::integrity::{FsVerityOptions, fs_verity_digest};
use packfs::{Error, FileImage, ImagePath, InodeKind, Opened, Result, ResultExt, Silent, to_hex};
use packfs_terminal::Outcome;
use packfs_terminal::report;
use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const ROWS: &[Row] = &[acts("--basedir", Takes::One), acts("--filter", Takes::One)];

pub fn run(args: &[OsString]) -> Outcome {
    let given = parse(&[ROWS], Style::Getopt, args)?;
    let (command, paths) = match given.operands.split_first() {
        Some((command, paths)) if !paths.is_empty() => (command, paths),
        _ => {
            let commands = "ls|objects|dump|missing-objects|measure-file";
            let options = usage::table(&[ROWS]);
            report::aside(format_args!(
                "usage: composefs-info [OPTIONS] [{commands}] IMAGES...\n\n{options}"
            ));
            return Ok(ExitCode::FAILURE);
        }
    };
    let mut out = BufWriter::new(report::stdout_bytes()?);
    let filter = Filter::of(&given)?;
    match command.to_str() {
        Some("measure-file") => paths.iter().try_for_each(|path| measure(Path::new(path), &mut out))?,
        Some("ls") => each(paths, |opened| list(opened, &filter, &mut out))?,
        Some("dump") => each(paths, |opened| dump_where(opened, &|path| filter.takes(path), &mut out))?,
        Some("objects") => list_objects(paths, &filter, None, &mut out)?,
        Some("missing-objects") => {
            let dir = given.last("--basedir").map(PathBuf::from);
            list_objects(paths, &filter, dir, &mut out)?;
        }
        _ => return Err(Error::usage(format!("Unknown command {command:?}"))),
    }
    out.flush().or_io(report::cannot_write)?;
    Ok(ExitCode::SUCCESS)
}

/// Names in the root; empty for all.
struct Filter(Vec<Vec<u8>>);

impl Filter {
    fn of(given: &Given) -> Result<Self> {
        let names: Vec<&OsStr> = given.all("--filter").collect();
        match names.iter().find(|name| name.as_bytes().contains(&b'/')) {
            Some(name) => Err(Error::usage(format!("Filter must be a single name: {name:?}"))),
            None => Ok(Filter(names.iter().map(|name| name.as_bytes().to_vec()).collect())),
        }
    }

    fn takes(&self, path: &ImagePath) -> bool {
        let first = path.names().next();
        self.0.is_empty() || first.is_none_or(|first| self.0.iter().any(|name| name == first.as_bytes()))
    }
}

fn each(paths: &[OsString], mut work: impl FnMut(&Opened) -> Result<()>) -> Result<()> {
    paths.iter().try_for_each(|path| work(&packfs::OpenOptions::new().outermost().open(path)?))
}

fn measure(path: &Path, out: &mut dyn Write) -> Result<()> {
    let digest = fs_verity_digest(&FileImage::open(path)?, &FsVerityOptions::default(), 0, &Silent)?;
    writeln!(out, "{}", to_hex(&digest)).or_io(report::cannot_write)
}

fn list(opened: &Opened, filter: &Filter, out: &mut dyn Write) -> Result<()> {
    let mut seen = HashSet::new();
    for walked in opened.walk() {
        let walked = walked?;
        if walked.path.is_root() || !filter.takes(&walked.path) {
            continue;
        }
        let mut line = b"/".to_vec();
        escape(&mut line, walked.path.as_bytes(), Escape::Nothing);
        let is_first = seen.insert(walked.id);
        match walked.inode.kind {
            InodeKind::Directory => line.extend_from_slice(b"/\t"),
            InodeKind::Symlink if is_first => {
                line.extend_from_slice(b"\t-> ");
                escape(&mut line, &opened.volume().read_link(walked.id)?, Escape::Spaces);
            }
            InodeKind::File { .. } if is_first => {
                if let Some(object) = opened.volume().object(walked.id)? {
                    line.extend_from_slice(b"\t@ ");
                    escape(&mut line, &object.path, Escape::Spaces);
                }
            }
            _ => {}
        }
        line.push(b'\n');
        out.write_all(&line).or_io(report::cannot_write)?;
    }
    Ok(())
}

fn list_objects(
    paths: &[OsString],
    filter: &Filter,
    dir: Option<PathBuf>,
    out: &mut dyn Write,
) -> Result<()> {
    let mut all = BTreeSet::new();
    each(paths, |opened| {
        let mut found = objects(opened)?;
        found.retain(|used| filter.takes(&used.path));
        if let Some(dir) = &dir {
            found = missing(found, std::slice::from_ref(dir))?;
        }
        all.extend(found.into_iter().map(|used| used.object.path));
        Ok(())
    })?;
    all.iter().try_for_each(|path| {
        out.write_all(path).and_then(|()| out.write_all(b"\n")).or_io(report::cannot_write)
    })
}
