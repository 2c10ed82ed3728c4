//! gensquashfs and tar2sqfs of squashfs-tools-ng 1.3.

use super::globs;
use super::ng_words::words;
use super::parse::{Given, Row, Style, Takes, acts, ignored, parse, size};
use super::pseudo::quoted;
use super::squash::xattr;
use super::teller::{Form, Teller};
use super::{ng_glob, ng_sort, trees, usage};
use crate::out::Outcome;
use packfs::source::{FileContexts, Loaded, Selection, Shape, TarReading, Whiteouts};
use packfs::{
    Error, ImagePath, MadeAt, Meta, NodeKind, Owner, Pack, PackOptions, PackReport, Result, ResultExt,
    Source, Timestamp, Xattrs,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Version of squashfs-tools-ng whose command lines are read.
pub const NG: &str = "1.3.2";

const COMMON: &[Row] = &[
    acts("--compressor -c", Takes::One),
    acts("--comp-extra -X", Takes::One),
    acts("--num-jobs -j", Takes::One),
    ignored("--queue-backlog -Q", Takes::One),
    acts("--block-size -b", Takes::One),
    acts("--dev-block-size -B", Takes::One),
    acts("--defaults -d", Takes::One),
    acts("--exportable -e", Takes::Nothing),
    acts("--no-tail-packing -T", Takes::Nothing),
    acts("--no-pad", Takes::Nothing),
    acts("--force -f", Takes::Nothing),
    acts("--quiet -q", Takes::Nothing),
    acts("--help -h", Takes::Nothing),
    acts("--version -V", Takes::Nothing),
];

const GEN: &[Row] = &[
    acts("--pack-file -F", Takes::One),
    acts("--pack-dir -D", Takes::One),
    acts("--set-uid -u", Takes::One),
    acts("--set-gid -g", Takes::One),
    acts("--all-root", Takes::Nothing),
    acts("--sort-file -S", Takes::One),
    acts("--selinux -s", Takes::One),
    acts("--xattr-file -A", Takes::One),
    acts("--keep-time -k", Takes::Nothing),
    acts("--keep-xattr -x", Takes::Nothing),
    acts("--one-file-system -o", Takes::Nothing),
];

const TAR: &[Row] = &[
    acts("--root-becomes -r", Takes::One),
    acts("--no-symlink-retarget -S", Takes::Nothing),
    ignored("--no-skip -s", Takes::Nothing),
    acts("--no-xattr -x", Takes::Nothing),
    acts("--no-keep-time -k", Takes::Nothing),
    acts("--exclude-dir -E", Takes::One),
];

/// Prints help or the version.
pub fn answered(name: &str, given: &Given, rows: &[&[Row]]) -> bool {
    if given.has("--version") {
        println!("{name} (squashfs-tools-ng) {NG} (packfs {})", env!("CARGO_PKG_VERSION"));
    } else if given.has("--help") {
        print!("Usage: {name} [OPTIONS...] <squashfs-file>\n\n{}", usage::table(rows));
    }
    given.has("--version") || given.has("--help")
}

/// Runs gensquashfs.
pub fn run_gen(args: &[OsString]) -> Outcome {
    let given = parse(&[GEN, COMMON], Style::Getopt, args)?;
    if answered("gensquashfs", &given, &[GEN, COMMON]) {
        return Ok(ExitCode::SUCCESS);
    }
    if !given.has("--pack-file") && !given.has("--pack-dir") {
        return Err(Error::usage("no input file or directory specified"));
    }
    let defaults = defaults(&given)?;
    packed(&given, |teller| {
        let loaded = generated(&given, defaults, teller)?;
        let order =
            given.last("--sort-file").map(|file| ng_sort::order(Path::new(file), &loaded)).transpose()?;
        Ok((loaded, order))
    })
}

/// Runs tar2sqfs.
pub fn run_tar(args: &[OsString]) -> Outcome {
    let given = parse(&[TAR, COMMON], Style::Getopt, args)?;
    if answered("tar2sqfs", &given, &[TAR, COMMON]) {
        return Ok(ExitCode::SUCCESS);
    }
    let defaults = defaults(&given)?;
    let tar = TarReading { skip_unknown: true, ..TarReading::default() };
    let mut shape = Shape { whiteouts: Some(Whiteouts::Keep), tar, ..Shape::default() };
    if let Some(root) = given.last("--root-becomes") {
        shape.strip_prefix = ImagePath::parse(root.as_bytes())?;
    }
    if given.has("--no-xattr") {
        shape.xattr_exclude.push("*".to_owned());
    }
    if given.has("--no-keep-time") {
        shape.mtime = Some(defaults.mtime);
    }
    let globs: Vec<Vec<u8>> = given.all("--exclude-dir").map(|glob| glob.as_bytes().to_vec()).collect();
    if !globs.is_empty() {
        shape.select = Some(Selection::new(move |path| {
            let mut at = path.clone();
            while !at.is_root() {
                if globs.iter().any(|glob| globs::matches(glob, at.as_bytes())) {
                    return true;
                }
                at.pop();
            }
            false
        }));
    }
    packed(&given, |teller| {
        let loaded = Source::TarStdin.load(&shape, teller)?;
        let keeps_targets = shape.strip_prefix.is_root() || given.has("--no-symlink-retarget");
        let loaded = if keeps_targets { loaded } else { retargeted(loaded, &shape.strip_prefix)? };
        Ok((loaded, None))
    })
}

/// Makes targets of symbolic links below a directory that became the root start at the root.
fn retargeted(loaded: Loaded, root: &ImagePath) -> Result<Loaded> {
    trees::edited(loaded, true, |_, _, edit| {
        if let NodeKind::Symlink(target) = &mut edit.kind
            && let Some(below) = below_root(target, root)
        {
            *target = below.into();
        }
        Ok(true)
    })
}

/// Returns an absolute target in place of one below a directory; `None` for any other.
fn below_root(target: &[u8], root: &ImagePath) -> Option<Vec<u8>> {
    let names = target.split(|&byte| byte == b'/').filter(|name| !name.is_empty() && *name != b".");
    let names: Vec<&[u8]> = names.collect();
    let is_plain = !names.contains(&&b".."[..]);
    let path = names.join(&b'/');
    let rest = path.strip_prefix(root.as_bytes())?.strip_prefix(b"/")?;
    is_plain.then(|| [b"/", rest].concat())
}

/// Returns the metadata of directories without an entry.
fn defaults(given: &Given) -> Result<Meta> {
    let mut meta = Meta { mode: 0o755, ..Meta::default() };
    for word in given.text("--defaults")?.unwrap_or_default().split(',').filter(|word| !word.is_empty()) {
        let wrong = || Error::usage(format!("--defaults: {word:?} is not uid=N, gid=N, mode=N or mtime=N"));
        let (key, value) = word.split_once('=').ok_or_else(wrong)?;
        match key {
            "uid" => meta.owner.uid = value.parse().map_err(|_| wrong())?,
            "gid" => meta.owner.gid = value.parse().map_err(|_| wrong())?,
            "mode" => meta.mode = u16::from_str_radix(value, 8).map_err(|_| wrong())?,
            "mtime" => meta.mtime = Timestamp::from_seconds(value.parse().map_err(|_| wrong())?),
            _ => return Err(wrong()),
        }
    }
    Ok(meta)
}

/// Length that images are padded to if nothing else is asked for.
const DEVICE_BLOCK: u64 = 4096;

/// Returns the length that the image is padded to a multiple of: 1 for none.
fn device_block(given: &Given) -> Result<u64> {
    let block = given.text("--dev-block-size")?.map(|text| size("--dev-block-size", text)).transpose()?;
    match block.unwrap_or(DEVICE_BLOCK) {
        _ if given.has("--no-pad") => Ok(1),
        block if (1024..=1 << 32).contains(&block) => Ok(block),
        _ => Err(Error::usage("Device block size must be at least 1024")),
    }
}

/// Returns a codec of `-c` and `-X` as one of packfs.
fn codec(given: &Given) -> Result<String> {
    let name = given.text("--compressor")?.unwrap_or("xz");
    let mut spec = name.to_owned();
    let (mut filters, mut strategies, mut rest) = (Vec::new(), Vec::new(), String::new());
    for word in given.text("--comp-extra")?.unwrap_or_default().split(',').filter(|word| !word.is_empty()) {
        match word.split_once('=') {
            Some(("level", level)) => spec += &format!(":{level}"),
            Some(("dictsize", size)) => rest += &format!(",dict={size}"),
            Some(("window", size)) => rest += &format!(",window={size}"),
            Some(("alg", name)) => rest += &format!(",variant={}", name.trim_start_matches("lzo1x_")),
            Some(("lc" | "lp" | "pb", _)) => {}
            None if word == "extreme" => rest += ",extreme",
            None if word == "hc" => spec = "lz4hc".to_owned(),
            None if name == "gzip" => strategies.push(word),
            None => filters.push(word),
            Some((key, _)) => return Err(Error::usage(format!("{name} has no option {key}"))),
        }
    }
    for (key, words) in [("bcj", filters), ("strategy", strategies)] {
        if !words.is_empty() {
            rest += &format!(",{key}={}", words.join("+"));
        }
    }
    Ok(spec + &rest)
}

/// Packs what `load` returns: a tree, and a file with an order.
fn packed(
    given: &Given,
    load: impl FnOnce(&Teller) -> Result<(Loaded, Option<tempfile::NamedTempFile>)>,
) -> Outcome {
    let [image] = &given.operands[..] else { return Err(Error::usage("no output file specified")) };
    let image = PathBuf::from(image);
    if image.exists() && !given.has("--force") {
        return Err(Error::usage(format!("{}: File exists", image.display())).hint("--force replaces it"));
    }
    let block = given.text("--block-size")?.map(|text| size("--block-size", text)).transpose()?;
    let block =
        u32::try_from(block.unwrap_or(128 << 10)).map_err(|_| Error::usage("block sizes are 4K to 1M"))?;
    let fragments = if given.has("--no-tail-packing") { "on" } else { "always" };
    let mut options = vec![
        ("fragments".to_owned(), fragments.to_owned()),
        ("exports".to_owned(), if given.has("--exportable") { "on" } else { "off" }.to_owned()),
    ];
    let device_block = device_block(given)?;
    if device_block != DEVICE_BLOCK {
        options.push(("padding".to_owned(), "none".to_owned()));
    }
    let made_at = super::when::source_date_epoch()?.unwrap_or(0);
    let padded = |report: PackReport| -> Result<PackReport> {
        if device_block > 1 && device_block != DEVICE_BLOCK {
            let cannot = || format!("cannot pad {image:?}");
            let file = std::fs::File::options().write(true).open(&image).or_io(cannot)?;
            let len = file.metadata().or_io(cannot)?.len();
            file.set_len(len.next_multiple_of(device_block)).or_io(cannot)?;
        }
        Ok(report)
    };
    let teller = Teller::new(if given.has("--quiet") { Form::Silent } else { Form::Bar });
    let run = || {
        let mut options = PackOptions {
            format: Some("squashfs".into()),
            codec: Some(codec(given)?),
            block_size: Some(block),
            options,
            made_at: MadeAt::Seconds(made_at),
            jobs: given.number::<u16>("--num-jobs")?.map_or(0, usize::from),
            lossy: true,
            ..PackOptions::default()
        };
        options.check(&image)?;
        let (loaded, order) = load(&teller)?;
        options.order_file = order.as_ref().map(|file| file.path().to_owned());
        Pack::of_loaded(Arc::new(loaded), &image).options(options).run_with(&teller)
    };
    let result = run().and_then(padded);
    teller.finish();
    match (result, teller.stopped()) {
        (Err(_), Some(code)) => Ok(ExitCode::from(code)),
        (Err(error), None) => Err(error),
        (Ok(report), _) => {
            if !given.has("--quiet") {
                println!("Data bytes read: {}", report.bytes_in);
                println!("Data bytes written: {}", report.data_len);
                println!("Total number of inodes: {}", report.nodes);
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn generated(given: &Given, defaults: Meta, teller: &Teller) -> Result<Loaded> {
    let mut shape = Shape {
        whiteouts: Some(Whiteouts::Keep),
        one_file_system: given.has("--one-file-system"),
        ..Shape::default()
    };
    if let Some(file) = given.last("--selinux") {
        shape.file_contexts = Some(Arc::new(FileContexts::read(Path::new(file))?));
    }
    let root = given.has("--all-root").then_some(0);
    let (uid, gid) = (given.number("--set-uid")?.or(root), given.number("--set-gid")?.or(root));
    let dir = given.last("--pack-dir").map(PathBuf::from);
    let loaded = match given.last("--pack-file") {
        Some(file) => {
            let lines = pack_file(Path::new(file), dir.as_deref())?;
            shape.additions.add(&lines, "pack file")?;
            let empty = trees::empty(defaults)?;
            packfs::source::shape_tree(&empty.tree, empty.contents, &shape)?
        }
        None => {
            if !given.has("--keep-xattr") {
                shape.xattr_exclude.push("*".to_owned());
            }
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
    let has_labels = given.has("--selinux");
    // Hard links of a directory are files of their own, and the directory itself is not looked at.
    trees::edited(loaded, !is_dir_alone, |path, _, edit| {
        if path.is_root() && is_dir_alone {
            edit.meta = defaults;
        }
        // The tool stores labels without the zero byte at their end.
        if has_labels && let Some(label) = edit.xattrs.get_mut(&b"security.selinux"[..]) {
            label.pop_if(|last| *last == 0);
        }
        let owner = edit.meta.owner;
        edit.meta.owner = Owner { uid: uid.unwrap_or(owner.uid), gid: gid.unwrap_or(owner.gid) };
        Ok(true)
    })
}

/// Sets the attributes of a list as `getfattr --dump` prints it.
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
            let value = match line[equals + 1..].strip_prefix(b"\"") {
                Some(quoted) => [b"0t", quoted.strip_suffix(b"\"").ok_or_else(wrong)?].concat(),
                None => line[equals + 1..].to_vec(),
            };
            let (name, value) = xattr(&[&line[..=equals], &value[..]].concat())?;
            all.entry(path).or_default().insert(name, value);
        }
    }
    trees::edited(loaded, links, |path, _, edit| {
        edit.xattrs.extend(all.get(path).cloned().unwrap_or_default());
        Ok(true)
    })
}

/// Returns the lines of a pack file as entries of a manifest.
fn pack_file(file: &Path, dir: Option<&Path>) -> Result<Vec<Vec<u8>>> {
    let text = std::fs::read(file).or_io(|| format!("cannot read {file:?}"))?;
    let base = dir.or_else(|| file.parent()).unwrap_or(Path::new(""));
    let base = std::path::absolute(if base.as_os_str().is_empty() { Path::new(".") } else { base })
        .or_io(|| "cannot find the directory of the pack file")?;
    let (mut lines, mut made, mut typed) = (Vec::new(), ng_glob::Directories::default(), BTreeSet::new());
    for (index, line) in text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).enumerate() {
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let place = format!("{}:{}", file.display(), index + 1);
        let words = words(line);
        if words.first().is_some_and(|kind| kind == b"glob") {
            lines.extend(ng_glob::entries(&words, &base, &mut made).map_err(|error| error.at(place))?);
            continue;
        }
        if let Some(Ok(path)) = words.get(1).map(|word| ImagePath::parse(word)) {
            match words[0] == b"dir" {
                true => made.add(&path),
                false => made.add_parents(&path),
            }
            if !typed.insert(path.clone()) && !path.is_root() {
                return Err(Error::failed(format!("{path}: File exists")).at(place));
            }
        }
        match words.first().map(Vec::as_slice) {
            Some(b"file") if words.len() >= 5 => {
                let from = words.get(5).unwrap_or(&words[1]);
                let from = from.strip_prefix(b"/").filter(|_| words.len() == 5).unwrap_or(from);
                let from = base.join(std::ffi::OsStr::from_bytes(from));
                let mut entry = b"file ".to_vec();
                entry.extend(quoted(&words[1]));
                let [mode, uid, gid] =
                    [&words[2], &words[3], &words[4]].map(|word| String::from_utf8_lossy(word));
                entry.extend(format!(" mode={mode} uid={uid} gid={gid} from=").bytes());
                entry.extend(quoted(from.as_os_str().as_bytes()));
                lines.push(entry);
            }
            // The rest is the language of manifests, but for quotes.
            _ => {
                let shown: Vec<Vec<u8>> = words
                    .iter()
                    .enumerate()
                    .map(|(at, word)| {
                        if at == 0 || word.iter().all(u8::is_ascii_alphanumeric) {
                            word.clone()
                        } else {
                            quoted(word)
                        }
                    })
                    .collect();
                lines.push(shown.join(&b' '));
            }
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(args: &[&str]) -> String {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        codec(&parse(&[COMMON], Style::Getopt, &args).unwrap()).unwrap()
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
