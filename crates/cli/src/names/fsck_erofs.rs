//! fsck.erofs of erofs-utils 1.9.

use super::mkfs_erofs::EROFS_UTILS;
use super::parse::{Given, Row, Style, Takes, acts, ignored, parse, refused, size};
use super::selected;
use super::teller::{Form, Teller};
use super::usage;
use crate::out::Outcome;
use packfs::check;
use packfs::sink::{Existing, OwnerPolicy, UnpackOptions};
use packfs::{Error, ImagePath, NodeKind, OpenOptions, Opened, Result, Severity};
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
    refused("--nid", Takes::One, "give --path"),
    acts("--no-sbcrc", Takes::Nothing),
    ignored("--xattr-inode-digest", Takes::Attached),
    acts("--xattrs", Takes::Nothing),
    acts("--no-xattrs", Takes::Nothing),
    acts("--force", Takes::Nothing),
    acts("--overwrite", Takes::Nothing),
    acts("--preserve --preserve-owner", Takes::Nothing),
    acts("--no-preserve --no-preserve-owner", Takes::Nothing),
    ignored("--preserve-perms --no-preserve-perms -a -A -y", Takes::Nothing),
];

/// Runs fsck.erofs.
pub fn run(args: &[OsString]) -> Outcome {
    let given = parse(&[ROWS], Style::Getopt, args)?;
    if given.has("-V") {
        println!("fsck.erofs (erofs-utils) {EROFS_UTILS} (packfs {})", env!("CARGO_PKG_VERSION"));
        println!("available decompressors: lz4, lz4hc, lzma, deflate, libdeflate, zstd");
        return Ok(ExitCode::SUCCESS);
    }
    if given.has("-h") {
        print!("Usage: fsck.erofs [OPTIONS] IMAGE\n\n{}", usage::table(&[ROWS]));
        return Ok(ExitCode::SUCCESS);
    }
    let opened = open(&given)?;
    let teller = Teller::new(Form::Silent);
    let target = given.last("--extract").filter(|target| !target.is_empty());
    let faults = match target {
        Some(target) => extract(&given, &opened, Path::new(target), &teller)?,
        None => faults(&opened, &teller)?,
    };
    if given.has("-p") && faults == 0 {
        tell_ratio(&opened, &teller)?;
    }
    let verbosity = given.number::<u8>("-d")?.unwrap_or(2);
    if faults == 0 && verbosity > 2 {
        println!("<I> erofs: No errors found");
    }
    if faults > 0 {
        anstream::eprintln!("<E> erofs: Found some filesystem corruption");
    }
    Ok(ExitCode::from(u8::from(faults > 0)))
}

/// Opens the image of a command line.
///
/// Errors: those of opening; `Usage` without an image.
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

/// Decodes everything; returns the number of faults.
fn faults(opened: &Opened, teller: &Teller) -> Result<u64> {
    let mut count = 0;
    let mut found = |finding: packfs::Finding| {
        if finding.severity == Severity::Error {
            count += 1;
            let text = format!("<E> erofs: {}: {}", finding.place, finding.fault);
            anstream::eprintln!("{}", packfs::printable(&text));
        }
    };
    opened.volume().check(&mut found)?;
    let loaded = opened.load_what_is_there(teller)?;
    let met = loaded.faults.count();
    check::content(opened.engine(), &loaded, teller, &mut found)?;
    Ok(count + met)
}

fn extract(given: &Given, opened: &Opened, target: &Path, teller: &Teller) -> Result<u64> {
    if target == Path::new("/") && !given.has("--force") {
        return Err(Error::usage("--extract=/ needs --force"));
    }
    let options = UnpackOptions {
        existing: if given.has("--overwrite") { Existing::Replace } else { Existing::Merge },
        owner: match given.switched("--no-preserve", "--preserve", !packfs::mount::is_root()) {
            true => OwnerPolicy::Current,
            false => OwnerPolicy::Image,
        },
        xattrs: given.switched("--xattrs", "--no-xattrs", false),
        ..UnpackOptions::default()
    };
    let loaded = opened.load_what_is_there(teller)?;
    let met = loaded.faults.count();
    let path =
        given.last("--path").map_or(Ok(ImagePath::root()), |path| ImagePath::parse(path.as_bytes()))?;
    let (loaded, target) = match path.is_root() {
        true => (loaded, target.to_owned()),
        false => (selected::below(loaded, &path)?, target.to_owned()),
    };
    let report = packfs::sink::unpack(opened.engine(), &loaded, &target, &options, teller)?;
    for row in &report.not_restored {
        anstream::eprintln!("<W> erofs: {}", packfs::printable(&row.to_string()));
    }
    Ok(met)
}

fn tell_ratio(opened: &Opened, teller: &Teller) -> Result<()> {
    let loaded = opened.load_what_is_there(teller)?;
    let lens =
        loaded.tree.nodes().map(|(_, node)| if let NodeKind::File { len, .. } = node.kind { len } else { 0 });
    let logical = lens.fold(0_u64, u64::saturating_add);
    let physical = opened.volume().image_len().unwrap_or_else(|| opened.image().len());
    let ratio = if logical == 0 { 100.0 } else { physical as f64 * 100.0 / logical as f64 };
    println!("Compression ratio: {ratio:.2}%");
    Ok(())
}
