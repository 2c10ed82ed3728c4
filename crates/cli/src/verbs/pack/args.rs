//! Options of `pack` and `repack`, and their run.

use super::report::Summary;
use super::shaping::Shaping;
use crate::args::{CodingArgs, LayerArgs, LimitArgs, Magic, OciArgs, parse_magic};
use crate::out::listed::{any, formats, listed};
use crate::out::{Outcome, report, text};
use packfs::remote::RemoteOptions;
use packfs::{Effort, Error, Gain, MadeAt, OpenOptions, Order, PackOptions, PackReport, Progress, Result};
use packfs_terminal::work::Work;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Options of packing.
#[derive(clap::Args)]
pub struct PackArgs {
    /// Set the format, such as erofs; default by extension
    ///
    /// squashfs, erofs, squashfs-legacy, cramfs, iso9660 or cloop. The default follows from the
    /// extension of IMAGE: squashfs without an extension or with .img, .image, .bin or .raw. An
    /// unknown extension is refused.
    #[arg(short, long, value_name = "NAME", value_parser = listed(any, formats), hide_possible_values = true)]
    format: Option<String>,

    #[command(flatten)]
    coding: CodingArgs,

    /// Set the creation time of the image
    ///
    /// newest is the time of the newest file, now the time of packing. The default is
    /// SOURCE_DATE_EPOCH, else newest.
    #[arg(long, value_name = "TIME", value_parser = parse_made_at)]
    made_at: Option<MadeAt>,

    /// Write the image at this offset of the output
    ///
    /// The bytes of an existing file before the offset are kept.
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = text::parse_size)]
    pub(super) offset: u64,

    /// Read the source image at this offset in its file
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = text::parse_size)]
    source_offset: u64,

    /// Pack this part of a disk image, such as p2
    ///
    /// Without it, the only image of a known format is used, else the disk image itself; a warning
    /// lists the images.
    #[arg(long, visible_alias = "part", value_name = "NAME")]
    source_part: Option<String>,

    /// Read SOURCE as an image that starts with MAGIC
    ///
    /// For images whose vendor changed the magic: hsqs or shsq for little-endian SquashFS of any
    /// version, sqsh or qshs for big-endian.
    #[arg(long, visible_alias = "magic", value_name = "MAGIC", value_parser = listed(parse_magic, packfs::magics),
        hide_possible_values = true)]
    source_magic: Option<Magic>,

    /// Continue if the checksum of a source image is wrong
    ///
    /// Applies to EROFS, cramfs, romfs, ext4, XFS and btrfs, whose superblock holds a checksum.
    #[arg(long)]
    ignore_checksum: bool,

    /// Read further data of a source image from FILE
    ///
    /// May be given several times, in the order of the image's own list of devices.
    #[arg(long, value_name = "FILE")]
    device: Vec<PathBuf>,

    #[command(flatten)]
    layers: LayerArgs,

    #[command(flatten)]
    oci: OciArgs,

    /// Set the order of file data in the image
    ///
    /// similarity places small files beside similar ones, as far apart as the kernel reads
    /// efficiently. similarity:SIZE searches within SIZE bytes, similarity:all everywhere: smaller
    /// images, slower reads in path order. kind sorts by extension and name, path keeps the order
    /// of paths. Any other value is a FILE with lines of PATH PRIORITY, from -32768 to 32767,
    /// highest first; the priority of a directory applies to everything below it. The default is
    /// similarity; with --optimize size similarity:all, with --optimize read path.
    #[arg(long, value_name = "ORDER", value_parser = parse_order)]
    order: Option<OrderArg>,

    /// Place the files listed in FILE first, in that order
    ///
    /// Stores their data, fragments and inodes first, apart from all others. FILE holds one path a
    /// line, as written by `packfs mount --record` or find, or paths separated by NUL. --order
    /// applies to the rest.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Compress only data that shrinks by PERCENT or more
    ///
    /// Other data is stored uncompressed, which saves decoding time on every read. 0 compresses
    /// everything that shrinks.
    #[arg(long, value_name = "PERCENT", default_value = "3", value_parser = parse_gain)]
    min_gain: Gain,

    /// Set the effort for each block: level (default) or max
    ///
    /// level compresses as the level of the codec says. max uses the highest level and a bounded
    /// search for the smallest result, and takes several times longer.
    #[arg(long, value_name = "EFFORT", value_parser = parse_effort)]
    effort: Option<Effort>,

    /// Continue after read errors
    ///
    /// Files that cannot be opened are left out. Directories that cannot be opened, and files that
    /// fail later, are stored empty. All are listed at the end, with exit code 1.
    #[arg(long)]
    keep_going: bool,

    /// Drop attributes that the format cannot represent
    ///
    /// The losses are listed. Without it, packing fails if such attributes would be lost; smaller
    /// losses, such as fractions of seconds, only cause a warning.
    #[arg(long)]
    lossy: bool,

    /// Limit memory, such as 256M
    ///
    /// The default is the limit of the control group. Less memory means fewer threads and never
    /// changes the image.
    #[arg(long, value_name = "SIZE", value_parser = text::parse_size)]
    memory: Option<u64>,

    /// Fail if the image exceeds SIZE, such as 16M
    ///
    /// Padding counts. The error states the length, and an existing file or device stays unchanged.
    #[arg(long, value_name = "SIZE", value_parser = text::parse_size)]
    max_size: Option<u64>,

    /// Use denser settings until the image fits in --max-size
    ///
    /// Tries denser codecs, higher levels and larger blocks. Without --max-size, IMAGE must be a
    /// block device, whose size is the limit. Options that are given (-c, -b) stay. Each try packs
    /// anew, and denser images are slower to read.
    #[arg(long)]
    fit: bool,

    /// Read the image back and compare it with the source
    ///
    /// The default for sources with less than 1 GiB of file data. Runs before the image gets its
    /// name.
    #[arg(long, overrides_with = "no_verify")]
    verify: bool,

    /// Skip the check against the source (default over 1 GiB)
    #[arg(long, overrides_with = "verify")]
    no_verify: bool,

    /// Do not wait until the image is on the disk
    #[arg(long)]
    no_sync: bool,

    /// Add space per file class, times and advice to the summary
    #[arg(long)]
    report: bool,

    /// Print the summary as a JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    work: Work,

    #[command(flatten)]
    limits: LimitArgs,

    #[command(flatten)]
    pub(super) shaping: Shaping,
}

impl PackArgs {
    /// Makes an image at `image` by what `pack` does with the options.
    pub fn run(
        self,
        image: &Path,
        pack: impl FnOnce(PackOptions, &dyn Progress) -> Result<PackReport>,
    ) -> Outcome {
        let is_to_stdout = image == Path::new("-");
        self.work.shown(self.json, |bars| {
            let start = Instant::now();
            if self.json && is_to_stdout {
                let fault = "cannot write both --json and the image to standard output";
                return Err(Error::usage(fault));
            }
            let report = pack(self.options()?, bars)?;
            bars.finish();
            let summary = Summary {
                report: &report,
                image,
                offset: self.offset,
                took: start.elapsed(),
                details: self.report,
            };
            if self.json {
                summary.print_json()?;
            } else if !self.work.quiet && !is_to_stdout {
                summary.print()?;
            }
            if !report.skipped.is_empty() {
                let count = text::count(report.skipped.len() as u64);
                report::warning(&format!(
                    "cannot read all files and directories: {count} skipped or stored empty"
                ));
            }
            // Not all that was asked for was done.
            Ok(if report.skipped.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        })
    }

    fn options(&self) -> Result<PackOptions> {
        let shaping = self.shaping.resolve()?;
        let (order, order_file) = match self.order.clone() {
            None => (None, None),
            Some(OrderArg::By(order)) => (Some(order), None),
            Some(OrderArg::File(file)) => (None, Some(file)),
        };
        Ok(PackOptions {
            format: self.format.clone(),
            codec: self.coding.codec.clone(),
            block_size: self.coding.block_size,
            optimize: self.coding.goal(),
            options: self.coding.options(),
            made_at: self.made_at.or(shaping.made_at).unwrap_or_default(),
            shape: shaping.shape,
            source: self.source(),
            limits: self.limits.limits(),
            order,
            order_file,
            trace: self.trace.clone(),
            min_gain: self.min_gain,
            effort: self.effort.unwrap_or_default(),
            jobs: self.work.jobs(),
            memory: self.memory,
            offset: self.offset,
            max_size: self.max_size,
            fit: self.fit,
            keep_going: self.keep_going,
            lossy: self.lossy,
            verify: (self.verify || self.no_verify).then_some(self.verify),
            sync: !self.no_sync,
            ..PackOptions::default()
        })
    }

    /// Returns how a source that is an image is opened.
    fn source(&self) -> OpenOptions {
        let remote = self.oci.apply(RemoteOptions::default());
        let options = OpenOptions::new().offset(self.source_offset).remote(remote);
        let options = match &self.source_part {
            Some(name) => options.part(name),
            None => options,
        };
        let options = match self.source_magic {
            Some(magic) => options.magic(magic),
            None => options,
        };
        let options = if self.ignore_checksum { options.ignore_checksum() } else { options };
        self.device.iter().fold(self.layers.apply(options), OpenOptions::device)
    }
}

/// Value of `--order`.
#[derive(Clone, Debug)]
pub enum OrderArg {
    By(Order),
    File(PathBuf),
}

pub fn parse_order(text: &str) -> Result<OrderArg, String> {
    Ok(OrderArg::By(match (text, text.strip_prefix("similarity:")) {
        ("path", _) => Order::Path,
        ("kind", _) => Order::Kind,
        ("similarity", _) => Order::Similarity { within: None },
        (_, Some("all")) => Order::Similarity { within: Some(u64::MAX) },
        (_, Some(size)) => Order::Similarity { within: Some(text::parse_size(size)?) },
        _ => return Ok(OrderArg::File(text.into())),
    }))
}

pub fn parse_effort(text: &str) -> Result<Effort, String> {
    match text {
        "level" => Ok(Effort::Level),
        "max" => Ok(Effort::Max),
        _ => Err("unknown effort; use level or max".to_owned()),
    }
}

fn parse_gain(text: &str) -> Result<Gain, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).parse().ok();
    percent.and_then(Gain::percent).ok_or_else(|| "not a percentage; use 0 to 49".to_owned())
}

fn parse_made_at(text: &str) -> Result<MadeAt, String> {
    match text {
        "newest" => Ok(MadeAt::Newest),
        "now" => Ok(MadeAt::Now),
        time => text::parse_time(time).map(|time| MadeAt::Seconds(time.seconds)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_a_word_or_else_a_file() {
        let by = |text| match parse_order(text) {
            Ok(OrderArg::By(order)) => Some(order),
            _ => None,
        };
        assert_eq!(by("path"), Some(Order::Path));
        assert_eq!(by("kind"), Some(Order::Kind));
        assert_eq!(by("similarity"), Some(Order::Similarity { within: None }));
        assert_eq!(by("similarity:8M"), Some(Order::Similarity { within: Some(8 << 20) }));
        assert_eq!(by("similarity:all"), Some(Order::Similarity { within: Some(u64::MAX) }));
        assert!(parse_order("similarity:much").is_err());
        assert!(matches!(parse_order("./path"), Ok(OrderArg::File(file)) if file == Path::new("./path")));
    }
}
