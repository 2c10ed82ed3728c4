//! Options that every making of an image has, and its run.

use super::report::Summary;
use super::shaping::Shaping;
use crate::args::{LimitArgs, Magic, parse_magic};
use crate::out::listed::{any, codecs, formats, goals, listed};
use crate::out::{Outcome, report, text};
use packfs::{
    Effort, Error, Gain, Goal, MadeAt, OpenOptions, Order, PackOptions, PackReport, Progress, Result,
};
use packfs_terminal::work::Work;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Options of making an image.
#[derive(clap::Args)]
pub struct Making {
    /// Format of the image; without it the extension of IMAGE tells, and without one it is squashfs
    #[arg(short, long, value_name = "NAME", value_parser = listed(any, formats), hide_possible_values = true)]
    format: Option<String>,

    /// How to compress: gzip, lzo, lz4, lz4hc, xz, lzma, zstd, deflate or none, as far as the
    /// format knows it, with a level and options if need be
    #[arg(
        short,
        long,
        value_name = "NAME[:LEVEL]",
        value_parser = listed(any, codecs),
        hide_possible_values = true
    )]
    codec: Option<String>,

    /// What the image is to be good at: as small as possible (size), small and quick to read
    /// (balanced, the default), quick to read (read), or quick to make (build). Decides codec,
    /// level, block size and order where no option does
    #[arg(
        long,
        value_name = "size|balanced|read|build",
        value_parser = listed(parse_goal, goals),
        hide_possible_values = true
    )]
    optimize: Option<Goal>,

    /// Block size: larger blocks make smaller images and slower random reads
    #[arg(short, long, value_name = "SIZE", value_parser = text::parse_block_len)]
    block_size: Option<u32>,

    /// Option of the format; may be given several times (see the lists below in --help)
    #[arg(short = 'O', long = "option", value_name = "NAME=VALUE", value_parser = parse_option)]
    options: Vec<(String, String)>,

    /// Use only what this Linux kernel and newer ones mount, such as 6.1; the same as -O
    /// kernel=VERSION (erofs)
    #[arg(long, value_name = "VERSION")]
    kernel: Option<String>,

    /// When the image says it was made: newest (the time of its newest file), now, or a time;
    /// without it SOURCE_DATE_EPOCH, else newest
    #[arg(long, value_name = "TIME", value_parser = parse_made_at)]
    made_at: Option<MadeAt>,

    /// Place the image so many bytes into the file, keeping what an existing file has before it
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = text::parse_size)]
    pub(super) offset: u64,

    /// Where the image begins in a SOURCE that is an image
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = text::parse_size)]
    source_offset: u64,

    /// The image to pack where a SOURCE holds several, such as the partitions of a disk: p2, or 2
    #[arg(long, visible_alias = "part", value_name = "NAME")]
    source_part: Option<String>,

    /// Take SOURCE for an image that begins with these four characters, where its maker changed
    /// them: hsqs or shsq for little-endian SquashFS of any version, sqsh or qshs for big-endian
    #[arg(long, visible_alias = "magic", value_name = "MAGIC", value_parser = listed(parse_magic, packfs::magics),
        hide_possible_values = true)]
    source_magic: Option<Magic>,

    /// Go on where the own checksum of a SOURCE that is an image is not that of its bytes (EROFS,
    /// cramfs, romfs)
    #[arg(long)]
    ignore_checksum: bool,

    /// A file or block device that holds further data of a SOURCE that is an image; once for each,
    /// in the order in which it lists them
    #[arg(long, value_name = "FILE")]
    device: Vec<PathBuf>,

    /// In which order file contents are placed: small files that share blocks beside those they
    /// have most in common with (similarity, the default), within three shared blocks along the
    /// tree, which the kernel keeps decoded, within SIZE bytes, or at any distance (all; the kernel
    /// reads SquashFS along the tree about half slower then, from slow devices slower still); those
    /// with the same extension and name (kind); everything as the tree goes (path); or as FILE
    /// says: PATH PRIORITY a line, from -32768 to 32767, higher ones first; a directory counts for
    /// all below it
    #[arg(long, value_name = "path|kind|similarity[:SIZE|:all]|FILE", value_parser = parse_order)]
    order: Option<OrderArg>,

    /// Place what FILE lists in front, in that order and apart from all others: contents, shared
    /// blocks and inodes. One path a line, as `packfs mount --record` or find writes them, or each
    /// with a NUL behind it
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Store data as it is where compressing takes less than PERCENT off it: decoding would cost
    /// every reader time for nothing. 0 compresses whatever gets shorter at all
    #[arg(long, value_name = "PERCENT", default_value = "3", value_parser = parse_gain)]
    min_gain: Gain,

    /// How much work a block is worth: what the codec's level means (level, the default), or the
    /// highest level and a bounded search for the smallest result (max), several times slower
    #[arg(long, value_name = "level|max", value_parser = parse_effort)]
    effort: Option<Effort>,

    /// Go on when something cannot be read: files are stored empty, directories left out; what it
    /// was is told at the end, with exit code 1
    #[arg(long)]
    keep_going: bool,

    /// Pack even if the format cannot hold everything in the source, and say what was lost
    #[arg(long)]
    lossy: bool,

    /// Most memory to take, such as 256M, instead of what the control groups allow: short memory
    /// costs threads, never a different image
    #[arg(long, value_name = "BYTES", value_parser = text::parse_size)]
    memory: Option<u64>,

    /// Most bytes of the image, such as 16M, padding included; a longer one is refused before
    /// anything is overwritten, with its length
    #[arg(long, value_name = "SIZE", value_parser = text::parse_size)]
    max_size: Option<u64>,

    /// Try denser codecs, higher levels and larger blocks until the image fits in --max-size or on
    /// the device that IMAGE is; what is given (-c, -b) stays. Each try packs anew, and denser
    /// images are slower to read
    #[arg(long)]
    fit: bool,

    /// Read the image back before it gets its name, and hold it against what was packed, however
    /// much that is; without it, only if the files are shorter than 1 GiB together
    #[arg(long, overrides_with = "no_verify")]
    verify: bool,

    /// Do not read the image back
    #[arg(long, overrides_with = "verify")]
    no_verify: bool,

    /// Do not wait until the image is safely on the disk
    #[arg(long)]
    no_sync: bool,

    /// Tell at the end what takes the space, what took the time, and what could be had
    #[arg(long)]
    report: bool,

    /// Print the summary as a JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    work: Work,

    #[command(flatten)]
    limits: LimitArgs,

    // Last, since its heading would hold for all that comes after.
    #[command(flatten)]
    pub(super) shaping: Shaping,
}

impl Making {
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
                let fault = "--json and the image cannot both go to standard output";
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
                report::warning(&format!("not everything could be read: {count} left out or stored empty"));
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
        let kernel = self.kernel.iter().map(|kernel| ("kernel".to_owned(), kernel.clone()));
        Ok(PackOptions {
            format: self.format.clone(),
            codec: self.codec.clone(),
            block_size: self.block_size,
            optimize: self.optimize.unwrap_or_default(),
            options: kernel.chain(self.options.iter().cloned()).collect(),
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
        let options = OpenOptions::new().offset(self.source_offset);
        let options = match &self.source_part {
            Some(name) => options.part(name),
            None => options,
        };
        let options = match self.source_magic {
            Some(magic) => options.magic(magic),
            None => options,
        };
        let options = if self.ignore_checksum { options.ignore_checksum() } else { options };
        self.device.iter().fold(options, OpenOptions::device)
    }
}

/// What `--order` may be.
#[derive(Clone, Debug)]
enum OrderArg {
    By(Order),
    File(PathBuf),
}

fn parse_order(text: &str) -> Result<OrderArg, String> {
    Ok(OrderArg::By(match (text, text.strip_prefix("similarity:")) {
        ("path", _) => Order::Path,
        ("kind", _) => Order::Kind,
        ("similarity", _) => Order::Similarity { within: None },
        (_, Some("all")) => Order::Similarity { within: Some(u64::MAX) },
        (_, Some(size)) => Order::Similarity { within: Some(text::parse_size(size)?) },
        _ => return Ok(OrderArg::File(text.into())),
    }))
}

fn parse_goal(text: &str) -> Result<Goal, String> {
    Goal::named(text)
        .ok_or_else(|| format!("{text:?} is no goal; write {}", Goal::ALL.map(Goal::name).join(", ")))
}

fn parse_effort(text: &str) -> Result<Effort, String> {
    match text {
        "level" => Ok(Effort::Level),
        "max" => Ok(Effort::Max),
        _ => Err(format!("{text:?} is no effort; write level or max")),
    }
}

fn parse_gain(text: &str) -> Result<Gain, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).parse().ok();
    percent.and_then(Gain::percent).ok_or_else(|| format!("{text:?} is no share to save; write 0 to 49"))
}

fn parse_option(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write NAME=VALUE".into()),
    }
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
