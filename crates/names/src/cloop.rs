//! create_compressed_fs and extract_compressed_fs of cloop-utils.

use crate::common::numbers::{bytes, decimal};
use crate::common::parse::{Given, Row, Style, Takes, acts, ignored, parse, sets_as};
use crate::common::teller::{Form, Teller, told};
use crate::common::usage;
use packfs::options::Options;
use packfs::{Error, Result, ResultExt, WrapOptions};
use packfs_terminal::{Outcome, report};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const MAKE: &[Row] = &[
    acts("-h --help", Takes::Nothing),
    acts("-q", Takes::Nothing),
    sets_as("-B", "block-size", |_, text| bytes("block size", text)),
    sets_as("-L", "codec", codec),
    // Anything but a number is 0.
    sets_as("-t", "jobs", |name, text| Ok(decimal::<u16>(name, text).unwrap_or(0).to_string())),
    acts("-f", Takes::One),
    acts("-b", Takes::Nothing),
    acts("-S", Takes::One),
    ignored("-m -r -v", Takes::Nothing),
    ignored("-s -p -j -l -a", Takes::One),
];

const EXTRACT: &[Row] = &[
    acts("-h --help", Takes::Nothing),
    ignored("-v", Takes::Nothing),
    acts("--convert-to-v2", Takes::Nothing),
];

const DEFAULTS: &[&str] =
    &["format=cloop", "codec=gzip:9", "block-size=64K", "-O inner=none", "-O version=2.0"];

/// Level that tries all levels.
const SMALLEST: u32 = 12;

/// Levels may be negative: -1 tries all, -2 takes the best of 7zip.
fn codec(name: &str, text: &str) -> Result<String> {
    let level = match decimal::<i32>(name, text)? {
        level @ 0..=9 => level.unsigned_abs().max(1),
        -2 | -1 => SMALLEST,
        level => return Err(Error::usage(format!("-L: {level} is no compression level from -2 to 9"))),
    };
    Ok(format!("gzip:{level}"))
}

pub fn run_make(args: &[OsString]) -> Outcome {
    let given = parse(&[MAKE], Style::Getopt, args)?;
    if given.has("-h") {
        let options = usage::table(&[MAKE]);
        report::print(format_args!("Usage: create_compressed_fs [options] INFILE [OUTFILE]\n\n{options}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (source, target, old_block) = operands(&given)?;
    let mut wanted = given.pack_options(DEFAULTS)?;
    if let (Some(size), false) = (old_block, given.has("-B")) {
        wanted.set("block-size", bytes("block size", &size)?)?;
    }
    let spool = spooled(&source, given.last("-f").map(Path::new))?;
    let source = spool.as_ref().map_or(source.as_path(), |file| file.path());
    // A split image is divided once it is complete.
    let header = given.last("-S").map(Path::new);
    let whole = header.map(|_| tempfile::NamedTempFile::new().or_io(|| "cannot create a temporary file"));
    let whole = whole.transpose()?;
    let image = whole.as_ref().map_or(target.as_path(), |file| file.path());
    let wrap = packfs::wrap(source, image).options(WrapOptions {
        format: wanted.format,
        codec: wanted.codec,
        block_size: wanted.block_size,
        options: wanted.options,
        jobs: wanted.jobs,
        ..WrapOptions::default()
    });
    let form = if given.has("-q") { Form::Silent } else { Form::Bar };
    told(
        form,
        |teller| wrap.run_with(teller),
        |_| header.map_or(Ok(()), |header| split(image, header, &target)),
    )
}

/// Offset of the number of blocks, big-endian; the offsets of blocks follow, one more than blocks.
const BLOCKS_AT: u64 = 132;
const OFFSETS_AT: u64 = 136;

/// Requires version 2. `blocks` may be standard output.
fn split(image: &Path, header: &Path, blocks: &Path) -> Result<()> {
    let cannot = || "cannot read a temporary file";
    let mut whole = std::fs::File::open(image).or_io(cannot)?;
    let mut count = [0; 4];
    std::os::unix::fs::FileExt::read_exact_at(&whole, &mut count, BLOCKS_AT).or_io(cannot)?;
    let header_len = OFFSETS_AT + 8 * (u64::from(u32::from_be_bytes(count)) + 1);
    let mut out = std::fs::File::create(header).or_io(|| format!("cannot create {header:?}"))?;
    packfs::copy_exactly(&mut whole, &mut out, header_len).or_io(|| format!("cannot write {header:?}"))?;
    let mut out = created(blocks)?;
    std::io::copy(&mut whole, &mut out).or_io(|| format!("cannot write {blocks:?}"))?;
    Ok(())
}

fn created(path: &Path) -> Result<std::fs::File> {
    if path == Path::new("-") {
        report::stdout_bytes()
    } else {
        std::fs::File::create(path).or_io(|| format!("cannot create {path:?}"))
    }
}

/// Source, target, and the block size of the old form `INFILE BLOCKSIZE > OUTFILE`.
fn operands(given: &Given) -> Result<(PathBuf, PathBuf, Option<String>)> {
    let stdout = PathBuf::from("-");
    match &given.operands[..] {
        [source] => Ok((source.into(), stdout, None)),
        [source, second] => match second.to_str().filter(|text| text.parse::<u32>().is_ok()) {
            Some(size) if !Path::new(second).exists() => Ok((source.into(), stdout, Some(size.to_owned()))),
            _ => Ok((source.into(), second.into(), None)),
        },
        [source, size, target] => {
            Ok((source.into(), target.into(), Some(size.to_string_lossy().into_owned())))
        }
        _ => Err(Error::usage("Usage: create_compressed_fs [options] INFILE [OUTFILE]")),
    }
}

/// `near` is the file that the tool would use.
fn spooled(source: &Path, near: Option<&Path>) -> Result<Option<tempfile::NamedTempFile>> {
    if source != Path::new("-") {
        return Ok(None);
    }
    let folder = near.and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
    let file = match folder {
        Some(folder) => tempfile::NamedTempFile::new_in(folder),
        None => tempfile::NamedTempFile::new(),
    };
    let mut file = file.or_io(|| "cannot create a temporary file")?;
    std::io::copy(&mut std::io::stdin().lock(), &mut file).or_io(|| "cannot read standard input")?;
    file.flush().or_io(|| "cannot write a temporary file")?;
    Ok(Some(file))
}

pub fn run_extract(args: &[OsString]) -> Outcome {
    let given = parse(&[EXTRACT], Style::Getopt, args)?;
    if given.has("-h") {
        let options = usage::table(&[EXTRACT]);
        report::print(format_args!("Usage: extract_compressed_fs INFILE [OUTFILE]\n\n{options}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (source, target) = match &given.operands[..] {
        [source] => (PathBuf::from(source), PathBuf::from("-")),
        [source, target] => (source.into(), target.into()),
        _ => return Err(Error::usage("Usage: extract_compressed_fs INFILE [OUTFILE]")),
    };
    let spool = spooled(&source, None)?;
    let source = spool.as_ref().map_or(source.as_path(), |file| file.path());
    if given.has("--convert-to-v2") {
        let teller = Teller::new(Form::Silent);
        let wrap = packfs::wrap(source, &target).with(|options| {
            options.format = Some("cloop".into());
            options.options = vec![("version".into(), "2.0".into())];
        });
        return wrap.run_with(&teller).map(|_| ExitCode::SUCCESS);
    }
    let opened = packfs::OpenOptions::new().outermost().open(source)?;
    if opened.format().name() != "cloop" {
        return Err(Error::failed(format!(
            "{source:?} is no compressed image but {}",
            opened.format().name()
        )));
    }
    let inner = opened.volume().inner_images()?;
    let [inner] = &inner[..] else { return Err(Error::failed("no image inside")) };
    let mut reader = opened.open_id(inner.id)?;
    let mut out = created(&target)?;
    std::io::copy(&mut reader, &mut out).or_io(|| format!("cannot write {target:?}"))?;
    Ok(ExitCode::SUCCESS)
}
