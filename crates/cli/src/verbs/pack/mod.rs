//! `packfs pack`: makes an image.

mod details;
mod help;
mod making;
mod report;
mod shaping;

pub use help::after_long_help;
pub use making::Making;
#[cfg(test)]
pub use report::Document;

use crate::out::Outcome;
use packfs::{BaseCheck, Error, FileImage, Pack, PackOptions, Result, Source};
use std::path::{Path, PathBuf};

/// Make an image of directories, files, a tar, an image or a manifest
#[derive(clap::Args)]
#[command(
    after_help = SHORT_EXAMPLES,
    override_usage = "packfs pack [OPTIONS] <SOURCE>... <IMAGE>"
)]
pub struct Opts {
    /// Source to pack: a directory, a tar (compressed or not), an image, a manifest or a file; - is
    /// a tar from standard input
    #[arg(value_name = "SOURCE")]
    source: PathBuf,

    /// The image to write, behind any further SOURCEs
    ///
    /// An existing one is replaced once the new one is complete. A block device is written in
    /// place; a fifo, or - for standard output, gets the image once it is complete, and no summary
    /// is printed. Of several SOURCEs each is an entry of the root under its own name, whatever it
    /// holds
    #[arg(value_name = "IMAGE", required = true)]
    rest: Vec<PathBuf>,

    /// Pack SOURCE itself, whatever it holds: a file or directory that is the only entry of the
    /// root
    #[arg(long, visible_alias = "keep-as-directory", conflicts_with = "merge")]
    as_file: bool,

    /// Put what several directories hold together into the root, instead of the directories; later
    /// ones win
    #[arg(long)]
    merge: bool,

    /// Copy compressed blocks of this earlier image where the source still holds the same bytes,
    /// which is found out by comparing them: a small change is packed in a fraction of the time. It
    /// must have the format, codec, level and block size that are asked for; it may be IMAGE itself
    #[arg(long, value_name = "OLD")]
    base: Option<PathBuf>,

    /// Test for a file that is unchanged since the base: its contents, or its path, length and time
    /// without reading it, which misses edits that keep the time
    #[arg(long, value_name = "contents|times", default_value = "contents", requires = "base")]
    base_check: BaseCheckArg,

    #[command(flatten)]
    making: Making,
}

/// Values of `--base-check`.
#[derive(Clone, Copy, clap::ValueEnum)]
enum BaseCheckArg {
    Contents,
    Times,
}

impl From<BaseCheckArg> for BaseCheck {
    fn from(typed: BaseCheckArg) -> Self {
        match typed {
            BaseCheckArg::Contents => BaseCheck::Contents,
            BaseCheckArg::Times => BaseCheck::Times,
        }
    }
}

const SHORT_EXAMPLES: &str = "\
Examples:
  packfs pack rootfs root.sqfs
  packfs pack rootfs.tar.xz root.sqfs --codec zstd:19 --block-size 1M

--help lists codecs, format options and more examples.";

impl Opts {
    /// Packs.
    pub fn run(self) -> Outcome {
        let Opts { source, rest: mut sources, as_file, merge, base, base_check, making } = self;
        // The parser sees to it that there is one.
        let image = sources.pop().unwrap_or_default();
        sources.insert(0, source);
        let from_stdin = sources.iter().any(|source| source == Path::new("-"));
        if from_stdin && (sources.len() > 1 || as_file || merge) {
            return Err(Error::usage("a tar from standard input is packed on its own")
                .hint("a file of that name is ./-"));
        }
        if from_stdin && making.shaping.reads_stdin() {
            return Err(Error::usage("SOURCE and --add-manifest cannot both come from standard input")
                .hint("put the entries into a file, or give each by --add"));
        }
        if sources.len() > 1 && making.offset == 0 {
            refuse_what_no_image_is(&image)?;
        }
        let packing = match &sources[..] {
            _ if merge => Pack::of(Source::Merged(sources), &image),
            [source] if !as_file => packfs::pack(source, &image),
            _ => packfs::pack_entries(sources, &image),
        };
        let base_check = base_check.into();
        making.run(&image, |options, bars| {
            packing.options(PackOptions { base, base_check, ..options }).run_with(bars)
        })
    }
}

/// Of several names the last is the image's: if it is that of something else, the image's may have
/// been left out.
fn refuse_what_no_image_is(image: &Path) -> Result<()> {
    let is_file = std::fs::metadata(image).is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0);
    if !is_file || packfs::formats::probe(&FileImage::open(image)?)?.is_some() {
        return Ok(());
    }
    Err(Error::usage(format!(
        "{image:?} is there, and is no image: it would be replaced by one of the sources before it"
    ))
    .hint("the last name is that of the image to write; remove the file if it is"))
}
