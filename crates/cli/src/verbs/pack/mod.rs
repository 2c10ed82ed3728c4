//! `packfs pack`: makes an image.

mod args;
mod details;
mod help;
mod report;

pub use args::PackArgs;
pub use help::after_long_help;
#[cfg(test)]
pub use report::Document;

use crate::args::{OfSource, Packing};
use crate::out::Outcome;
use packfs::{Error, FileImage, Pack, Result, Source};
use std::path::{Path, PathBuf};

/// Pack directories, archives, images, or manifests
#[derive(clap::Args)]
#[command(
    after_help = SHORT_EXAMPLES,
    override_usage = "packfs pack [OPTIONS] <SOURCE>... <IMAGE>"
)]
pub struct Opts {
    /// Directory, tar, image, manifest or file to pack
    ///
    /// The content of SOURCE decides its kind, never its name. A tar may be compressed; - reads a
    /// tar from standard input. oci://REGISTRY/NAME[:TAG|@DIGEST], oci-layout:DIR[:TAG], and
    /// oci-archive:FILE are OCI images, whose layers are put over each other. A manifest lists
    /// entries, one a line as for --add; `packfs info --manifest` writes one.
    #[arg(value_name = "SOURCE")]
    source: PathBuf,

    /// Image to write; always the last argument
    ///
    /// An existing file is replaced when the new image is complete. A block device is written in
    /// place. A fifo, or - for standard output, receives the complete image; with - no summary is
    /// printed. s3://BUCKET/KEY is uploaded when it is complete, and must not exist. Several
    /// SOURCEs become entries of the root under their own names; a tar or an image among them is
    /// stored as a file, not unpacked.
    #[arg(value_name = "IMAGE", required = true)]
    rest: Vec<PathBuf>,

    /// Pack SOURCE itself as the only entry of the root
    ///
    /// A tar or an image is stored as a file, not unpacked. A directory becomes a directory of the
    /// root.
    #[arg(long, visible_alias = "keep-as-directory", conflicts_with = "merge", hide_short_help = true)]
    as_file: bool,

    /// Merge the contents of several directories
    ///
    /// The root holds the entries of all SOURCEs, instead of the directories. If several have an
    /// entry of the same name, the last SOURCE wins.
    #[arg(long, hide_short_help = true)]
    merge: bool,

    #[command(flatten)]
    args: PackArgs<Packing, OfSource>,
}

const SHORT_EXAMPLES: &str = "\
Examples:
  packfs pack rootfs root.sqfs
  packfs pack rootfs root.erofs             the extension sets the format
  packfs pack rootfs.tar.xz root.sqfs --codec zstd:19 --block-size 1M
  packfs pack oci://docker.io/debian:12 debian.erofs";

impl Opts {
    /// Packs.
    pub fn run(self) -> Outcome {
        let Opts { source, rest: mut sources, as_file, merge, args } = self;
        // The parser sees to it that there is one.
        let image = sources.pop().unwrap_or_default();
        sources.insert(0, source);
        let from_stdin = sources.iter().any(|source| source == Path::new("-"));
        if from_stdin && (sources.len() > 1 || as_file || merge) {
            return Err(Error::usage(
                "cannot combine a tar from standard input with other sources, --as-file or --merge",
            )
            .hint("use ./- for a file of that name"));
        }
        if from_stdin && args.reads_stdin() {
            return Err(Error::usage("cannot read both SOURCE and --add-manifest from standard input")
                .hint("put the entries into a file, or use --add for each"));
        }
        let are_several = sources.len() > 1;
        if merge && let Some(file) = sources.iter().find(|source| source.is_file()) {
            refuse_to_merge(file)?;
        }
        let packing = match &sources[..] {
            _ if merge => Pack::of(Source::Merged(sources), &image),
            [source] if !as_file => packfs::pack(source, &image),
            _ => packfs::pack_entries(sources, &image),
        };
        args.run(&image, |options, bars| {
            if are_several && options.offset == 0 {
                refuse_what_no_image_is(&image)?;
            }
            packing.options(options).run_with(bars)
        })
    }
}

/// Refuses an image among sources whose contents are merged: that would pack it as a file.
fn refuse_to_merge(file: &Path) -> Result<()> {
    let Some(format) = packfs::formats::probe(&FileImage::open(file)?)? else { return Ok(()) };
    let error = Error::usage(format!(
        "cannot merge {file:?} into a directory: it is an image of the format {}",
        format.name()
    ));
    Err(error.hint("packfs merge puts images over each other; packfs unpack makes a directory of one"))
}

/// Refuses to overwrite a file that is not an image, because the name of the image may be missing
/// after several sources.
fn refuse_what_no_image_is(image: &Path) -> Result<()> {
    let is_file = std::fs::metadata(image).is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0);
    if !is_file || packfs::formats::probe(&FileImage::open(image)?)?.is_some() {
        return Ok(());
    }
    Err(Error::usage(format!("cannot write the image to {image:?}: the file exists and is not an image"))
        .hint("the last argument is the image to write; remove the file if that is intended"))
}
