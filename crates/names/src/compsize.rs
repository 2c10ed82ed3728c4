//! compsize 1.5: compression of the files below paths of a mounted btrfs, which is read from its
//! devices, or of the files in images.

use crate::common::measured::Measured;
use crate::common::parse::{Given, Row, Style, Takes, acts, parse};
use crate::common::usage;
use packfs::mount::table;
use packfs::{CodecUse, CompressionCount, Error, Result};
use packfs_terminal::Outcome;
use packfs_terminal::report::{self, Out};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

const ROWS: &[Row] = &[
    acts("-b --bytes", Takes::Nothing),
    acts("-x --one-file-system", Takes::Nothing),
    acts("-h --help", Takes::Nothing),
];

/// Order of btrfs's numbers; reserved space comes last.
const ORDER: [&str; 4] = ["none", "zlib", "lzo", "zstd"];

pub fn run(args: &[OsString]) -> Outcome {
    let given = parse(&[ROWS], Style::Getopt, args)?;
    if given.has("-h") || given.operands.is_empty() {
        let options = usage::table(&[ROWS]);
        report::aside(format_args!("Usage: compsize [options] file-or-dir1 [file-or-dir2 ...]\n\n{options}"));
        return Ok(ExitCode::from(u8::from(!given.has("-h"))));
    }
    let mounts = table::read()?;
    let mut count = CompressionCount::default();
    let mut sources = Vec::new();
    for path in &given.operands {
        let source = measured(Path::new(path), &mounts)?;
        let known = sources.iter().position(|known| *known == source.devices);
        let number = known.unwrap_or(sources.len());
        if known.is_none() {
            sources.push(source.devices.clone());
        }
        source.count(number, given.has("-x"), &mut count)?;
    }
    let found = count.finish();
    if found.total.uncompressed == 0 {
        let nothing = if found.files == 0 { "No files." } else { "All empty or still-delalloced files." };
        report::note(nothing);
        return Ok(ExitCode::FAILURE);
    }
    let mut out = Out::stdout();
    out.line(format_args!(
        "Processed {} file{}, {} regular extents ({} refs), {} inline.",
        found.files,
        if found.files > 1 { "s" } else { "" },
        found.extents,
        found.references,
        found.inline
    ))?;
    line(&mut out, ["Type", "Perc", "Disk Usage", "Uncompressed", "Referenced"].map(str::to_owned))?;
    row(&given, &mut out, "TOTAL", &found.total)?;
    let mut codecs = found.codecs;
    codecs.sort_by_key(|row| ORDER.iter().position(|name| *name == row.codec).unwrap_or(ORDER.len()));
    for codec in codecs.iter().filter(|codec| codec.uncompressed > 0) {
        row(&given, &mut out, codec.codec, codec)?;
    }
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// `path` is in a mounted btrfs, or an image.
fn measured(path: &Path, mounts: &[table::Mounted]) -> Result<Measured> {
    if let Some(mounted) = Measured::mounted(path, mounts)? {
        return Ok(mounted);
    }
    if path.is_dir() {
        let error = Error::failed(format!("{}: Not btrfs (or SEARCH_V2 unsupported).", path.display()));
        return Err(error.hint("packfs info --compression measures directories of other filesystems"));
    }
    Ok(Measured::image(path))
}

fn line(out: &mut Out, [a, b, c, d, e]: [String; 5]) -> Result<()> {
    out.line(format_args!("{a:<10} {b:<8} {c:<12} {d:<12} {e:<12}"))
}

fn row(given: &Given, out: &mut Out, name: &str, figures: &CodecUse) -> Result<()> {
    let percent = u128::from(figures.disk) * 100 / u128::from(figures.uncompressed.max(1));
    let bytes = |bytes: u64| if given.has("-b") { bytes.to_string() } else { human(bytes) };
    let [disk, uncompressed, referenced] =
        [figures.disk, figures.uncompressed, figures.referenced].map(bytes);
    line(out, [name.to_owned(), format!("{percent:>3}%"), disk, uncompressed, referenced])
}

/// Has up to four digits and a unit.
fn human(mut bytes: u64) -> String {
    let mut units = "BKMGTPE".chars().peekable();
    while bytes >= 10 * 1024 {
        units.next();
        bytes >>= 10;
    }
    let mut unit = || units.next().unwrap_or('E');
    match bytes {
        1024.. => {
            unit();
            format!(" {}.{}{}", bytes >> 10, bytes * 10 / 1024 % 10, unit())
        }
        _ => format!("{bytes:>4}{}", unit()),
    }
}

#[cfg(test)]
mod tests {
    use super::human;

    #[test]
    fn lengths_have_units() {
        let shown = [0, 1023, 1024, 1536, 10_239, 10_240, 10 << 20, 11 << 20].map(human);
        assert_eq!(
            shown,
            ["   0B", "1023B", " 1.0K", " 1.5K", " 9.9K", "  10K", "  10M", "  11M"].map(str::to_owned)
        );
    }
}
