//! gensquashfs and tar2sqfs of squashfs-tools-ng 1.3.

use crate::common::numbers::{bytes, number, size};
use crate::common::parse::{Given, Row, Style, Takes, acts, ignored, parse, sets, sets_as, switches};
use crate::common::teller::{Form, Teller, told};
use crate::common::{android, globs, trees, usage};
use crate::ng::{list, sort};
use crate::squash::options::xattr;
use packfs::source::{ArchiveKind, Loaded, Selection, Shape, TarReading};
use packfs::source_date_epoch;
use packfs::{
    Error, ImagePath, Implied, MadeAt, Meta, NodeKind, Owner, Pack, PackReport, Result, ResultExt, Source,
    Timestamp, Xattrs,
};
use packfs_terminal::{Outcome, report};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

pub const NG: &str = "1.3.2";

const COMMON: &[Row] = &[
    acts("--compressor -c", Takes::One),
    acts("--comp-extra -X", Takes::One),
    sets("--num-jobs -j", "jobs"),
    ignored("--queue-backlog -Q", Takes::One),
    sets_as("--block-size -b", "block-size", bytes),
    acts("--dev-block-size -B", Takes::One),
    acts("--defaults -d", Takes::One),
    switches("--exportable -e", "-O exports=on"),
    switches("--no-tail-packing -T", "-O fragments=on"),
    acts("--no-pad", Takes::Nothing),
    acts("--force -f", Takes::Nothing),
    acts("--quiet -q", Takes::Nothing),
    acts("--help -h", Takes::Nothing),
    acts("--version -V", Takes::Nothing),
];

const GEN: &[Row] = &[
    acts("--pack-file -F", Takes::One),
    acts("--pack-dir -D", Takes::One),
    sets_as("--set-uid -u", "uid", id),
    sets_as("--set-gid -g", "gid", id),
    switches("--all-root", "root-owned"),
    acts("--sort-file -S", Takes::One),
    sets("--selinux -s", "file-contexts"),
    acts("--xattr-file -A", Takes::One),
    acts("--keep-time -k", Takes::Nothing),
    switches("--keep-xattr -x", "xattrs"),
    switches("--one-file-system -o", "one-file-system"),
];

const TAR: &[Row] = &[
    sets("--root-becomes -r", "strip-prefix"),
    acts("--no-symlink-retarget -S", Takes::Nothing),
    ignored("--no-skip -s", Takes::Nothing),
    switches("--no-xattr -x", "xattrs=off"),
    acts("--no-keep-time -k", Takes::Nothing),
    acts("--exclude-dir -E", Takes::One),
];

const DEFAULTS: &[&str] = &[
    "format=squashfs",
    "block-size=128K",
    "lossy",
    "whiteouts=keep",
    "-O fragments=always",
    "-O exports=off",
];

/// Truncated to 32 bits, as by the tool.
fn id(name: &str, text: &str) -> Result<String> {
    Ok((number(name, text)? as u32).to_string())
}

// The last one may have a comma after it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.strip_suffix(',').unwrap_or(text).split(',').filter(|_| !text.is_empty())
}

pub fn answered(name: &str, given: &Given, rows: &[&[Row]]) -> Result<bool> {
    let is_help = given.has("--help") || given.last("--comp-extra").is_some_and(|text| text == "help");
    if given.has("--version") {
        let version = env!("CARGO_PKG_VERSION");
        report::line(format_args!("{name} (squashfs-tools-ng) {NG} (packfs {version})"))?;
    } else if is_help {
        let options = usage::table(rows);
        report::print(format_args!("Usage: {name} [OPTIONS...] <squashfs-file>\n\n{options}"))?;
    }
    Ok(given.has("--version") || is_help)
}

pub fn run_gen(args: &[OsString]) -> Outcome {
    let given = parse(&[GEN, COMMON], Style::Getopt, args)?;
    if answered("gensquashfs", &given, &[GEN, COMMON])? {
        return Ok(ExitCode::SUCCESS);
    }
    if !given.has("--pack-file") && !given.has("--pack-dir") {
        return Err(Error::usage("no input file or directory specified"));
    }
    let defaults = defaults(&given)?;
    let more: &[&str] = if given.has("--pack-file") { &[] } else { &["xattrs=off"] };
    packed(&given, defaults, more, |shape, teller| {
        let loaded = generated(&given, defaults, shape, teller)?;
        let order =
            given.last("--sort-file").map(|file| sort::order(Path::new(file), &loaded)).transpose()?;
        Ok((loaded, order))
    })
}

pub fn run_tar(args: &[OsString]) -> Outcome {
    let given = parse(&[TAR, COMMON], Style::Getopt, args)?;
    if answered("tar2sqfs", &given, &[TAR, COMMON])? {
        return Ok(ExitCode::SUCCESS);
    }
    let defaults = defaults(&given)?;
    let globs = given.all("--exclude-dir").map(|glob| ImagePath::parse(glob.as_bytes()));
    let globs: Vec<ImagePath> = globs.collect::<Result<_>>()?;
    let excludes = Arc::new(move |path: &ImagePath| {
        globs.iter().any(|glob| globs::matches_plain(glob.as_bytes(), path.as_bytes()))
    });
    packed(&given, defaults, &[], |mut shape, teller| {
        shape.archives = Some(ArchiveKind::Tar);
        shape.tar = TarReading { skip_unknown: true, ..TarReading::default() };
        if given.has("--no-keep-time") {
            shape.mtime = Some(defaults.mtime);
        }
        // Each entry is matched separately: contents of an excluded directory are kept.
        let select = excludes.clone();
        shape.select = Some(Selection::new(move |path| select(path)));
        let loaded = Source::TarStdin.load(&shape, teller)?;
        let root = Some(&shape.strip_prefix).filter(|root| !root.is_root());
        let retargets = root.filter(|_| !given.has("--no-symlink-retarget"));
        let loaded = trees::edited(loaded, true, |path, _, edit| {
            if path.is_root() && root.is_none() && excludes(path) {
                (edit.meta, edit.xattrs) = (defaults, Xattrs::new());
            }
            if let NodeKind::Symlink(target) = &mut edit.kind {
                edit.meta.mode = 0o777;
                // Absolute targets below a directory that became the root.
                if let Some(below) = retargets.and_then(|root| below_root(target, root)) {
                    *target = below.into();
                }
            }
            Ok(true)
        })?;
        Ok((loaded, None))
    })
}

fn below_root(target: &[u8], root: &ImagePath) -> Option<Vec<u8>> {
    let names = target.split(|&byte| byte == b'/').filter(|name| !name.is_empty() && *name != b".");
    let names: Vec<&[u8]> = names.collect();
    let is_plain = !names.contains(&&b".."[..]);
    let path = names.join(&b'/');
    let rest = path.strip_prefix(root.as_bytes())?.strip_prefix(b"/")?;
    is_plain.then(|| [b"/", rest].concat())
}

/// Metadata of the root and of directories without an entry; its time is the default.
fn defaults(given: &Given) -> Result<Meta> {
    let mut meta = Implied::default().meta(Some(Timestamp::from_seconds(epoch())));
    for word in words(given.text("--defaults")?.unwrap_or_default()) {
        let wrong = || Error::usage(format!("--defaults: {word:?} is not uid=N, gid=N, mode=N or mtime=N"));
        let (key, value) = word.split_once('=').ok_or_else(wrong)?;
        // Modes are octal only with a leading zero.
        let most = if key == "mode" { 0o7777 } else { i32::MAX };
        let value = number(key, value)?;
        let value = i32::try_from(value).ok().filter(|value| (0..=most).contains(value)).ok_or_else(wrong)?;
        match key {
            "uid" => meta.owner.uid = value.unsigned_abs(),
            "gid" => meta.owner.gid = value.unsigned_abs(),
            "mode" => meta.mode = u16::try_from(value).map_err(|_| wrong())?,
            "mtime" => meta.mtime = Timestamp::from_seconds(i64::from(value)),
            _ => return Err(wrong()),
        }
    }
    Ok(meta)
}

/// Warns of an invalid number, as the tool does.
fn epoch() -> i64 {
    source_date_epoch::<u32>().map_or_else(
        |error| {
            report::note(format_args!("WARNING: {error}"));
            0
        },
        |epoch| epoch.unwrap_or(0),
    )
}

const STORED: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];

/// Default padding.
const DEVICE_BLOCK: u64 = 4096;

/// 1 without padding.
fn device_block(given: &Given) -> Result<u64> {
    let block = given.text("--dev-block-size")?.map(|text| size("--dev-block-size", text)).transpose()?;
    match block.unwrap_or(DEVICE_BLOCK) {
        _ if given.has("--no-pad") => Ok(1),
        block if block >= 1024 => Ok(block),
        _ => Err(Error::usage("Device block size must be at least 1024")),
    }
}

/// Name, words of `-X`, ranges of numbers.
struct Compressor(&'static str, &'static [&'static str], &'static [(&'static str, i64, i64)]);

const STRATEGIES: &[&str] = &["default", "filtered", "huffman", "rle", "fixed"];
const FILTERS: &[&str] = &["x86", "powerpc", "ia64", "arm", "armthumb", "sparc", "extreme"];
const OF_LZMA: &[(&str, i64, i64)] = &[("level", 0, 9), ("lc", 0, 4), ("lp", 0, 4), ("pb", 0, 4)];

const COMPRESSORS: [Compressor; 6] = [
    Compressor("gzip", STRATEGIES, &[("level", 1, 9), ("window", 8, 15)]),
    Compressor("xz", FILTERS, OF_LZMA),
    Compressor("lzma", &["extreme"], OF_LZMA),
    Compressor("lzo", &[], &[("level", 0, 9)]),
    Compressor("lz4", &["hc"], &[]),
    Compressor("zstd", &[], &[("level", 1, 22)]),
];

fn codec(given: &Given) -> Result<String> {
    let name = given.text("--compressor")?.unwrap_or("xz");
    let found = COMPRESSORS.iter().find(|row| row.0 == name);
    let Compressor(_, flags, ranges) =
        found.ok_or_else(|| Error::usage(format!("Unsupported compressor '{name}'")))?;
    let block = given.text("--block-size")?.map(|text| size("--block-size", text)).transpose()?;
    let (mut spec, mut level, mut variant) = (name.to_owned(), None, "999");
    let (mut filters, mut strategies, mut rest) = (Vec::new(), Vec::new(), String::new());
    for word in words(given.text("--comp-extra")?.unwrap_or_default()) {
        let unknown = || Error::usage(format!("Unknown compressor option '{word}'"));
        if let Some(&(key, least, most)) =
            ranges.iter().find(|(key, ..)| word.split('=').next() == Some(*key))
        {
            let value = word.split_once('=').and_then(|(_, value)| number(key, value).ok());
            let value = value.filter(|value| (least..=most).contains(value));
            let value = value.ok_or_else(|| {
                Error::usage(format!("`{key}` must be a number between {least} and {most}"))
            })?;
            match key {
                "level" => level = Some(value),
                "window" => rest += &format!(",window={value}"),
                _ => {}
            }
            continue;
        }
        match word.split_once('=') {
            Some(("dictsize", text)) if matches!(name, "xz" | "lzma") => {
                // Blocks have no use for a longer one.
                let most = block.unwrap_or(128 << 10).max(8 << 10);
                let len = size("dictsize", text).map(|len| len.min(most).to_string());
                rest += &format!(",dict={}", len.unwrap_or(text.to_owned()));
            }
            Some(("algorithm", text)) if name == "lzo" => {
                variant = text.trim_start_matches("lzo1x_");
                rest += &format!(",variant={variant}");
            }
            None if !flags.contains(&word) => return Err(unknown()),
            None if word == "extreme" => rest += ",extreme",
            None if word == "hc" => spec = "lz4hc".to_owned(),
            None if name == "gzip" => strategies.push(word),
            None => filters.push(word),
            Some(_) => return Err(unknown()),
        }
    }
    for (key, words) in [("bcj", filters), ("strategy", strategies)] {
        if !words.is_empty() {
            rest += &format!(",{key}={}", words.join("+"));
        }
    }
    // Other variants of LZO have no levels.
    let level = level.filter(|_| variant == "999").map(|level| format!(":{level}"));
    Ok(spec + &level.unwrap_or_default() + &rest)
}

/// `load` returns a tree, and a file with an order. The image has the default time.
fn packed(
    given: &Given,
    defaults: Meta,
    more: &[&'static str],
    load: impl FnOnce(Shape, &Teller) -> Result<(Loaded, Option<tempfile::NamedTempFile>)>,
) -> Outcome {
    let [image] = &given.operands[..] else { return Err(Error::usage("no output file specified")) };
    let image = PathBuf::from(image);
    if image.exists() && !given.has("--force") {
        return Err(Error::usage(format!("{}: File exists", image.display())).hint("--force replaces it"));
    }
    let mut options = given.pack_options(&[DEFAULTS, more].concat())?;
    options.made_at = MadeAt::Seconds(defaults.mtime.seconds);
    options.shape.implied = defaults.into();
    let device_block = device_block(given)?;
    if device_block != DEVICE_BLOCK {
        options.options.push(("padding".to_owned(), "none".to_owned()));
    }
    let padded = |report: PackReport| -> Result<PackReport> {
        if device_block > 1 && device_block != DEVICE_BLOCK {
            let cannot = || format!("cannot pad {image:?}");
            let file = std::fs::File::options().write(true).open(&image).or_io(cannot)?;
            let len = file.metadata().or_io(cannot)?.len();
            file.set_len(len.checked_next_multiple_of(device_block).unwrap_or(u64::MAX)).or_io(cannot)?;
        }
        Ok(report)
    };
    let run = |teller: &Teller| {
        options.codec = Some(codec(given)?);
        options.check(&image)?;
        let (loaded, order) = load(options.shape.clone(), teller)?;
        options.order_file = order.as_ref().map(|file| file.path().to_owned());
        Pack::of_loaded(Arc::new(loaded), &image).options(options).run_with(teller).and_then(padded)
    };
    if given.has("--quiet") {
        return told(Form::Silent, run, |_| Ok(()));
    }
    told(Form::Bar, run, |packed| {
        report::line(format_args!(
            "Data bytes read: {}\nData bytes written: {}\nTotal number of inodes: {}",
            packed.bytes_in, packed.data_len, packed.nodes
        ))
    })
}

fn generated(given: &Given, defaults: Meta, mut shape: Shape, teller: &Teller) -> Result<Loaded> {
    // Entries of pack files get them, too.
    let (uid, gid, contexts) = (shape.uid.take(), shape.gid.take(), shape.file_contexts.take());
    let dir = given.last("--pack-dir").map(PathBuf::from);
    let loaded = match given.last("--pack-file") {
        Some(file) => {
            let lines = list::entries(Path::new(file), dir.as_deref(), defaults)?;
            shape.additions.add(&lines, "pack file")?;
            let empty = trees::empty(defaults)?;
            packfs::source::shape_tree(&empty.tree, empty.contents, &shape)?
        }
        None => {
            if !given.has("--keep-time") {
                shape.mtime = Some(defaults.mtime);
            }
            Source::Directory(dir.unwrap_or_default()).load(&shape, teller)?
        }
    };
    let is_dir_alone = !given.has("--pack-file");
    let loaded = match given.last("--xattr-file") {
        Some(file) => with_xattrs(loaded, Path::new(file), !is_dir_alone)?,
        None => loaded,
    };
    // Hard links of a directory become separate files, and the directory itself is ignored.
    trees::edited(loaded, !is_dir_alone, |path, _, edit| {
        if path.is_root() && is_dir_alone {
            edit.meta = defaults;
        }
        if let Some(contexts) = &contexts {
            android::label(contexts, path, false, edit);
        }
        let is_stored = |name: &&Vec<u8>| STORED.iter().any(|prefix| name.starts_with(prefix));
        if let Some(name) = edit.xattrs.keys().find(|name| !is_stored(name)) {
            return Err(Error::failed(format!("{path}: cannot store {}", packfs::escaped(name))));
        }
        let owner = edit.meta.owner;
        edit.meta.owner = Owner { uid: uid.unwrap_or(owner.uid), gid: gid.unwrap_or(owner.gid) };
        Ok(true)
    })
}

/// Parses the format of `getfattr --dump`.
fn with_xattrs(loaded: Loaded, file: &Path, links: bool) -> Result<Loaded> {
    let text = std::fs::read(file).or_io(|| format!("cannot read {file:?}"))?;
    let (mut all, mut path): (BTreeMap<ImagePath, Xattrs>, _) = (BTreeMap::new(), None);
    for line in text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()) {
        let wrong = || Error::usage(format!("{file:?}: invalid line \"{}\"", packfs::escaped(line)));
        if let Some(rest) = line.strip_prefix(b"# file: ") {
            path = Some(ImagePath::parse(rest)?);
        } else if !line.starts_with(b"#") {
            let path = path.clone().ok_or_else(wrong)?;
            let equals = line.iter().position(|&byte| byte == b'=').ok_or_else(wrong)?;
            let (name, value) = match &line[equals + 1..] {
                [b'0', b'x' | b'X' | b's' | b'S', ..] => xattr(line)?,
                [b'"', text @ .., b'"'] | text => (line[..equals].to_vec(), unescaped(text)),
            };
            // The first value of a name counts.
            all.entry(path).or_default().entry(name).or_insert(value);
        }
    }
    trees::edited(loaded, links, |path, _, edit| {
        edit.xattrs.extend(all.get(path).cloned().unwrap_or_default());
        Ok(true)
    })
}

/// Text of getfattr: octal digits, quotes, and backslashes after a backslash.
fn unescaped(mut text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some((&first, rest)) = text.split_first() {
        let digits = rest.iter().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
        let (byte, behind) = match rest.first() {
            Some(&escaped @ (b'\\' | b'"')) if first == b'\\' => (escaped, &rest[1..]),
            Some(_) if first == b'\\' && digits > 0 => {
                let value =
                    rest[..digits].iter().fold(0_u32, |value, digit| value << 3 | u32::from(digit - b'0'));
                (value as u8, &rest[digits..])
            }
            _ => (first, rest),
        };
        bytes.push(byte);
        text = behind;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(args: &[&str]) -> String {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        codec(&parse(&[COMMON], Style::Getopt, &args).unwrap()).unwrap()
    }

    #[test]
    fn values_are_decoded_as_getfattr_writes_them() {
        assert_eq!(unescaped(br#"a \"b\" \\ \1019\q\"#), br#"a "b" \ A9\q\"#);
    }

    #[test]
    fn defaults_are_numbers_as_c_reads_them() {
        let of =
            |text: &str| defaults(&parse(&[COMMON], Style::Getopt, &["-d".into(), text.into()]).unwrap());
        let meta = of("uid=5,gid=0x6,mode=0711,mtime=99").unwrap();
        assert_eq!((meta.owner, meta.mode), (Owner { uid: 5, gid: 6 }, 0o711));
        assert_eq!((meta.mtime.seconds, of("mode=448").unwrap().mode), (99, 0o700));
        for wrong in ["mode=010000", "uid=-1", "mtime=2147483648", "size=1", "uid"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn extra_options_of_codecs_are_those_of_packfs() {
        assert_eq!(
            spec(&["-c", "xz", "-X", "level=9,extreme,x86,dictsize=100%"]),
            "xz:9,extreme,dict=100%,bcj=x86"
        );
        assert_eq!(spec(&["-cgzip", "-Xwindow=15,huffman"]), "gzip,window=15,strategy=huffman");
        assert_eq!(spec(&["-c", "zstd", "-X", "level=3"]), "zstd:3");
        assert_eq!(spec(&[]), "xz");
    }
}
