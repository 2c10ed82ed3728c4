//! `packfs repack`: makes another image of an image.

use super::pack::PackArgs;
use crate::args::{OfOld, Repacking};
use crate::out::Outcome;
use std::path::PathBuf;

/// Repack an image with other metadata, codec, or format
///
/// Format, codec, level and block size stay those of OLD unless options or the extension of IMAGE
/// change them. If these four stay, compressed blocks are copied: each is decoded once to find
/// damage, and none is compressed again. Other options have their defaults.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Image to repack
    #[arg(value_name = "OLD")]
    source: PathBuf,

    /// Image to write, which may be OLD; - is standard output
    #[arg(value_name = "IMAGE")]
    image: PathBuf,

    /// Copy blocks without decoding them
    ///
    /// About as fast as copying the file, but damaged blocks are copied, too.
    #[arg(long, hide_short_help = true)]
    trust: bool,

    #[command(flatten)]
    args: PackArgs<Repacking, OfOld>,
}

const EXAMPLES: &str = "\
Examples:
  packfs repack root.sqfs small.sqfs --codec zstd:22 --block-size 1M
  packfs repack root.sqfs root.erofs --codec zstd:15
  packfs repack root.sqfs clean.sqfs --exclude 'var/cache/**' --root-owned
  packfs repack root.sqfs root.sqfs --order root.order

The options, codecs and formats are those of `packfs pack`.";

impl Opts {
    /// Packs again.
    pub fn run(self) -> Outcome {
        let Opts { source, image, trust, args } = self;
        let repack = packfs::repack(source, &image).trust(trust);
        args.run(&image, |options, bars| repack.options(options).run_with(bars))
    }
}
