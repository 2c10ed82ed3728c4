//! Options that mksquashfs and sqfstar share, as settings of the library.

use super::modes::Modes;
use crate::common::globs::{self, regex};
use crate::common::numbers::{bytes, decimal, size};
use crate::common::parse::{Given, Row, Takes, acts, ignored, sets_as, switches};
use crate::common::users::Ids;
use crate::common::when;
use ct_codecs::{Base64NoPadding, Decoder};
use packfs::source_date_epoch;
use packfs::{Error, Implied, Meta, NodeId, Owner, PackOptions, Result, Timestamp, Tree, Xattrs};
use regex::bytes::Regex;
use std::ffi::OsStr;
use std::num::NonZeroU16;
use std::os::unix::ffi::OsStrExt;

pub const ROWS: &[Row] = &[
    sets_as("-b", "block-size", bytes),
    acts("-comp", Takes::One),
    acts("-noI -noInodeCompression", Takes::Nothing),
    acts("-noId -noIdTableCompression", Takes::Nothing),
    acts("-noD -noDataCompression", Takes::Nothing),
    acts("-noF -noFragmentCompression", Takes::Nothing),
    acts("-noX -noXattrCompression", Takes::Nothing),
    acts("-no-compression", Takes::Nothing),
    acts("-Xcompression-level", Takes::One),
    acts("-Xwindow-size", Takes::One),
    acts("-Xstrategy", Takes::One),
    acts("-Xalgorithm", Takes::One),
    acts("-Xhc", Takes::Nothing),
    acts("-Xacceleration", Takes::One),
    acts("-Xbcj", Takes::One),
    acts("-Xdict-size", Takes::One),
    acts("-Xpreset", Takes::One),
    acts("-Xe", Takes::Nothing),
    ignored("-Xlc", Takes::One),
    ignored("-Xlp", Takes::One),
    ignored("-Xpb", Takes::One),
    switches("-exports", "-O exports=on"),
    switches("-no-exports", "-O exports=off"),
    switches("-no-sparse", "-O holes=off"),
    switches("-tailends -always-use-fragments", "-O fragments=always"),
    switches("-no-tailends", "-O fragments=on"),
    acts("-no-fragments", Takes::Nothing),
    switches("-no-duplicates", "-O duplicates=keep"),
    acts("-no-hardlinks", Takes::Nothing),
    acts("-mkfs-time -fstime -fixed-time", Takes::One),
    acts("-inode-time -all-time", Takes::One),
    acts("-root-time", Takes::One),
    acts("-repro", Takes::Nothing),
    acts("-repro-time", Takes::One),
    ignored("-reproducible -not-reproducible", Takes::Nothing),
    acts("-all-root -root-owned", Takes::Nothing),
    acts("-root-mode", Takes::One),
    acts("-root-uid", Takes::One),
    acts("-root-gid", Takes::One),
    acts("-force-file-mode", Takes::One),
    acts("-force-dir-mode", Takes::One),
    acts("-force-uid", Takes::One),
    acts("-force-gid", Takes::One),
    acts("-uid-gid-offset", Takes::One),
    acts("-default-mode", Takes::One),
    acts("-default-uid", Takes::One),
    acts("-default-gid", Takes::One),
    acts("-numeric-owner", Takes::Nothing),
    acts("-ignore-zeros", Takes::Nothing),
    acts("-p", Takes::One),
    acts("-pf", Takes::One),
    acts("-pd -pseudo-dir", Takes::One),
    acts("-pseudo-override", Takes::Nothing),
    acts("-ef", Takes::One),
    acts("-regex", Takes::Nothing),
    switches("-no-xattrs", "xattrs=off"),
    switches("-xattrs", "xattrs"),
    switches("-xattrs-exclude", "xattrs").taking(Takes::One),
    switches("-xattrs-include", "xattrs").taking(Takes::One),
    switches("-xattrs-add", "xattrs").taking(Takes::One),
    switches("-exit-on-error", "keep-going=off"),
    acts("-quiet", Takes::Nothing),
    acts("-info", Takes::Nothing),
    acts("-info-file", Takes::One),
    acts("-no-progress", Takes::Nothing),
    acts("-progress", Takes::Nothing),
    acts("-percentage", Takes::Nothing),
    ignored("-throttle -limit", Takes::One),
    sets_as("-processors", "jobs", |name, text| Ok(decimal::<NonZeroU16>(name, text)?.to_string())),
    // The tool's caches are a smaller part of its memory.
    sets_as("-mem", "memory", |name, text| Ok(size(name, text)?.max(MEMORY_MIN).to_string())),
    ignored("-mem-percent -overcommit", Takes::One),
    acts("-mem-default", Takes::Nothing),
    switches("-nopad", "-O padding=none"),
    sets_as("-offset -o", "offset", bytes),
    acts("-stream", Takes::Nothing),
    acts("-fix", Takes::One),
    acts("-version --version", Takes::Nothing),
    acts("-help -h --help", Takes::Nothing),
    acts("-help-all -ha", Takes::Nothing),
    acts("-help-option -ho", Takes::One),
    acts("-help-section -hs", Takes::One),
    acts("-help-comp", Takes::One),
    acts("-Xhelp", Takes::Nothing),
    ignored("-no-pager", Takes::Nothing),
    ignored("-cols", Takes::One),
    ignored("-4k-align -disable-4k-align", Takes::Nothing),
];

const DEFAULTS: &[&str] = &["format=squashfs", "block-size=128K", "keep-going", "lossy", "-O holes=on"];

const MEMORY_MIN: u64 = 256 << 20;

pub const CODECS: [&str; 6] = ["gzip", "lzo", "lz4", "xz", "zstd", "lzma"];

/// Level up to which the search for similar files makes packing clearly slower than the tool
/// (docs/guide/callers.md, times).
const QUICK_ZSTD_LEVEL_MAX: u32 = 12;

/// Options may precede `-comp`.
///
/// Errors: `Usage` for an unknown codec, two codecs, and options of another one.
fn codec(given: &Given) -> Result<String> {
    let mut names = given.all("-comp").map(|name| name.to_string_lossy().into_owned());
    let name = names.next().unwrap_or_else(|| "gzip".to_owned());
    if names.any(|other| other != name) {
        return Err(Error::usage("-comp is given twice with different compressors"));
    }
    if !CODECS.contains(&name.as_str()) {
        let known = CODECS.join(", ");
        return Err(Error::usage(format!("compressor \"{name}\" is not supported; available: {known}")));
    }
    let allowed: &[&str] = match name.as_str() {
        "gzip" => &["-Xcompression-level", "-Xwindow-size", "-Xstrategy"],
        "lzo" => &["-Xalgorithm", "-Xcompression-level"],
        "lz4" if given.has("-Xhc") => &["-Xhc", "-Xcompression-level"],
        "lz4" => &["-Xacceleration"],
        "zstd" => &["-Xcompression-level"],
        "xz" => &["-Xbcj", "-Xdict-size", "-Xpreset", "-Xe"],
        _ => &["-Xdict-size", "-Xpreset", "-Xe"],
    };
    let of_codecs = |name: &str| name.starts_with("-X") && name != "-Xhelp";
    if let Some((wrong, _)) = given.options.iter().find(|(own, _)| of_codecs(own) && !allowed.contains(own)) {
        return Err(Error::usage(format!("invalid {name} compression option {wrong}")));
    }
    let mut spec = if given.has("-Xhc") { "lz4hc".to_owned() } else { name };
    if let Some(level) = given.text("-Xcompression-level")?.or(given.text("-Xpreset")?) {
        spec += &format!(":{level}");
    }
    for (option, key) in [("-Xwindow-size", "window"), ("-Xdict-size", "dict"), ("-Xbcj", "bcj")] {
        if let Some(value) = given.text(option)? {
            spec += &format!(",{key}={}", value.replace(',', "+"));
        }
    }
    if let Some(value) = given.text("-Xstrategy")? {
        let value = value.replace("huffman_only", "huffman").replace("run_length_encoded", "rle");
        spec += &format!(",strategy={}", value.trim_end_matches(',').replace(',', "+"));
    }
    if let Some(value) = given.text("-Xacceleration")? {
        spec += &format!(",acceleration={value}");
    }
    if let Some(value) = given.text("-Xalgorithm")? {
        spec += &format!(",variant={}", value.strip_prefix("lzo1x_").unwrap_or(value));
    }
    if given.has("-Xe") {
        spec += ",extreme";
    }
    Ok(spec)
}

/// True if the search for similar files would make packing slower than the tool.
fn is_quick(codec: &str) -> bool {
    let (name, level) = codec.split_once([':', ',']).unwrap_or((codec, ""));
    match name {
        "lz4" => true,
        "zstd" => level.parse().is_ok_and(|level: u32| level <= QUICK_ZSTD_LEVEL_MAX),
        _ => false,
    }
}

/// Parts that are stored uncompressed.
fn uncompressed(given: &Given) -> Option<String> {
    let words =
        [("-noI", "inodes"), ("-noId", "ids"), ("-noD", "data"), ("-noF", "fragments"), ("-noX", "xattrs")];
    let plain: Vec<&str> =
        words.iter().filter(|(option, _)| given.has(option)).map(|(_, word)| *word).collect();
    if given.has("-no-compression") {
        Some("all".into())
    } else {
        (!plain.is_empty()).then(|| plain.join(","))
    }
}

/// Options that do not depend on the sources.
pub fn pack_options(given: &Given, defaults: &[&'static str]) -> Result<PackOptions> {
    let mut options = given.pack_options(&[DEFAULTS, defaults].concat())?;
    let codec = codec(given)?;
    options.order = is_quick(&codec).then_some(packfs::Order::Path);
    options.codec = Some(codec);
    if given.has("-no-fragments") {
        options.options.push(("fragments".to_owned(), "off".to_owned()));
    }
    options.options.extend(uncompressed(given).map(|parts| ("uncompressed".to_owned(), parts)));
    options.check("")?;
    Ok(options)
}

/// Fixed, or that of the newest inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    At(i64),
    Newest,
}

fn time(given: &Given, name: &str) -> Result<Option<Time>> {
    let is_newest = |text: &OsStr| text == "inode";
    if given.all(name).any(is_newest) && !given.all(name).all(is_newest) {
        return Err(Error::usage(format!("cannot specify both {name} <timestamp> and {name} inode")));
    }
    let parsed = given.text(name)?.map(|text| match text {
        "inode" => Ok(Time::Newest),
        text => when::seconds(name, text).map(Time::At),
    });
    parsed.transpose()
}

impl Time {
    pub fn seconds(self, newest: i64) -> i64 {
        match self {
            Time::At(seconds) => seconds,
            Time::Newest => newest,
        }
    }
}

/// Set by options and `SOURCE_DATE_EPOCH`.
#[derive(Debug)]
pub struct Times {
    pub made_at: Option<Time>,
    pub inode: Option<Time>,
    pub root: Option<Time>,
    epoch: Option<i64>,
    /// Nodes without a time get that of the newest inode, not that of packing.
    pub is_reproducible: bool,
}

impl Times {
    fn of(given: &Given) -> Result<Self> {
        let (made_at, inode) = (time(given, "-mkfs-time")?, time(given, "-inode-time")?);
        let (root, all) = (time(given, "-root-time")?, time(given, "-repro-time")?);
        let (is_repro, epoch) = (given.has("-repro"), source_date_epoch::<u32>()?);
        let is_fixed = |time: &Option<Time>| matches!(time, Some(Time::At(_)));
        let clash =
            |one: &str, other: &str| Err(Error::usage(format!("cannot specify both {one} and {other}")));
        match all {
            Some(Time::Newest) => {
                return Err(Error::usage("-repro-time: \"inode\" is no time").hint("-repro takes it"));
            }
            Some(_) if is_repro => return clash("-repro", "-repro-time"),
            Some(_) if made_at.is_some_and(|time| Some(time) != all) => {
                return clash("-repro-time", "another -mkfs-time");
            }
            Some(_) if inode.is_some_and(|time| Some(time) != all) => {
                return clash("-repro-time", "another -inode-time");
            }
            None if is_repro && is_fixed(&made_at) => return clash("-repro", "-mkfs-time"),
            _ => {}
        }
        if epoch.is_some() && [&made_at, &inode, &all].into_iter().any(is_fixed) {
            return Err(Error::usage(
                "SOURCE_DATE_EPOCH and command line options can't be used at the same time to set timestamp(s)",
            ));
        }
        let newest = is_repro.then_some(Time::Newest);
        let is_reproducible = [newest, made_at, inode, root].contains(&Some(Time::Newest));
        let made_at = epoch.map(Time::At).or(made_at).or(all).or(newest);
        Ok(Times { made_at, inode: inode.or(all), root, epoch, is_reproducible })
    }

    pub fn of_node(&self, mtime: Timestamp, newest: i64) -> Timestamp {
        let mtime = self.inode.map_or(mtime, |time| Timestamp::from_seconds(time.seconds(newest)));
        self.epoch.map_or(mtime, |epoch| mtime.min(Timestamp::from_seconds(epoch)))
    }

    /// Includes `others`, but not a root that the source does not describe.
    pub fn newest(&self, tree: &Tree, is_root_made: bool, others: Option<i64>) -> i64 {
        if let Some(Time::At(fixed)) = self.inode {
            return fixed;
        }
        let root = match self.root {
            Some(Time::At(fixed)) => Some(fixed),
            _ if is_root_made => None,
            _ => Some(tree.node(NodeId::ROOT).meta.mtime.seconds),
        };
        let below = tree.nodes().filter(|(id, _)| *id != NodeId::ROOT);
        let known = below.map(|(_, node)| node.meta.mtime).filter(|mtime| *mtime != Metadata::UNKNOWN);
        let newest = known.map(|mtime| mtime.seconds).chain(root).chain(others).max();
        newest.map_or(0, |newest| self.epoch.map_or(newest, |epoch| newest.min(epoch)))
    }
}

#[derive(Debug)]
pub struct Metadata {
    pub times: Times,
    uid: Option<u32>,
    gid: Option<u32>,
    offset: u32,
    root_uid: Option<u32>,
    root_gid: Option<u32>,
    root_mode: Option<Modes>,
    file_mode: Option<Modes>,
    dir_mode: Option<Modes>,
    /// Applies to directories without an entry in a tar archive.
    default_mode: Option<Modes>,
    default_uid: Option<u32>,
    default_gid: Option<u32>,
    /// Pseudo definitions override forced owners.
    pub pseudo_override: bool,
    no_xattrs: bool,
    xattrs_exclude: Option<Regex>,
    xattrs_include: Option<Regex>,
    xattrs_add: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Metadata {
    /// Time of a directory without a member in the archive.
    pub const UNKNOWN: Timestamp = Timestamp { seconds: i64::MIN, nanos: 0 };

    pub fn of(given: &Given, users: &Ids, groups: &Ids) -> Result<Self> {
        let id = |name: &str, ids: &Ids| given.text(name)?.map(|text| ids.id(text)).transpose();
        let mode = |name: &str| given.text(name)?.map(str::parse).transpose();
        // Defaults of directories are those of the root, too.
        let of_root = |own: &'static str, default: &'static str| {
            if given.switched(default, own, false) { default } else { own }
        };
        let compiled = |name: &str| given.last(name).map(|text| regex(text.as_bytes())).transpose();
        // The last one counts.
        let forced = |name: &str, ids: &Ids| {
            if given.switched("-all-root", name, false) { Ok(Some(0)) } else { id(name, ids) }
        };
        let times = Times::of(given)?;
        let added = given.all("-xattrs-add").map(|text| xattr(text.as_bytes()));
        Ok(Metadata {
            times,
            uid: forced("-force-uid", users)?,
            gid: forced("-force-gid", groups)?,
            offset: given.number("-uid-gid-offset")?.unwrap_or(0),
            root_uid: id(of_root("-root-uid", "-default-uid"), users)?,
            root_gid: id(of_root("-root-gid", "-default-gid"), groups)?,
            root_mode: mode(of_root("-root-mode", "-default-mode"))?,
            file_mode: mode("-force-file-mode")?,
            dir_mode: mode("-force-dir-mode")?,
            default_mode: mode("-default-mode")?,
            default_uid: id("-default-uid", users)?,
            default_gid: id("-default-gid", groups)?,
            pseudo_override: given.has("-pseudo-override"),
            no_xattrs: drops_xattrs(given)?,
            xattrs_exclude: compiled("-xattrs-exclude")?,
            xattrs_include: compiled("-xattrs-include")?,
            xattrs_add: added.collect::<Result<_>>()?,
        })
    }

    pub fn implied(&self, user: Owner, made: Timestamp) -> Implied {
        let mode = self.default_mode.as_ref().map_or(0o755, |change| change.apply(0o755, true));
        let uid = self.default_uid.unwrap_or(user.uid);
        let gid = self.default_gid.unwrap_or(user.gid);
        Implied { mode, owner: Owner { uid, gid }, mtime: Some(made) }
    }

    /// True if only times and attributes of an entry may change.
    pub fn drops_xattrs(&self) -> bool {
        self.no_xattrs
    }

    pub fn forced(&self, meta: Meta, is_dir: bool) -> Meta {
        let mut meta = meta;
        meta.owner.uid = self.uid.unwrap_or(meta.owner.uid).wrapping_add(self.offset);
        meta.owner.gid = self.gid.unwrap_or(meta.owner.gid).wrapping_add(self.offset);
        let change = if is_dir { &self.dir_mode } else { &self.file_mode };
        if let Some(change) = change {
            meta.mode = change.apply(meta.mode, is_dir);
        }
        meta
    }

    /// `newest` is the time of the newest inode.
    pub fn root(&self, meta: &mut Meta, newest: i64) {
        if let Some(change) = &self.root_mode {
            meta.mode = change.apply(meta.mode, true);
        }
        meta.owner.uid = self.root_uid.unwrap_or(meta.owner.uid);
        meta.owner.gid = self.root_gid.unwrap_or(meta.owner.gid);
        if let Some(time) = self.times.root {
            meta.mtime = Timestamp::from_seconds(time.seconds(newest));
        }
    }

    pub fn xattrs(&self, xattrs: &mut Xattrs, takes_user: bool) {
        if self.no_xattrs {
            xattrs.clear();
            return;
        }
        let keeps = |name: &[u8]| {
            self.xattrs_exclude.as_ref().is_none_or(|regex| !regex.is_match(name))
                && self.xattrs_include.as_ref().is_none_or(|regex| regex.is_match(name))
        };
        xattrs.retain(|name, _| keeps(name));
        xattrs.extend(self.added_xattrs(takes_user));
    }

    /// User attributes apply only to files and directories.
    pub fn added_xattrs(&self, takes_user: bool) -> Xattrs {
        let added = self.xattrs_add.iter().filter(|_| !self.no_xattrs);
        added.filter(|(name, _)| takes_user || !name.starts_with(b"user.")).cloned().collect()
    }
}

fn drops_xattrs(given: &Given) -> Result<bool> {
    let mut options = given.options.iter().map(|(name, _)| *name).filter(|name| name.contains("xattrs"));
    // The last option counts.
    let Some(last) = options.next_back() else { return Ok(false) };
    if last == "-no-xattrs" && options.any(|name| name.starts_with("-xattrs-")) {
        return Err(Error::usage("-no-xattrs should not be used in combination with -xattrs-* options"));
    }
    Ok(last == "-no-xattrs")
}

/// `NAME=VALUE`, with the value as text, `0x` hexadecimal, `0s` base64, or `0t` octal.
pub fn xattr(text: &[u8]) -> Result<(Vec<u8>, Vec<u8>)> {
    let wrong = || Error::usage(format!("invalid extended attribute {:?}", String::from_utf8_lossy(text)));
    let equals = text.iter().position(|&byte| byte == b'=').ok_or_else(wrong)?;
    let (name, value) = (&text[..equals], &text[equals + 1..]);
    let value = match value {
        [b'0', b'x' | b'X', digits @ ..] => packfs::from_hex(digits).ok_or_else(wrong)?,
        [b'0', b's' | b'S', digits @ ..] => {
            Base64NoPadding::decode_to_vec(digits, Some(b"=")).map_err(|_| wrong())?
        }
        [b'0', b't' | b'T', text @ ..] => octal(text),
        text => text.to_vec(),
    };
    let has_name = !["", "user.", "trusted.", "security."].iter().any(|prefix| prefix.as_bytes() == name);
    if has_name { Ok((name.to_vec(), value)) } else { Err(wrong()) }
}

/// Three octal digits after a backslash are a byte, two backslashes are one.
fn octal(mut text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some((&first, rest)) = text.split_first() {
        text = rest;
        let digits = rest.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(|_| first == b'\\') {
            Some(byte) => {
                bytes.push(byte);
                text = &rest[3..];
            }
            None => {
                bytes.push(first);
                if first == b'\\' && rest.first() == Some(&b'\\') {
                    text = &rest[1..];
                }
            }
        }
    }
    bytes
}

/// Plain paths by default; of the options the last one counts.
pub fn exclude_kind(given: &Given) -> globs::Kind {
    if given.switched("-regex", "-wildcards", false) {
        globs::Kind::Regex
    } else if given.has("-wildcards") {
        globs::Kind::Glob
    } else {
        globs::Kind::Exact
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::parse::{Style, parse};
    use std::ffi::OsString;

    fn spec(args: &[&str]) -> Result<String> {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        codec(&parse(&[ROWS], Style::OperandsFirst, &args).unwrap())
    }

    #[test]
    fn quick_codecs_keep_the_order_of_paths() {
        for (codec, quick) in
            [("lz4", true), ("lz4hc", false), ("zstd:12", true), ("zstd", false), ("zstd:15", false)]
        {
            assert_eq!(is_quick(codec), quick, "{codec}");
        }
    }

    #[test]
    fn options_of_the_codec_may_stand_before_it_or_without_it() {
        assert_eq!(spec(&["-Xcompression-level", "7", "-comp", "zstd"]).unwrap(), "zstd:7");
        assert_eq!(spec(&["-Xcompression-level", "3"]).unwrap(), "gzip:3");
        assert_eq!(spec(&["-comp", "lz4", "-Xhc"]).unwrap(), "lz4hc");
        assert_eq!(spec(&["-comp", "lz4", "-Xcompression-level", "3", "-Xhc"]).unwrap(), "lz4hc:3");
        assert_eq!(spec(&["-comp", "lz4", "-Xacceleration", "9"]).unwrap(), "lz4,acceleration=9");
        let xz = ["-comp", "xz", "-Xbcj", "x86,arm", "-Xdict-size", "100%"];
        assert_eq!(spec(&xz).unwrap(), "xz,dict=100%,bcj=x86+arm");
        assert_eq!(spec(&["-comp", "lzo", "-Xalgorithm", "lzo1x_1_15"]).unwrap(), "lzo,variant=1_15");
        assert_eq!(spec(&["-Xstrategy", "default,huffman_only"]).unwrap(), "gzip,strategy=default+huffman");
    }

    #[test]
    fn two_codecs_and_options_of_another_one_are_refused() {
        assert!(spec(&["-comp", "xz", "-comp", "gzip"]).is_err());
        assert!(spec(&["-comp", "xz", "-comp", "xz"]).is_ok());
        assert!(spec(&["-comp", "zstd", "-Xbcj", "x86"]).is_err());
        assert!(spec(&["-comp", "none"]).is_err());
        assert!(spec(&["-comp", "lz4", "-Xcompression-level", "3"]).is_err());
        assert!(spec(&["-comp", "lz4", "-Xacceleration", "3", "-Xhc"]).is_err());
    }

    #[test]
    fn values_of_attributes_may_be_coded() {
        let value = |text: &str| xattr(text.as_bytes()).unwrap().1;
        assert_eq!(value("user.a=b=c"), b"b=c");
        assert_eq!(value("user.a=0x4142"), b"AB");
        assert_eq!(value("user.a=0sSGVsbG8="), b"Hello");
        assert_eq!(value("user.a=0ta\\000\\\\b"), b"a\0\\b");
    }
}
