//! `packfs info`: what an image is, who owns its bytes, and the manifest that would make it again.

mod compression;
mod counts;
mod scan;

use crate::args::ImageInput;
use crate::args::{reading, writing};
use crate::out::Output;
use crate::out::json;
use crate::out::report::Out;
use crate::out::{Outcome, report, text};
#[cfg(test)]
pub use compression::Compressed;
use counts::Counts;
use owo_colors::OwoColorize;
use packfs::source::{self, Shape};
use packfs::{
    Error, FactValue, Facts, Layer, Opened, Result, ResultExt, Silent, Source, SpaceOwner, Timestamp, Tree,
    printable,
};
#[cfg(test)]
pub use scan::Scanned;
use serde::Serialize;
use std::borrow::Cow;
use std::fs::Metadata;
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Show format, codec, options, counts and features of an image
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    #[command(flatten)]
    input: ImageInput,

    /// List the owner of every byte of the image
    #[arg(long)]
    space: bool,

    /// Print a manifest, one line per entry
    ///
    /// The manifest can be edited and packed. IMAGE may be a directory or a tar, too.
    #[arg(long, conflicts_with_all = ["space", "json"])]
    manifest: bool,

    /// List all images in the file, at any offset
    ///
    /// For firmware: offset, size and format of each image.
    #[arg(long, conflicts_with_all = ["space", "manifest", "part", "outer", "device", "stats"])]
    scan: bool,

    /// With --scan: also list images inside others
    #[arg(long, requires = "scan")]
    nested: bool,

    /// Report bytes on disk, uncompressed, and referenced, by codec
    ///
    /// For btrfs the figures are those of compsize. IMAGE may be a directory, too: below a mounted
    /// btrfs, its devices are read. Other systems tell length and blocks of files, not their
    /// codec, which is reported as unknown.
    #[arg(long, conflicts_with_all = ["space", "manifest", "scan", "html"])]
    compression: bool,

    /// With --compression: further images and directories
    #[arg(value_name = "MORE", requires = "compression")]
    more: Vec<PathBuf>,

    /// Write a page with a map of the space to FILE
    ///
    /// The map shows each file and directory by its share of the image. - is standard output.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["space", "manifest", "scan", "json"])]
    html: Option<PathBuf>,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  packfs info root.sqfs
  packfs info --space root.sqfs            the owner of every byte
  packfs info --html root.html root.sqfs   the same as a map, for a browser
  packfs info --json root.sqfs | jq -r .facts.codec
  packfs info --compression disk.img       bytes by codec, as by compsize
  packfs info --scan firmware.bin          every image in a file
  packfs info --manifest root.sqfs > root.manifest
  packfs info --manifest rootfs > m        edit m, then packfs pack m root.sqfs";

impl Opts {
    /// Shows.
    pub fn run(self) -> Outcome {
        if self.scan {
            return scan::run(&self.input, self.nested, self.json);
        }
        if self.compression {
            return compression::run(&self.input, &self.more, self.json);
        }
        if let Some(page) = &self.html {
            self.write_map(page)?;
            return Ok(ExitCode::SUCCESS);
        }
        if self.manifest {
            self.print_manifest()?;
            return Ok(ExitCode::SUCCESS);
        }
        let opened = self.input.open(0)?;
        let facts = opened.volume().facts()?;
        let dense_len = opened.format().info().is_dense.then(|| self.stored_len(&opened)).transpose()?;
        let counts = Counts::of(&opened, dense_len)?;
        let space = if self.space { opened.volume().space()? } else { Vec::new() };
        if self.json {
            json::print(&self.document(&opened, counts, &facts, &space))?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut out = Out::stdout();
        print_layers(&opened, &mut out)?;
        print_facts(counts, &facts, &mut out)?;
        if self.space {
            out.line("")?;
            print_space(&space, &mut out)?;
        }
        out.finish()?;
        Ok(ExitCode::SUCCESS)
    }

    /// Prints a manifest of whatever can be packed. Files of a directory are named from the root of
    /// this machine, so that the manifest can be put anywhere; those of all else by their own
    /// paths, for a directory that it was unpacked to.
    fn print_manifest(&self) -> Result<()> {
        let (loaded, folder) = match Source::detect_for(&self.input.image, &self.input.options(0)?)? {
            Source::Image(_) => {
                let opened = self.input.open(0)?;
                return write_manifest(&opened.load(&Silent)?.tree, Path::new(""));
            }
            Source::Manifest(path) => {
                return Err(Error::usage(format!("cannot print a manifest of {path:?}: it is a manifest")));
            }
            source => {
                let folder = match &source {
                    Source::Directory(path) => {
                        path.canonicalize().or_io(|| format!("cannot read {path:?}"))?
                    }
                    _ => PathBuf::new(),
                };
                // The manifest is not part of itself.
                let out = std::fs::metadata("/proc/self/fd/1").ok().filter(Metadata::is_file);
                let skip = out.iter().map(|out| (out.dev(), out.ino())).collect();
                self.input.sandbox.enter(|sandbox| reading(sandbox, &source))?;
                let shape = Shape { skip, ..Shape::default() };
                (source.load_with(&self.input.options(0)?, &shape, &report::PrintWarnings)?, folder)
            }
        };
        write_manifest(&loaded.tree, &folder)
    }

    /// Writes a map of where the bytes go.
    fn write_map(&self, page: &Path) -> Result<()> {
        let image = &self.input.image;
        if page.canonicalize().is_ok_and(|page| image.canonicalize().is_ok_and(|image| image == page)) {
            return Err(Error::usage(format!("cannot write the page to {page:?}: it is the image"))
                .hint("--html FILE is the page to write"));
        }
        let output = Output::open(Some(page).filter(|page| *page != Path::new("-")))?;
        let opened = self.input.open_reaching(0, |sandbox| writing(sandbox, &output))?;
        let facts = opened.volume().facts()?;
        let mut words =
            vec![("image".to_owned(), packfs::without_secrets(image).to_string_lossy().into_owned())];
        words.extend(facts.0.iter().map(|fact| (fact.label.to_owned(), value_text(&fact.value))));
        let shown = packfs::without_secrets(image);
        let title = shown.file_name().unwrap_or(shown.as_os_str()).to_string_lossy();
        let html = packfs_page::treemap::html(&opened, &title, &words)?;
        output.write(|out| out.write_all(html.as_bytes()).or_io(report::cannot_write))
    }

    /// Length of the image and of the devices that hold its data, in bytes.
    fn stored_len(&self, opened: &Opened) -> Result<u64> {
        let own = opened.volume().image_len().unwrap_or(u64::MAX).min(opened.image().len());
        let options = self.input.options(0)?;
        let devices = options.devices().iter().filter_map(|path| options.bytes_at(path).ok());
        Ok(devices.fold(own, |len, device| len.saturating_add(device.len())))
    }

    fn document<'a>(
        &'a self,
        opened: &'a Opened,
        counts: Option<Counts>,
        facts: &'a Facts,
        space: &'a [SpaceOwner],
    ) -> Document<'a> {
        Document {
            image: self.input.shown(),
            format: opened.format().name(),
            size: opened.image().len(),
            counts: counts.map(counts::CountRow::from),
            facts,
            within: opened.layers(),
            space: self.space.then_some(space),
        }
    }
}

/// Document of `info --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    /// Path of the image.
    image: Cow<'a, str>,
    /// Name of the format.
    format: &'static str,
    /// Length of the image.
    size: u64,
    /// Files by type; null if directories are damaged.
    counts: Option<counts::CountRow>,
    /// Properties of the image, by keys of its format.
    #[cfg_attr(test, schemars(with = "json::Object"))]
    facts: &'a Facts,
    /// Containers that hold the image, the outermost first; empty if the image fills its file.
    within: &'a [Layer],
    /// With `--space`: regions in their order, which add up to `size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    space: Option<&'a [SpaceOwner]>,
}

/// Writes to standard output.
fn write_manifest(tree: &Tree, folder: &Path) -> Result<()> {
    let mut out = BufWriter::with_capacity(64 << 10, std::io::stdout().lock());
    source::write_manifest_below(tree, folder, &mut out)?;
    out.flush().or_io(report::cannot_write)
}

/// Prints the containers of the image, the outermost first.
fn print_layers(opened: &Opened, out: &mut Out) -> Result<()> {
    for layer in opened.layers() {
        out.line(format_args!("{} {}, {}", "within".bold(), layer.format, printable(&layer.file)))?;
    }
    Ok(())
}

fn print_facts(counts: Option<Counts>, facts: &Facts, out: &mut Out) -> Result<()> {
    let mut rows: Vec<(&str, String)> =
        facts.0.iter().map(|fact| (fact.label, value_text(&fact.value))).collect();
    let counted = match counts {
        Some(counts) => counts.rows(),
        None => vec![("Content", "not counted: packfs check lists the faults".to_owned())],
    };
    // The format alone says more.
    let place = rows.len().min(1);
    rows.splice(place..place, counted);
    let width = rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    for (label, value) in rows {
        out.line(format_args!("{:width$}  {}", label.bold(), printable(&value)))?;
    }
    Ok(())
}

fn print_space(space: &[SpaceOwner], out: &mut Out) -> Result<()> {
    let total: u64 = space.iter().map(|row| row.len).sum();
    let width = space.iter().map(|row| row.owner.len()).max().unwrap_or(0).max("total".len());
    out.line(format_args!(
        "{:width$}  {:>12}  {:>15}   share",
        "owner".bold(),
        "offset".bold(),
        "bytes".bold()
    ))?;
    for row in space {
        let share = text::percent(row.len, total);
        out.line(format_args!(
            "{:width$}  {:>12}  {:>15}  {share:>7}",
            row.owner,
            format!("{:#x}", row.offset),
            text::count(row.len),
        ))?;
    }
    out.line(format_args!("{:width$}  {:>12}  {:>15}", "total", "", text::count(total)))
}

fn value_text(value: &FactValue) -> String {
    match value {
        FactValue::Text(words) => words.clone(),
        FactValue::Count(number) => text::count(*number),
        FactValue::Bytes(bytes) => text::long_size(*bytes),
        FactValue::Time(seconds) => text::long_time(Timestamp::from_seconds(*seconds)),
        FactValue::Flag(flag) => if *flag { "yes" } else { "no" }.into(),
        FactValue::List(words) if words.is_empty() => "none".into(),
        FactValue::List(words) => words.join(", "),
        _ => format!("{value:?}"),
    }
}
