//! Options of making an image.

use super::time::parse_time;
use super::values::{NAME_AND_VALUE, SIZE, SWITCH, Values, file, on_off, parse_block_len, text, words};
use super::{Mark, Options, source_date_epoch};
use crate::OpenOptions;
use packfs_core::{Goal, Limits, Order, Result};
use packfs_pack::{Effort, Gain};
use packfs_source::Shape;
use std::ffi::OsStr;
use std::path::PathBuf;

/// Time at which an image says that it was made. Never the time of packing unless that is chosen:
/// the same source gives the same bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MadeAt {
    /// The time of the newest file in it, after shaping.
    #[default]
    Newest,
    /// The time of packing.
    Now,
    /// Seconds since 1970.
    Seconds(i64),
}

/// Proof that a file of the source is one of the base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BaseCheck {
    /// Its contents, compared.
    #[default]
    Contents,
    /// Its path, length and time; it is not read.
    Times,
}

packfs_core::words!(BaseCheck: "check of the base", { Contents: "contents", Times: "times" });

/// Value of `order`.
enum Placement {
    By(Order),
    File(PathBuf),
}

const FORMAT: Values<String> = text("NAME").among(|| {
    let all = packfs_formats::all().iter();
    let can_pack = all.filter(|format| format.packer(&packfs_format::PackSettings::default()).is_ok());
    can_pack.map(|format| format.name()).collect()
});
const CODEC: Values<String> = text("CODEC").among(|| {
    let names = packfs_codec::CODECS.iter().map(|row| row.name);
    names.filter(|name| *name != "none").chain(["none"]).collect()
});
const BLOCK_LEN: Values<u32> = Values::new("SIZE", parse_block_len);
const GAIN: Values<Gain> = Values::new("PERCENT", |text| {
    let percent = text.strip_suffix('%').unwrap_or(text).parse().ok();
    percent.and_then(Gain::percent).ok_or_else(|| "not a percentage; use 0 to 49".to_owned())
});
const MADE_AT: Values<MadeAt> = Values::new("TIME", |text| match text {
    "newest" => Ok(MadeAt::Newest),
    "now" => Ok(MadeAt::Now),
    time => parse_time(time).map(|time| MadeAt::Seconds(time.seconds)),
});
const ORDER: Values<Placement> = Values::new("ORDER", |text| match text.parse() {
    Ok(order) => Ok(Placement::By(order)),
    Err(error) if text.starts_with("similarity:") => Err(packfs_core::Error::to_string(&error)),
    Err(_) => Ok(Placement::File(text.into())),
})
.naming(|text| match ORDER.read(text) {
    Ok(Placement::File(file)) => Some(file),
    _ => None,
});

options! {
    /// Options of making an image, by the names that `packfs pack` has for them. `None` leaves the
    /// choice to the format, or to the image that is packed again.
    pub struct PackOptions, with shape: Shape, limits: Limits;

    /// Filters and changes on the way from the source. A tree that is already loaded is packed as
    /// it is.
    shape: Shape = Shape::default();
    /// Way to open a source that is an image. Jobs and limits are those of the fields below.
    source: OpenOptions = OpenOptions::default();
    /// Limits of a source that is an image, a tar or a manifest, and of the base. A directory may
    /// hold anything.
    limits: Limits = Limits::default();
    /// Options that only the format knows, by name and value; [`crate::FormatInfo::options`] lists
    /// them.
    options: Vec<(String, String)> = Vec::new();
    /// Order of small files; `None`: by the goal.
    order: Option<Order> = None;
    /// File with a path and a priority a line, in whose order contents are placed instead.
    order_file: Option<PathBuf> = None;
    /// Threads that compress; 0: one for each processor. The image is the same for any number.
    jobs: usize = 0;

    rows:

    /// Reuse compressed blocks of an earlier image
    ///
    /// Only changed data is compressed; the rest is copied from OLD. Fails if OLD has another
    /// format, codec, level or block size than the new image, so repeat the options of OLD. OLD may
    /// be IMAGE itself, but not a block device that is written in place.
    base: Option<PathBuf> = None, "base", file("OLD"), "Source"
        { marks: &[Mark::Whole, Mark::Anew] };

    /// Detect unchanged files by contents or by times
    ///
    /// contents reads each file and compares it with OLD. times compares only path, size and mtime,
    /// and misses edits that keep the mtime.
    base_check: BaseCheck = BaseCheck::default(), "base-check", words::<BaseCheck>("METHOD"), "Source"
        { default: "contents", needs: Some("base"), marks: &[Mark::Whole, Mark::Anew] };

    /// Continue after read errors
    ///
    /// Files that cannot be opened are left out. Directories that cannot be opened, and files that
    /// fail later, are stored empty. All are listed at the end, with exit code 1.
    keep_going: bool = false, "keep-going", SWITCH, "Source" {};

    /// Set the format, such as erofs; default by extension
    ///
    /// squashfs, erofs, squashfs-legacy, cramfs, iso9660 or cloop. The default follows from the
    /// extension of IMAGE: squashfs without an extension or with .img, .image, .bin or .raw. An
    /// unknown extension is refused.
    format: Option<String> = None, "format", FORMAT, "Format"
        { short: Some('f'), marks: &[Mark::Common] };

    /// Set codec and level, such as zstd:19
    ///
    /// gzip, lzo, lz4, lz4hc, xz, lzma, zstd, deflate or none, as the format supports. Options of
    /// the codec follow after commas; `packfs pack --help` ends with the list. In erofs,
    /// CODEC+CODEC uses two: zstd:15+lz4 stores with LZ4 what it compresses almost as well. The
    /// default depends on the format and on --optimize: for balanced, gzip:9 in squashfs and
    /// lz4hc:12 in erofs.
    codec: Option<String> = None, "codec", CODEC, "Compression"
        { short: Some('c'), marks: &[Mark::Common] };

    /// Set the goal: size, balanced (default), read or build
    ///
    /// size makes the smallest images, read the fastest to read, build the fastest to pack;
    /// balanced makes small images that are fast to read. The goal sets codec, level, block size
    /// and order; other options override it.
    optimize: Goal = Goal::default(), "optimize", words::<Goal>("GOAL"), "Compression"
        { marks: &[Mark::Common] };

    /// Set block size (in erofs cluster size), such as 128K
    ///
    /// squashfs has powers of two from 4K to 1M, erofs multiples of its filesystem block (-O block)
    /// up to 1M. Larger blocks make smaller images and slower random reads. The default depends on
    /// --optimize: for balanced, 128K in squashfs and 64K in erofs.
    block_size: Option<u32> = None, "block-size", BLOCK_LEN, "Compression"
        { short: Some('b'), marks: &[Mark::Common] };

    /// Set the creation time of the image
    ///
    /// newest is the time of the newest file, now the time of packing. The default is
    /// SOURCE_DATE_EPOCH, else newest.
    made_at: MadeAt = MadeAt::default(), "made-at", MADE_AT, "Format" {};

    /// Place the files listed in FILE first, in that order
    ///
    /// Stores their data, fragments and inodes first, apart from all others. FILE holds one path a
    /// line, as written by `packfs mount --record` or find, or paths separated by NUL. --order
    /// applies to the rest.
    trace: Option<PathBuf> = None, "trace", file("FILE"), "Layout" {};

    /// Compress only data that shrinks by PERCENT or more
    ///
    /// Other data is stored uncompressed, which saves decoding time on every read. 0 compresses
    /// everything that shrinks.
    min_gain: Gain = Gain::default(), "min-gain", GAIN, "Compression" { default: "3" };

    /// Set the effort for each block: level (default) or max
    ///
    /// level compresses as the level of the codec says. max uses the highest level and a bounded
    /// search for the smallest result, and takes several times longer.
    effort: Effort = Effort::default(), "effort", words::<Effort>("EFFORT"), "Compression" {};

    /// End the image so that others can follow it in a merge
    ///
    /// An EROFS image ends its packed inode at a whole block, so that those of others fit behind
    /// it. Shards of a plan are always packed so.
    for_merging: bool = false, "for-merging", SWITCH, "Format" { marks: &[Mark::Whole] };

    /// Drop attributes that the format cannot represent
    ///
    /// The losses are listed. Without it, packing fails if such attributes would be lost; smaller
    /// losses, such as fractions of seconds, only cause a warning.
    lossy: bool = false, "lossy", SWITCH, "Format" { marks: &[Mark::Common] };

    /// Limit memory, such as 256M
    ///
    /// The default is the limit of the control group. Less memory means fewer threads and never
    /// changes the image.
    memory: Option<u64> = None, "memory", SIZE, "Resources" { marks: &[Mark::Run] };

    /// Write the image at this offset of the output
    ///
    /// The bytes of an existing file before the offset are kept.
    offset: u64 = 0, "offset", SIZE, "Output" { default: "0", marks: &[Mark::Whole] };

    /// Fail if the image exceeds SIZE, such as 16M
    ///
    /// Padding counts. The error states the length, and an existing file or device stays unchanged.
    max_size: Option<u64> = None, "max-size", SIZE, "Output" { marks: &[Mark::Common, Mark::Whole] };

    /// Use denser settings until the image fits in --max-size
    ///
    /// Tries denser codecs, higher levels and larger blocks. Without --max-size, IMAGE must be a
    /// block device, whose size is the limit. Options that are given (-c, -b) stay. Each try packs
    /// anew, and denser images are slower to read. Samples of the files show first if no settings
    /// can be enough; the error then names what to leave out.
    fit: bool = false, "fit", SWITCH, "Output" { marks: &[Mark::Whole] };

    /// Read the image back and compare it with the source
    ///
    /// The default for sources with less than 1 GiB of file data. Runs before the image gets its
    /// name.
    verify: Option<bool> = None, "verify", on_off("Skip the check against the source (default over 1 GiB)"),
        "Output" { marks: &[Mark::Common, Mark::Run] };

    /// Wait until the image is on the disk (default)
    sync: bool = true, "sync", on_off("Do not wait until the image is on the disk"), "Output"
        { marks: &[Mark::Run] };

    effects:

    /// Set the order of file data in the image
    ///
    /// similarity places small files beside similar ones, as far apart as the kernel reads
    /// efficiently. similarity:SIZE searches within SIZE bytes, similarity:all everywhere: smaller
    /// images, slower reads in path order. kind sorts by extension and name, path keeps the order
    /// of paths. Any other value is a FILE with lines of PATH PRIORITY, from -32768 to 32767,
    /// highest first; the priority of a directory applies to everything below it. The default is
    /// similarity; with --optimize size similarity:all, with --optimize read path.
    "order", ORDER, "Layout" {}, |options, order| match order {
        Placement::By(order) => (options.order, options.order_file) = (Some(order), None),
        Placement::File(file) => options.order_file = Some(file),
    };

    /// Use only features of this Linux version, such as 6.1
    ///
    /// For erofs and squashfs; the same as -O kernel=VERSION. The default of erofs is 6.1, or the
    /// first version that supports all given options. squashfs refuses codecs that the version does
    /// not read.
    "kernel", text("VERSION"), "Format" {},
    |options, version| options.options.push(("kernel".to_owned(), version));

    /// Set a format option, such as fragments=always
    ///
    /// May be given several times. `packfs pack --help` ends with the options of each format.
    "option", NAME_AND_VALUE, "Format"
        { short: Some('O'), also: &["format-options"], marks: &[Mark::Common] },
    |options, option| options.options.push(option);
}

impl PackOptions {
    /// Returns options of names and texts, as [`Options::with_texts`] takes them. What they leave
    /// open follows `SOURCE_DATE_EPOCH`.
    ///
    /// Errors: `Usage`; those of files that options name.
    pub fn of_texts<T: AsRef<OsStr>>(texts: impl IntoIterator<Item = (impl AsRef<str>, T)>) -> Result<Self> {
        let epoch = source_date_epoch::<i64>()?;
        let made_at = epoch.map_or_else(MadeAt::default, MadeAt::Seconds);
        let mut options = PackOptions { made_at, ..PackOptions::default() }.with_texts(texts)?;
        super::time::clamp(&mut options.shape, epoch);
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn an_order_is_a_word_or_else_a_file() {
        let read = |text: &str| ORDER.read(OsStr::new(text));
        for (text, wanted) in [
            ("path", Order::Path),
            ("kind", Order::Kind),
            ("similarity", Order::Similarity(None)),
            ("similarity:8M", Order::Similarity(Some(8 << 20))),
            ("similarity:all", Order::Similarity(Some(u64::MAX))),
        ] {
            assert!(matches!(read(text), Ok(Placement::By(order)) if order == wanted), "{text}");
        }
        assert!(read("similarity:much").is_err());
        assert!(matches!(read("./path"), Ok(Placement::File(file)) if file == Path::new("./path")));
    }
}
