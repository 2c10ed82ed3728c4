//! mkfs.erofs of erofs-utils 1.9.

use crate::common::globs::regex;
use crate::common::numbers::{number, seconds, sized};
use crate::common::parse::{
    Given, Row, Style, Takes, acts, ignored, parse, refused, sets, sets_as, switches,
};
use crate::common::teller::{Form, Teller, told};
use crate::common::{android, block_list, trees, usage};
use crate::erofs::layers::{self, Archive};
use crate::erofs::{digests, hints};
use packfs::source::{
    ArchiveKind, Loaded, Selection, Shape, TarReading, Whiteouts, decoded_file, overlay, with_origins,
};
use packfs::source_date_epoch;
use packfs::{
    Error, ImagePath, Implied, MadeAt, NodeKind, Owner, Pack, PackOptions, PackReport, Result, ResultExt,
    Source, Timestamp, uuid_text,
};
use packfs_terminal::Outcome;
use packfs_terminal::report::{self, Out};
use regex::bytes::Regex;
use std::ffi::OsString;
use std::io::{Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

pub const EROFS_UTILS: &str = "1.9.4";

const REMOTE: &str = "fetch the layer, and pack it with --tar=f";
const BASE: &str = "packfs pack --base OLD SOURCE NEW copies what is unchanged";

const ROWS: &[Row] = &[
    sets_as("-z", "codec", |_, text| Ok(codecs(text)?.into_iter().next().unwrap_or("none".to_owned()))),
    acts("-b", Takes::One),
    acts("-C", Takes::One),
    acts("-d", Takes::One),
    sets_as("-x", "xattrs", |name, text| Ok(if number(name, text)? < 0 { "off" } else { "on" }.to_owned())),
    acts("-E", Takes::One),
    sets("-L", "-O label"),
    acts("-T", Takes::One),
    sets_as("-U", "-O uuid", uuid),
    acts("-m", Takes::One),
    acts("-V --version", Takes::Nothing),
    acts("-h --help", Takes::Nothing),
    acts("--all-time", Takes::Nothing),
    acts("--mkfs-time", Takes::Nothing),
    switches("--all-root", "root-owned"),
    acts("--aufs", Takes::Nothing),
    sets_as("--chunksize", "-O chunks", |name, text| Ok(number(name, text)?.to_string())),
    sets("--blobdev", "-O device"),
    acts("--compress-hints", Takes::One),
    acts("--exclude-path", Takes::One),
    acts("--exclude-regex", Takes::One),
    acts("--file-contexts", Takes::One),
    sets_as("--force-uid", "uid", id),
    sets_as("--force-gid", "gid", id),
    acts("--fs-config-file", Takes::One),
    acts("--fsalignblks", Takes::One),
    acts("--gid-offset", Takes::One),
    acts("--uid-offset", Takes::One),
    acts("--hard-dereference", Takes::Nothing),
    acts("--ignore-mtime", Takes::Nothing),
    acts("--preserve-mtime", Takes::Nothing),
    acts("--mount-point", Takes::One),
    sets_as("--offset", "offset", |name, text| Ok(number(name, text)?.max(0).to_string())),
    acts("--ovlfs-strip", Takes::Attached),
    acts("--quiet", Takes::Nothing),
    acts("--tar", Takes::One),
    sets("--workers", "jobs"),
    sets_as("--xattr-inode-digest", "-O digest-xattr", |_, value| Ok(digests::name_of(value).to_owned()))
        .taking(Takes::Attached),
    acts("--xattr-prefix", Takes::One),
    ignored(
        "--async-queue-limit --dsunit --max-extent-bytes --root-xattr-isize --zfeature-bits",
        Takes::Number,
    ),
    ignored("--product-out --sort", Takes::One),
    acts("--ungzip --gzip --unxz", Takes::Attached),
    acts("--clean", Takes::Attached),
    ignored("--zD --MZ", Takes::Attached),
    acts("--block-list-file", Takes::One),
    refused("--gzinfo", Takes::Attached, "packfs pack reads gzip archives itself"),
    refused("--incremental", Takes::Attached, BASE),
    refused("--oci", Takes::Attached, "packfs pack oci://REGISTRY/NAME:TAG IMAGE packs an OCI image"),
    refused("--s3", Takes::One, REMOTE),
    refused("--vmdk-desc", Takes::One, "layers are merged by packfs pack --merge"),
];

const DEFAULTS: &[&str] = &["format=erofs", "codec=none", "lossy"];

const HELP: &str = "\
  -b# sets the block size, 512 to 4096 bytes; -C# the length of clusters
  -zX[,level=N][,dictsize=N] compresses: lz4, lz4hc, lzma, deflate, libdeflate,
      zstd; -zX:Y names further compressors for --compress-hints
  --tar=f packs an archive, --tar=i an index of it, --tar=headerball its headers";

pub fn run(args: &[OsString]) -> Outcome {
    let given = parse(&[ROWS], Style::Getopt, args)?;
    if given.has("-V") {
        report::line(format_args!(
            "mkfs.erofs (erofs-utils) {EROFS_UTILS} (packfs {})\n\
             available compressors: lz4, lz4hc, lzma, deflate, libdeflate, zstd",
            env!("CARGO_PKG_VERSION")
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    if given.has("-h") {
        let options = usage::table(&[ROWS]);
        report::line(format_args!("Usage: mkfs.erofs [OPTIONS] FILE SOURCE(s)\n\n{options}\n{HELP}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    Job::new(given)?.run()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Image,
    Archive,
    /// Headers of an archive, which keeps the data.
    Index,
}

struct Job {
    given: Given,
    image: PathBuf,
    sources: Vec<PathBuf>,
    made_at: Option<i64>,
    times: Times,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Times {
    Kept,
    /// Clamped to that of the image.
    Clamped,
    /// That of the image.
    Fixed,
}

fn given_number(given: &Given, name: &str) -> Result<Option<i64>> {
    given.text(name)?.map(|text| number(name, text)).transpose()
}

fn given_size(given: &Given, name: &str) -> Result<Option<i64>> {
    given.text(name)?.map(|text| sized(name, text)).transpose()
}

/// Name, codec of packfs, default level, and limits of level and dictionary.
struct Compressor(&'static str, &'static str, i64, Option<i64>, Option<i64>);

const COMPRESSORS: [Compressor; 6] = [
    Compressor("lz4", "lz4", 0, None, None),
    Compressor("lz4hc", "lz4", 9, Some(12), None),
    Compressor("lzma", "lzma", 6, Some(109), Some(8 << 20)),
    Compressor("deflate", "deflate", 1, Some(9), Some(32 << 10)),
    Compressor("libdeflate", "deflate", 1, Some(12), None),
    Compressor("zstd", "zstd", 3, Some(22), Some(1 << 20)),
];

// Codecs after the first are for hints.
fn codecs(text: &str) -> Result<Vec<String>> {
    text.split(':').filter(|text| !text.is_empty()).map(codec).collect()
}

/// Translates a codec of `-z`: `lz4hc,12`, `zstd,level=3,dictsize=65536`.
fn codec(text: &str) -> Result<String> {
    let mut words = text.split(',').filter(|word| !word.is_empty());
    let typed = words.next().unwrap_or_default();
    let found = COMPRESSORS.iter().find(|row| row.0 == typed);
    let &Compressor(_, name, default, level_max, dict_max) = found.ok_or_else(|| {
        Error::usage(format!("compressor \"{typed}\" is not supported"))
            .hint("lz4, lz4hc, lzma, deflate, libdeflate and zstd are")
    })?;
    let name = if typed == "lz4hc" { typed } else { name };
    let bounded = |key: &str, text: &str, most: Option<i64>| {
        let value = number("-z", text)?;
        most.filter(|most| (0..=*most).contains(&value)).map(|_| value).ok_or_else(|| match most {
            Some(most) => Error::usage(format!("-z{typed}: {key} {value} is not in 0 to {most}")),
            None => Error::usage(format!("-z: {typed} has no option {key}")),
        })
    };
    let (mut level, mut dict) = (default, None);
    for word in words {
        match word.split_once('=').unwrap_or(("level", word)) {
            ("level", value) => level = bounded("level", value, level_max)?,
            ("dictsize", value) => dict = Some(bounded("dictsize", value, dict_max)?),
            ("lc" | "lp" | "pb", _) if typed == "lzma" => {}
            (key, _) => return Err(Error::usage(format!("-z: {typed} has no option {key}"))),
        }
    }
    let mut spec = name.to_owned();
    let is_extreme = name == "lzma" && level >= 100;
    if name != "lz4" {
        let level = if is_extreme { level - 100 } else { level };
        spec += &format!(":{}", if name == "zstd" && level == 0 { 3 } else { level });
    }
    if is_extreme {
        spec += ",extreme";
    }
    if let Some(dict) = dict.filter(|dict| name == "lzma" && *dict > 0) {
        spec += &format!(",dict={dict}");
    }
    Ok(spec)
}

fn extended(given: &Given, options: &mut Vec<(String, String)>) -> Result<()> {
    let mut set = |name: &str, value: &str| options.push((name.to_owned(), value.to_owned()));
    let words: Vec<String> = given
        .all("-E")
        .map(|list| list.to_string_lossy().trim_end_matches(',').to_owned())
        .flat_map(|list| list.split(',').map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let (mut fragments, mut inline) = ("off", false);
    for word in &words {
        let (is_off, word) = match word.strip_prefix('^') {
            Some(word) => (true, word),
            None => (false, word.as_str()),
        };
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let on = if is_off { "off" } else { "on" };
        if word.contains('=') && !matches!(name, "fragments" | "all-fragments" | "fragdedupe") {
            return Err(Error::usage(format!("-E: {name} has no value")));
        }
        match name {
            "fragments" if is_off => fragments = "off",
            "fragments" if fragments != "all" => fragments = "tails",
            "fragments" => {}
            "all-fragments" => fragments = if is_off { "off" } else { "all" },
            "ztailpacking" => inline = !is_off,
            "dedupe" => set("dedupe", if is_off { "files" } else { "ranges" }),
            "legacy-compress" => set("index", "full"),
            "force-inode-compact" => set("times", "epoch"),
            "force-chunk-indexes" => set("chunk-indexes", "on"),
            "xattr-name-filter" => set("xattr-filter", on),
            "48bit" => set("48bit", on),
            "dot-omitted" => set("dot-omitted", on),
            "nosbcrc" => set("checksum", "off"),
            // File data is the same.
            "noinline_data"
            | "inline_data"
            | "force-inode-extended"
            | "force-inode-blockmap"
            | "fragdedupe"
            | "plain-xattr-prefixes" => {}
            other => return Err(Error::usage(format!("unknown extended option {other}"))),
        }
        if matches!(name, "fragments" | "all-fragments") && !value.is_empty() {
            set("packed-cluster", &sized("-E fragments", value)?.to_string());
        }
    }
    set("fragments", fragments);
    // Both options together mean tails in fragments.
    if inline && fragments == "off" {
        set("inline-tails", "on");
    }
    Ok(())
}

impl Job {
    fn new(mut given: Given) -> Result<Self> {
        if given.operands.is_empty() {
            return Err(Error::usage("missing argument: FILE"));
        }
        let image = PathBuf::from(given.operands.remove(0));
        let sources: Vec<PathBuf> = given.operands.drain(..).map(PathBuf::from).collect();
        if sources.is_empty() && !given.has("--tar") {
            return Err(Error::usage("missing argument: SOURCE(s)"));
        }
        let made_at = given.text("-T")?.map(|text| seconds("-T", text)).transpose()?;
        // The variable takes precedence over all options.
        let epoch = source_date_epoch::<i64>()?;
        let is_all = given.switched("--all-time", "--mkfs-time", made_at.is_some());
        let times = match epoch {
            Some(_) => Times::Clamped,
            None if is_all => Times::Fixed,
            None => Times::Kept,
        };
        Ok(Job { given, image, sources, made_at: epoch.or(made_at), times })
    }

    fn run(&self) -> Outcome {
        if let Some(mode) = self.given.text("--clean")?.filter(|mode| !matches!(*mode, "" | "data" | "rvsp"))
        {
            number("--clean", mode)?;
        }
        let verbosity = given_number(&self.given, "-d")?.unwrap_or(2);
        if !(0..=9).contains(&verbosity) {
            return Err(Error::usage(format!("invalid debug level {verbosity}")));
        }
        let is_quiet = self.given.has("--quiet") || verbosity == 0;
        let form = if is_quiet { Form::Silent } else { Form::Bar };
        told(form, |teller| self.packed(teller), |report| if is_quiet { Ok(()) } else { self.tell(&report) })
    }

    fn tell(&self, report: &PackReport) -> Result<()> {
        let block = self.block()?;
        let mut out = Out::stdout();
        out.line(format_args!(
            "mkfs.erofs {EROFS_UTILS} (packfs {})\nBuild completed.\n------",
            env!("CARGO_PKG_VERSION")
        ))?;
        let offset = given_number(&self.given, "--offset")?.unwrap_or(0);
        let options = packfs::OpenOptions::new().offset(u64::try_from(offset).unwrap_or(0)).outermost();
        let opened = options.open(&self.image);
        if let Ok(opened) = opened {
            let mut uuid = [0; 16];
            opened.image().read_exact_at(1024 + 48, &mut uuid)?;
            out.line(format_args!("Filesystem UUID: {}", uuid_text(&uuid)))?;
        }
        out.line(format_args!(
            "Filesystem total blocks: {} (of {block}-byte blocks)",
            report.image_len.div_ceil(block)
        ))?;
        out.line(format_args!("Filesystem total inodes: {}", report.nodes))?;
        out.line(format_args!("Filesystem total metadata blocks: {}", report.metadata_len.div_ceil(block)))?;
        out.line(format_args!(
            "Filesystem total deduplicated bytes (of source files): {}",
            report.duplicate_bytes + report.run_bytes
        ))?;
        out.finish()
    }

    fn block(&self) -> Result<u64> {
        let block = given_size(&self.given, "-b")?.unwrap_or(4096);
        let fits =
            u64::try_from(block).ok().filter(|block| (512..=4096).contains(block) && block.is_power_of_two());
        fits.ok_or_else(|| {
            Error::usage(format!("invalid block size {block}"))
                .hint("packfs writes blocks of 512 to 4096 bytes")
        })
    }

    fn options(&self) -> Result<PackOptions> {
        let given = &self.given;
        let block = self.block()?;
        let mut options = given.pack_options(DEFAULTS)?;
        options.made_at = MadeAt::Seconds(self.made_at.unwrap_or_else(now));
        let mut set = |name: &str, value: String| options.options.push((name.to_owned(), value));
        if block != 4096 {
            set("block", block.to_string());
        }
        let chunk = given_number(given, "--chunksize")?.and_then(|chunk| u64::try_from(chunk).ok());
        if let Some(chunk) = chunk.filter(|chunk| *chunk < block) {
            return Err(Error::usage(format!("chunksize {chunk} must be larger than block size")));
        }
        if let (Times::Kept, Some(at)) = (self.times, self.made_at) {
            // A later one would replace the time of the image.
            set("epoch", at.to_string());
        }
        if let Some(blocks) = given_number(given, "--fsalignblks")? {
            set("align", (u64::try_from(blocks).unwrap_or(0).saturating_mul(block)).to_string());
        }
        if let Some(metabox) = given.text("-m")? {
            let (size, algorithm) = metabox.split_once(':').unwrap_or((metabox, "0"));
            let first = given.text("-z")?.unwrap_or_default().split([':', ',']).next().unwrap_or_default();
            if !matches!(algorithm, "" | "0" | "0x0") && algorithm != first {
                return Err(Error::usage(format!("-m{metabox}: metadata have the first compressor of -z"))
                    .hint("name the compressor of metadata first, and others by --compress-hints"));
            }
            set("metabox", sized("-m", size)?.to_string());
        }
        let is_longer = |prefix: &&str| prefix.split_once('.').is_some_and(|(_, rest)| !rest.is_empty());
        // A namespace alone is a prefix of the format.
        let prefixes = given.all("--xattr-prefix").filter_map(|text| text.to_str()).filter(is_longer);
        let prefixes: Vec<&str> = prefixes.collect();
        if !prefixes.is_empty() {
            set("prefixes", prefixes.join("+"));
        }
        extended(given, &mut options.options)?;
        let cluster = self.cluster(block)?;
        // Before Linux 6.18, prefixes would be in the packed inode.
        let is_packed = |(name, value): &(String, String)| name == "fragments" && value != "off";
        let has_prefixes = !given.has("-z") || !options.options.iter().any(is_packed);
        options.options.retain(|(name, _)| has_prefixes || name != "prefixes");
        if !given.has("-z") {
            let of_codecs = ["fragments", "index", "inline-tails", "packed-cluster"];
            options.options.retain(|(name, _)| !of_codecs.contains(&&name[..]));
        } else {
            // The tool makes chunks of what does not compress.
            options.options.retain(|(name, _)| name != "chunks");
            options.block_size = Some(cluster);
        }
        // Linux 5.4 mounts images without holes, of LZ4 or no codec.
        let is_old = given.text("-z")?.is_none_or(|codec| codec.starts_with("lz4"));
        if is_old && !options.options.contains(&("dedupe".to_owned(), "ranges".to_owned())) {
            options.options.push(("holes".to_owned(), "off".to_owned()));
        }
        Ok(options)
    }

    fn cluster(&self, block: u64) -> Result<u32> {
        let cluster = given_size(&self.given, "-C")?.unwrap_or(4096);
        let fits = |cluster: &u32| u64::from(*cluster) >= block && u64::from(*cluster).is_multiple_of(block);
        u32::try_from(cluster).ok().filter(fits).ok_or_else(|| {
            Error::usage(format!("invalid physical clustersize {cluster}"))
                .hint(format!("clusters are whole blocks, of {block} bytes"))
        })
    }

    fn packed(&self, teller: &Teller) -> Result<PackReport> {
        let mut options = self.options()?;
        options.check(&self.image)?;
        if self.mode()? == Mode::Image && layers::are_images(&self.sources) {
            return layers::merged(&self.given, &self.image, &self.sources, &options, teller);
        }
        if self.mode()? == Mode::Index {
            let archive = self.archive(teller)?;
            let loaded = self.loaded(Source::Tar(archive.path().into()), &options.shape, teller)?;
            return layers::indexed(&archive, &self.image, loaded, options, teller);
        }
        let loaded = self.loaded(self.source(teller)?, &options.shape, teller)?;
        if let Some(file) = self.given.last("--compress-hints").filter(|_| self.given.has("-z")) {
            let codecs = codecs(self.given.text("-z")?.unwrap_or_default())?;
            let hints = hints::read(Path::new(file), self.block()?, &codecs)?;
            options.options.extend(hints::rules(&hints, &loaded.tree)?);
        }
        let offset = options.offset;
        let report = Pack::of_loaded(Arc::new(loaded), &self.image).options(options).run_with(teller)?;
        if let Some(map) = self.given.last("--block-list-file") {
            let at = self.given.last("--mount-point").map(OsStrExt::as_bytes).unwrap_or_default();
            block_list::write(&self.image, offset, at, Path::new(map))?;
        }
        Ok(report)
    }

    fn mode(&self) -> Result<Mode> {
        match self.given.text("--tar")? {
            None => Ok(Mode::Image),
            Some(_) if self.sources.len() > 1 => {
                Err(Error::usage(format!("unexpected argument: {:?}", self.sources[1])))
            }
            Some("" | "f" | "full" | "headerball") => Ok(Mode::Archive),
            Some("0" | "i" | "index") => Ok(Mode::Index),
            Some(other) => {
                Err(Error::usage(format!("--tar={other} is not supported; f, i, and headerball are")))
            }
        }
    }

    fn source(&self, teller: &Teller) -> Result<Source> {
        if self.mode()? == Mode::Archive {
            let source = self.first_source();
            return match self.raw() {
                Some(raw) => Ok(Source::Tar(dumped(source, raw, teller)?)),
                None if source == Path::new("-") => Ok(Source::TarStdin),
                None => Ok(Source::Tar(source.into())),
            };
        }
        match &self.sources[..] {
            [dir] if dir.is_dir() => Ok(Source::Directory(dir.clone())),
            dirs if dirs.iter().all(|dir| dir.is_dir()) => Ok(Source::Merged(self.sources.clone())),
            [image] => Source::detect(image),
            _ => Err(Error::usage("several sources have to be directories, or EROFS images")
                .hint("packfs unpack makes a directory of any image")),
        }
    }

    fn first_source(&self) -> &Path {
        self.sources.first().map_or(Path::new("-"), PathBuf::as_path)
    }

    /// File for a decoded archive.
    fn raw(&self) -> Option<&Path> {
        self.given.last("--ungzip").filter(|raw| !raw.is_empty()).map(Path::new)
    }

    /// Decodes a compressed archive of an index.
    fn archive(&self, teller: &Teller) -> Result<Archive> {
        let source = self.first_source();
        match (self.raw(), self.given.has("--ungzip")) {
            (Some(raw), _) => Ok(Archive::File(dumped(source, raw, teller)?)),
            (None, true) => Archive::copied(decoded(source, teller)?),
            (None, false) if source == Path::new("-") => Archive::copied(std::io::stdin()),
            (None, false) => Ok(Archive::File(source.into())),
        }
    }

    /// Wraps at 32 bits.
    fn offset(&self, name: &str) -> Result<u32> {
        Ok(given_number(&self.given, name)?.unwrap_or(0) as u32)
    }

    /// Describes directories without an entry in an archive; their owners are not shifted.
    fn implied(&self) -> Result<Implied> {
        let own = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        let uid = own.0.wrapping_sub(self.offset("--uid-offset")?);
        let gid = own.1.wrapping_sub(self.offset("--gid-offset")?);
        let mtime = Timestamp::from_seconds(self.made_at.unwrap_or_else(now));
        Ok(Implied { mode: 0o777, owner: Owner { uid, gid }, mtime: Some(mtime) })
    }

    /// Compared as unsigned by the tool, so nothing is later than a negative time.
    fn latest(&self) -> Option<i64> {
        self.made_at.filter(|at| self.times == Times::Clamped && *at >= 0)
    }

    fn loaded(&self, source: Source, wanted: &Shape, teller: &Teller) -> Result<Loaded> {
        let given = &self.given;
        let has_marks = given.has("--aufs") && self.mode()? != Mode::Image;
        let mut shape = Shape {
            mtime_max: self.latest().map(Timestamp::from_seconds),
            implied: if self.mode()? == Mode::Image { Implied::default() } else { self.implied()? },
            archives: Some(ArchiveKind::Tar),
            whiteouts: Some(if has_marks { Whiteouts::Overlayfs } else { Whiteouts::Keep }),
            tar: TarReading {
                headers_only: given.last("--tar").is_some_and(|mode| mode == "headerball"),
                implied_inherit: true,
                ..TarReading::default()
            },
            // Owners are set after those of --fs-config-file.
            uid: None,
            gid: None,
            ..wanted.clone()
        };
        if self.times == Times::Fixed || given.switched("--ignore-mtime", "--preserve-mtime", false) {
            shape.mtime = Some(Timestamp::from_seconds(self.made_at.unwrap_or_else(now)));
        }
        shape.select = self.excluded()?;
        if let Ok(found) = std::fs::metadata(&self.image) {
            use std::os::unix::fs::MetadataExt;
            shape.skip.push((found.dev(), found.ino()));
        }
        self.changed(source.load(&shape, teller)?, (wanted.uid, wanted.gid), teller)
    }

    /// Paths start at the root of the image, without a slash: a leading or trailing slash matches
    /// nothing.
    fn excluded(&self) -> Result<Option<Selection>> {
        let all = |name| self.given.all(name).map(OsStrExt::as_bytes);
        let paths: Vec<Vec<u8>> = all("--exclude-path").map(<[u8]>::to_vec).collect();
        let regexes: Vec<Regex> = all("--exclude-regex").map(regex).collect::<Result<_>>()?;
        if paths.is_empty() && regexes.is_empty() {
            return Ok(None);
        }
        if self.mode()? != Mode::Image {
            report::note("mkfs.erofs: --exclude-path and --exclude-regex have no effect on archives");
            return Ok(None);
        }
        for path in paths.iter().filter(|path| path.starts_with(b"/") || path.ends_with(b"/")) {
            let path = packfs::escaped(path);
            report::note(format_args!(
                "mkfs.erofs: --exclude-path={path} excludes nothing: slashes begin or end no path"
            ));
        }
        Ok(Some(Selection::new(move |path| is_excluded(path, &paths, &regexes))))
    }

    fn changed(
        &self,
        loaded: Loaded,
        (uid, gid): (Option<u32>, Option<u32>),
        teller: &Teller,
    ) -> Result<Loaded> {
        let given = &self.given;
        let (more_uid, more_gid) = (self.offset("--uid-offset")?, self.offset("--gid-offset")?);
        let config = android::FsConfig::of(given, "--fs-config-file", "--mount-point")?;
        let has_none = given_number(given, "-x")?.is_some_and(|tolerance| tolerance < 0);
        let contexts =
            android::file_contexts(given, "--file-contexts", "--mount-point")?.filter(|_| !has_none);
        let strips = given.last("--ovlfs-strip").is_some_and(|value| value.is_empty() || value == "1");
        let loaded = if strips { loaded } else { Loaded { tree: with_origins(loaded.tree)?, ..loaded } };
        // Links of archives are kept.
        let is_archive = self.mode()? != Mode::Image;
        let has_links = !given.has("--hard-dereference") || is_archive;
        let loaded = trees::edited(loaded, has_links, |path, node, edit| {
            config.apply(path, edit);
            let owner = &mut edit.meta.owner;
            owner.uid = uid.unwrap_or(owner.uid).wrapping_add(more_uid);
            owner.gid = gid.unwrap_or(owner.gid).wrapping_add(more_gid);
            if let Some(contexts) = &contexts {
                // The tool labels no archives.
                android::label(contexts, path, is_archive, edit);
            }
            if strips {
                edit.xattrs.remove(overlay::OPAQUE[0]);
            }
            Ok(!strips || node.kind != NodeKind::CharDevice(overlay::WHITEOUT_DEVICE))
        })?;
        match given.text("--xattr-inode-digest")? {
            Some(value) => digests::added(loaded, digests::name_of(value), teller),
            None => Ok(loaded),
        }
    }
}

fn decoded(source: &Path, teller: &Teller) -> Result<std::fs::File> {
    let (name, folder) = (format!("{source:?}"), packfs::temporary_folder());
    let reader: Box<dyn Read + Send> = if source == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(source).or_io(|| format!("cannot open {name}"))?)
    };
    let mut decoded = decoded_file(reader, &name, packfs::Limits::default(), &folder, teller)?;
    decoded.rewind().or_io(|| format!("cannot read {name}"))?;
    Ok(decoded)
}

/// Keeps the file, and returns its path.
fn dumped(source: &Path, raw: &Path, teller: &Teller) -> Result<PathBuf> {
    let mut decoded = decoded(source, teller)?;
    let cannot = || format!("cannot write {raw:?}");
    let mut out = std::fs::File::create(raw).or_io(cannot)?;
    std::io::copy(&mut decoded, &mut out).or_io(cannot)?;
    Ok(raw.into())
}

fn is_excluded(path: &ImagePath, paths: &[Vec<u8>], regexes: &[Regex]) -> bool {
    let mut at = path.clone();
    while !at.is_root() {
        let bytes = at.as_bytes();
        if paths.iter().any(|own| own == bytes) || regexes.iter().any(|regex| regex.is_match(bytes)) {
            return true;
        }
        at.pop();
    }
    false
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    i64::try_from(now).unwrap_or(i64::MAX)
}

fn id(name: &str, text: &str) -> Result<String> {
    let id = u32::try_from(number(name, text)?).ok().filter(|id| *id != u32::MAX);
    Ok(id.ok_or_else(|| Error::usage(format!("{name}: invalid id {text:?}")))?.to_string())
}

fn uuid(_: &str, text: &str) -> Result<String> {
    match text {
        "clear" => Ok("none".to_owned()),
        "random" => random_uuid(),
        uuid => Ok(uuid.to_owned()),
    }
}

fn random_uuid() -> Result<String> {
    let mut bytes = [0; 16];
    let mut source = std::fs::File::open("/dev/urandom").or_io(|| "cannot open /dev/urandom")?;
    source.read_exact(&mut bytes).or_io(|| "cannot read /dev/urandom")?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(uuid_text(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_have_levels_of_their_own() {
        let of = |text: &str| codec(text).unwrap();
        assert_eq!(of("lz4"), "lz4");
        assert_eq!(of("lz4hc"), "lz4hc:9");
        assert_eq!(of("lz4hc,12"), "lz4hc:12");
        assert_eq!(of("lzma,109"), "lzma:9,extreme");
        assert_eq!(of("lzma,level=6,dictsize=65536"), "lzma:6,dict=65536");
        assert_eq!(of("zstd,level=22"), "zstd:22");
        assert_eq!((of("libdeflate,12,"), of("lzma,dictsize=0")), ("deflate:12".into(), "lzma:6".into()));
        assert_eq!(codecs(":lz4::zstd,1").unwrap(), ["lz4", "zstd:1"]);
        assert!(codecs("").unwrap().is_empty());
        assert!(["gzip", "lz4:gzip", "lz4:lz4hc,13"].iter().all(|text| codecs(text).is_err()));
    }

    #[test]
    fn extended_options_come_together() {
        let args: Vec<OsString> =
            ["-Eztailpacking", "-Efragments,dedupe", "-Eall-fragments=65536"].map(OsString::from).into();
        let mut options = Vec::new();
        extended(&parse(&[ROWS], Style::Getopt, &args).unwrap(), &mut options).unwrap();
        let options: Vec<String> = options.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(options, ["dedupe=ranges", "packed-cluster=65536", "fragments=all"]);
    }
}
