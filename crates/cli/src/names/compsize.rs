//! compsize 1.5: compression of the files below paths of a mounted btrfs, which is read from its
//! devices, or of the files in images.

use super::parse::{Given, Row, Style, Takes, acts, parse};
use super::usage;
use crate::out::Outcome;
use crate::out::report::{self, Out};
use packfs::mount::table::{self, Mounted};
use packfs::{
    CodecUse, CompressionCount, Error, ImagePath, InodeKind, OpenOptions, Opened, Result, ResultExt, Walked,
};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const ROWS: &[Row] = &[
    acts("-b --bytes", Takes::Nothing),
    acts("-x --one-file-system", Takes::Nothing),
    acts("-h --help", Takes::Nothing),
];

/// Codecs in the order of their numbers in btrfs; reserved space comes last.
const ORDER: [&str; 4] = ["none", "zlib", "lzo", "zstd"];

/// Runs compsize.
pub fn run(args: &[OsString]) -> Outcome {
    let given = parse(&[ROWS], Style::Getopt, args)?;
    if given.has("-h") || given.operands.is_empty() {
        let options = usage::table(&[ROWS]);
        report::aside(format_args!("Usage: compsize [options] file-or-dir1 [file-or-dir2 ...]\n\n{options}"));
        return Ok(ExitCode::from(u8::from(!given.has("-h"))));
    }
    let (mounts, mut count, mut sources) = (table::read()?, CompressionCount::default(), Vec::new());
    for path in &given.operands {
        let source = Source::of(Path::new(path), &mounts)?;
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

/// Returns a length with up to four digits and a unit.
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

/// Files to measure.
struct Source {
    /// The image, or the devices of a mounted filesystem.
    devices: Vec<PathBuf>,
    /// Path of this machine that is measured, and its place in the filesystem; `None` for all of
    /// an image.
    place: Option<(PathBuf, ImagePath)>,
}

impl Source {
    /// Finds the filesystem of a path.
    fn of(path: &Path, mounts: &[Mounted]) -> Result<Self> {
        let cannot = || format!("open(\"{}\")", path.display());
        let host = path.canonicalize().or_io(cannot)?;
        // Later mounts cover earlier ones.
        let mounted = mounts.iter().rev().find(|mounted| host.starts_with(&mounted.at));
        if let Some(mounted) = mounted.filter(|mounted| mounted.fs_type == "btrfs") {
            let below = host.strip_prefix(&mounted.at).unwrap_or(Path::new(""));
            let place = ImagePath::parse(mounted.root.join(below).as_os_str().as_bytes())?;
            synced(&host).or_io(cannot)?;
            return Ok(Source { devices: devices(&mounted.source)?, place: Some((host, place)) });
        }
        if host.is_dir() {
            let error = Error::failed(format!("{}: Not btrfs (or SEARCH_V2 unsupported).", path.display()));
            return Err(error.hint("packfs info --compression measures directories of other filesystems"));
        }
        Ok(Source { devices: vec![host], place: None })
    }

    fn open(&self) -> Result<Opened> {
        let [first, others @ ..] = &self.devices[..] else { return Err(Error::failed("no device")) };
        let options = others.iter().fold(OpenOptions::new(), OpenOptions::device);
        let options = if self.place.is_some() { options.subvolume("/") } else { options };
        options.open(first)
    }

    fn count(&self, number: usize, one_filesystem: bool, count: &mut CompressionCount) -> Result<()> {
        let opened = self.open()?;
        let Some((host, top)) = &self.place else { return count.add(number, &opened, |_| true) };
        let device = host.symlink_metadata().map(|found| found.dev()).ok();
        let mut left_out: Option<ImagePath> = None;
        count.add(number, &opened, |walked: &Walked| {
            if !walked.path.starts_with(top)
                || left_out.as_ref().is_some_and(|above| walked.path.starts_with(above))
            {
                return false;
            }
            if one_filesystem && walked.inode.kind == InodeKind::Directory {
                let below = walked.path.as_bytes().strip_prefix(top.as_bytes()).unwrap_or_default();
                let below = below.strip_prefix(b"/").unwrap_or(below);
                let found = host.join(OsStr::from_bytes(below)).symlink_metadata().map(|found| found.dev());
                if found.ok() != device {
                    left_out = Some(walked.path.clone());
                    return false;
                }
            }
            true
        })
    }
}

/// Writes out what the kernel holds back of a filesystem.
fn synced(path: &Path) -> std::io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(path)?)?)
}

/// Returns all devices of a mounted btrfs, that of the mount table first, and lets the kernel
/// forget what it has read of them.
fn devices(source: &Path) -> Result<Vec<PathBuf>> {
    let cannot = || format!("cannot open {source:?}");
    let source = source.canonicalize().or_io(cannot)?;
    let mut found = vec![source.clone()];
    let name = source.file_name().unwrap_or_default();
    for filesystem in std::fs::read_dir("/sys/fs/btrfs").into_iter().flatten().flatten() {
        let folder = filesystem.path().join("devices");
        if folder.join(name).exists() {
            let names = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            let others = names.map(|entry| entry.file_name()).filter(|other| other != name);
            found.extend(others.map(|other| Path::new("/dev").join(other)));
        }
    }
    for device in &found {
        let file = File::open(device).or_io(|| format!("cannot open {device:?}"))?;
        // Only a hint: without it, blocks that were read before may be old.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
    }
    Ok(found)
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
