//! `packfs repack`: makes another image of an image.

use super::pack::Making;
use crate::out::Outcome;
use std::path::PathBuf;

/// Make another image of an image: other metadata, order, codec, level, block size or format
///
/// What is not asked for stays as it is. Where format, codec, level and block size stay, compressed
/// blocks are copied: each is decoded once, so that one that no longer decodes is found, and none
/// is compressed again.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// The image to make another one of
    #[arg(value_name = "OLD")]
    source: PathBuf,

    /// The image to write, which may be OLD; - is standard output
    #[arg(value_name = "IMAGE")]
    image: PathBuf,

    /// Do not even decode what is copied: about as quick as copying the file, but damage is copied,
    /// too
    #[arg(long)]
    trust: bool,

    #[command(flatten)]
    making: Making,
}

const EXAMPLES: &str = "\
Examples:
  packfs repack root.sqfs small.sqfs --codec zstd:22 --block-size 1M
  packfs repack root.sqfs root.erofs --codec zstd:15
  packfs repack root.sqfs clean.sqfs --exclude 'var/cache/**' --root-owned --mtime @0
  packfs repack root.sqfs root.sqfs --order root.order

Options, codecs and formats are those of `packfs pack`; see its --help.";

impl Opts {
    /// Packs again.
    pub fn run(self) -> Outcome {
        let Opts { source, image, trust, making } = self;
        let repack = packfs::repack(source, &image).trust(trust);
        making.run(&image, |options, bars| repack.options(options).run_with(bars))
    }
}
