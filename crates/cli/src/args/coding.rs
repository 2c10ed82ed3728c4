//! Options for codec and layout of an image, which `pack` and `plan` have.

use crate::out::listed::{any, codecs, goals, listed};
use crate::out::text;
use packfs::Goal;

/// Codec, block size, and options of the format.
#[derive(clap::Args)]
pub struct CodingArgs {
    /// Set codec and level, such as zstd:19
    ///
    /// gzip, lzo, lz4, lz4hc, xz, lzma, zstd, deflate or none, as the format supports. Options of
    /// the codec follow after commas; `packfs pack --help` ends with the list. In erofs,
    /// CODEC+CODEC uses two: zstd:15+lz4 stores with LZ4 what it compresses almost as well. The
    /// default depends on the format and on --optimize: for balanced, gzip:9 in squashfs and
    /// lz4hc:12 in erofs.
    #[arg(short, long, value_name = "CODEC", value_parser = listed(any, codecs), hide_possible_values = true)]
    pub codec: Option<String>,

    /// Set the goal: size, balanced (default), read or build
    ///
    /// size makes the smallest images, read the fastest to read, build the fastest to pack;
    /// balanced makes small images that are fast to read. The goal sets codec, level, block size
    /// and order; other options override it.
    #[arg(long, value_name = "GOAL", value_parser = listed(parse_goal, goals), hide_possible_values = true)]
    optimize: Option<Goal>,

    /// Set block size (in erofs cluster size), such as 128K
    ///
    /// squashfs has powers of two from 4K to 1M, erofs multiples of its filesystem block (-O block)
    /// up to 1M. Larger blocks make smaller images and slower random reads. The default depends on
    /// --optimize: for balanced, 128K in squashfs and 64K in erofs.
    #[arg(short, long, value_name = "SIZE", value_parser = text::parse_block_len)]
    pub block_size: Option<u32>,

    /// Set a format option, such as fragments=always
    ///
    /// May be given several times. `packfs pack --help` ends with the options of each format.
    #[arg(short = 'O', long = "option", value_name = "NAME=VALUE", value_parser = parse_option)]
    options: Vec<(String, String)>,

    /// Use only features of this Linux version, such as 6.1
    ///
    /// For erofs and squashfs; the same as -O kernel=VERSION. The default of erofs is 6.1, or the
    /// first version that supports all given options. squashfs refuses codecs that the version does
    /// not read.
    #[arg(long, value_name = "VERSION")]
    kernel: Option<String>,
}

impl CodingArgs {
    /// Returns the goal.
    pub fn goal(&self) -> Goal {
        self.optimize.unwrap_or_default()
    }

    /// Returns the options of the format.
    pub fn options(&self) -> Vec<(String, String)> {
        let kernel = self.kernel.iter().map(|kernel| ("kernel".to_owned(), kernel.clone()));
        kernel.chain(self.options.iter().cloned()).collect()
    }
}

fn parse_goal(text: &str) -> Result<Goal, String> {
    Goal::named(text).ok_or_else(|| format!("unknown goal; use {}", Goal::ALL.map(Goal::name).join(", ")))
}

/// Parses NAME=VALUE.
pub fn parse_option(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write NAME=VALUE".into()),
    }
}
