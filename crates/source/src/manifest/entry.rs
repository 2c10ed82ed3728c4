//! Entries of a manifest: a type, a path and keys, completed by earlier `default` lines.

use super::fault::Fault;
use super::words::{Word, words};
use crate::decimal;
use packfs_core::{DeviceNumber, ImagePath, Meta, Owner, Timestamp, Xattrs, escaped};

/// Linux's limit of a link target.
const TARGET_LEN_MAX: usize = 4095;
/// Linux's limit of the name of an extended attribute.
const XATTR_NAME_LEN_MAX: usize = 255;
/// Linux's limit of the value of an extended attribute.
const XATTR_VALUE_LEN_MAX: usize = 1 << 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Type {
    #[default]
    File,
    Dir,
    Symlink,
    Link,
    Modify,
    Block,
    Char,
    Fifo,
    Socket,
}

impl Type {
    const ALL: [Type; 9] = [
        Type::File,
        Type::Dir,
        Type::Symlink,
        Type::Link,
        Type::Modify,
        Type::Block,
        Type::Char,
        Type::Fifo,
        Type::Socket,
    ];

    /// Other names of types: letters, and those in lists of other tools.
    const ALIASES: [(&'static str, Type); 12] = [
        ("f", Type::File),
        ("d", Type::Dir),
        ("l", Type::Symlink),
        ("h", Type::Link),
        ("m", Type::Modify),
        ("b", Type::Block),
        ("c", Type::Char),
        ("p", Type::Fifo),
        ("s", Type::Socket),
        ("slink", Type::Symlink),
        ("pipe", Type::Fifo),
        ("sock", Type::Socket),
    ];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Type::File => "file",
            Type::Dir => "dir",
            Type::Symlink => "symlink",
            Type::Link => "link",
            Type::Modify => "modify",
            Type::Block => "block",
            Type::Char => "char",
            Type::Fifo => "fifo",
            Type::Socket => "socket",
        }
    }

    fn parse(word: &[u8]) -> Option<Self> {
        let alias = Type::ALIASES.iter().find(|(alias, _)| alias.as_bytes() == word).map(|(_, kind)| *kind);
        Type::ALL.into_iter().find(|kind| kind.word().as_bytes() == word).or(alias)
    }

    /// Keys of values that are identified by position after the path; the last one of a file is
    /// optional.
    fn row(self) -> &'static [&'static str] {
        match self {
            Type::File => &["mode", "uid", "gid", "from"],
            Type::Symlink => &["mode", "uid", "gid", "target"],
            Type::Link => &["target"],
            Type::Block | Type::Char => &["mode", "uid", "gid", "major", "minor"],
            Type::Dir | Type::Modify | Type::Fifo | Type::Socket => &["mode", "uid", "gid"],
        }
    }

    /// Besides those of every node.
    fn own_keys(self) -> &'static [&'static str] {
        match self {
            Type::File => &["from", "offset", "size", "data"],
            Type::Symlink | Type::Link => &["target"],
            Type::Block | Type::Char => &["major", "minor"],
            Type::Dir | Type::Modify | Type::Fifo | Type::Socket => &[],
        }
    }

    fn takes(self, key: &[u8]) -> bool {
        let is_meta = META_KEYS.iter().any(|meta| meta.as_bytes() == key) || key.starts_with(b"xattr.");
        // A hard link has no metadata: its target has.
        is_meta && self != Type::Link || self.own_keys().iter().any(|own| own.as_bytes() == key)
    }

    pub(crate) fn mode_default(self) -> u16 {
        match self {
            Type::Dir => 0o755,
            Type::Symlink => 0o777,
            Type::Block | Type::Char => 0o600,
            Type::File | Type::Link | Type::Modify | Type::Fifo | Type::Socket => 0o644,
        }
    }
}

const META_KEYS: [&str; 4] = ["mode", "uid", "gid", "mtime"];

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MetaKeys {
    mode: Option<u16>,
    uid: Option<u32>,
    gid: Option<u32>,
    mtime: Option<Timestamp>,
}

impl MetaKeys {
    /// True if `key` is one of these; replaces an earlier value.
    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Fault> {
        match key {
            b"mode" => self.mode = Some(mode(value)?),
            b"uid" => self.uid = Some(number(key, value, u32::MAX.into())? as u32),
            b"gid" => self.gid = Some(number(key, value, u32::MAX.into())? as u32),
            b"mtime" => self.mtime = Some(mtime(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(crate) fn over(self, rest: Meta) -> Meta {
        let Owner { uid, gid } = rest.owner;
        Meta {
            mode: self.mode.unwrap_or(rest.mode),
            owner: Owner { uid: self.uid.unwrap_or(uid), gid: self.gid.unwrap_or(gid) },
            mtime: self.mtime.unwrap_or(rest.mtime),
        }
    }

    fn or(self, other: MetaKeys) -> MetaKeys {
        MetaKeys {
            mode: self.mode.or(other.mode),
            uid: self.uid.or(other.uid),
            gid: self.gid.or(other.gid),
            mtime: self.mtime.or(other.mtime),
        }
    }
}

/// Values of earlier `default` lines, by type.
#[derive(Debug, Default)]
pub(crate) struct Defaults([MetaKeys; Type::ALL.len()]);

impl Defaults {
    fn set(&mut self, words: &[Word]) -> Result<(), Fault> {
        let (only, words) = match words.split_first() {
            Some((word, rest)) if word.equals.is_none() => (Some(typed(&word.bytes)?), rest),
            _ => (None, words),
        };
        let mut given = MetaKeys::default();
        for word in words {
            let (key, value) = word.key_and_value()?;
            if !given.set(key, value)? {
                let allowed = META_KEYS.join(", ");
                return Err(Fault::new(format!(
                    "key \"{}\": of default the keys {allowed} are allowed",
                    escaped(key)
                )));
            }
        }
        if only.is_none() && given.mode.is_some() {
            return Err(Fault::new("mode: needs a type, since directories and files differ")
                .hint("write `default file mode=0644` or `default dir mode=0755`"));
        }
        for (kind, before) in Type::ALL.into_iter().zip(&mut self.0) {
            // An existing entry has all values already.
            if only.map_or(kind != Type::Modify, |only| only == kind) {
                *before = given.or(*before);
            }
        }
        Ok(())
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Bytes {
    /// Zeros, not stored.
    Hole(u64),
    Inline(Vec<u8>),
    From {
        /// Path relative to the manifest's directory.
        path: Vec<u8>,
        /// Start in that file; `None` uses the whole file.
        offset: Option<u64>,
        /// Length, if given.
        len: Option<u64>,
    },
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EntryData {
    File(Bytes),
    Dir,
    Symlink(Vec<u8>),
    Link(ImagePath),
    /// Changes metadata of an existing entry.
    Modify,
    Block(DeviceNumber),
    Char(DeviceNumber),
    Fifo,
    Socket,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) path: ImagePath,
    pub(crate) what: EntryData,
    pub(crate) given: MetaKeys,
    pub(crate) mode_default: u16,
    pub(crate) xattrs: Xattrs,
}

impl Entry {
    /// Defaults to root's, from 1970.
    pub(crate) fn meta(&self) -> Meta {
        self.given.over(Meta { mode: self.mode_default, ..Meta::default() })
    }
}

#[derive(Default)]
struct Keys {
    from: Option<Vec<u8>>,
    data: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    offset: Option<u64>,
    size: Option<u64>,
    major: Option<u64>,
    minor: Option<u64>,
    xattrs: Xattrs,
}

/// `None` for an empty line, a comment, and a `default` line, which changes `defaults`.
pub(crate) fn parse(line: &[u8], defaults: &mut Defaults) -> Result<Option<Entry>, Fault> {
    if line.trim_ascii_start().starts_with(b"#") {
        return Ok(None);
    }
    let words = in_our_order(words(line)?)?;
    let Some((first, rest)) = words.split_first() else { return Ok(None) };
    if first.bytes == b"default" {
        return defaults.set(rest).map(|()| None);
    }
    let kind = typed(&first.bytes)?;
    let Some((path, rest)) = rest.split_first() else {
        return Err(Fault::new(format!(
            "{} without a path: TYPE PATH [KEY=VALUE]... is allowed",
            kind.word()
        )));
    };
    let path = image_path(&path.bytes)?;
    let mut said = ParsedWords { kind, ..ParsedWords::default() };
    for word in said.take_row(rest)? {
        let (key, value) = word.key_and_value()?;
        said.take(key, value)?;
    }
    let given = said.meta.or(defaults.0[kind as usize]);
    let xattrs = std::mem::take(&mut said.keys.xattrs);
    Ok(Some(Entry { path, what: said.keys.what(kind)?, given, mode_default: kind.mode_default(), xattrs }))
}

/// Returns type and path first, also for lists of other tools.
///
/// Errors: for types after the path, as in device tables, which have different meanings in each
/// tool.
fn in_our_order(mut words: Vec<Word>) -> Result<Vec<Word>, Fault> {
    const TYPE_OF_NOD: usize = 5;
    if words.first().is_some_and(|word| word.bytes == b"nod") && words.len() > TYPE_OF_NOD {
        words[0] = words.remove(TYPE_OF_NOD);
    }
    let [first, second, ..] = &words[..] else { return Ok(words) };
    let is_row = words.len() >= 5 && words[2].equals.is_none();
    let is_table = matches!(&second.bytes[..], b"c" | b"b" | b"d" | b"p" | b"m") && is_row;
    if !first.bytes.starts_with(b"/") && (!is_table || Type::parse(&first.bytes).is_some()) {
        return Ok(words);
    }
    let meant = match &second.bytes[..] {
        b"c" | b"b" => 7,
        b"d" | b"p" | b"m" => 5,
        other => {
            let fault =
                format!("type \"{}\" after a path: d, c, b, p and m are allowed there", escaped(other));
            return Err(Fault::new(fault).hint("put the type first: f /etc/motd 0644 0 0 HOSTFILE"));
        }
    };
    words.swap(0, 1);
    // A row of a device table for a single node also has a first number, a step and an empty count.
    if words.len() == 10 && words[9].bytes == b"-" {
        words.truncate(meant);
    }
    Ok(words)
}

#[derive(Default)]
struct ParsedWords<'w> {
    kind: Type,
    meta: MetaKeys,
    keys: Keys,
    seen: Vec<&'w [u8]>,
}

impl<'w> ParsedWords<'w> {
    fn take(&mut self, key: &'w [u8], value: &[u8]) -> Result<(), Fault> {
        if self.seen.contains(&key) {
            return Err(Fault::new(format!("key \"{}\": given twice", escaped(key))));
        }
        if !self.kind.takes(key) {
            return Err(unknown_key(self.kind, key));
        }
        self.seen.push(key);
        if !self.meta.set(key, value)? {
            self.keys.set(key, value)?;
        }
        Ok(())
    }

    /// Returns the remaining words.
    fn take_row(&mut self, words: &'w [Word]) -> Result<&'w [Word], Fault> {
        let is_value = |word: &Word| word.equals.is_none();
        if !words.first().is_some_and(is_value) {
            return Ok(words);
        }
        let keys = self.kind.row();
        // Other tools write permissions and owner of a hard link, which are those of its target.
        let words = if self.kind == Type::Link && words.len() == 4 { &words[3..] } else { words };
        let is_without_from = self.kind == Type::File && !words.get(3).is_some_and(is_value);
        let count = if is_without_from { 3 } else { keys.len() };
        if words.len() < count {
            let (found, row) = (escaped(&words[0].bytes), keys.join(" ").to_uppercase());
            let fault = format!("\"{found}\": KEY=VALUE, or the row {row}, is allowed here");
            return Err(Fault::new(fault).hint("a name or value with spaces belongs between double quotes"));
        }
        let (row, rest) = words.split_at(count);
        keys.iter().zip(row).try_for_each(|(key, word)| self.take(key.as_bytes(), &word.bytes))?;
        Ok(rest)
    }
}

fn typed(word: &[u8]) -> Result<Type, Fault> {
    Type::parse(word).ok_or_else(|| {
        let allowed = Type::ALL.map(Type::word).join(", ");
        Fault::new(format!("type \"{}\": {allowed} are allowed", escaped(word)))
            .hint("a line is TYPE PATH [KEY=VALUE]..., `default` ... or a # comment; f, d, l, h, m, b, c, p, s are types, too")
    })
}

fn unknown_key(kind: Type, key: &[u8]) -> Fault {
    let meta = if kind == Type::Link { &[][..] } else { &META_KEYS };
    let mut allowed: Vec<&str> = meta.iter().chain(kind.own_keys()).copied().collect();
    if kind != Type::Link {
        allowed.push("xattr.NAME");
    }
    let text =
        format!("key \"{}\": of a {} the keys {} are allowed", escaped(key), kind.word(), allowed.join(", "));
    Fault::new(text)
}

impl Keys {
    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        match key {
            b"from" => self.from = Some(host_path(value)?),
            b"data" => self.data = Some(value.to_vec()),
            b"target" => self.target = Some(value.to_vec()),
            b"offset" => self.offset = Some(number(key, value, i64::MAX as u64)?),
            b"size" => self.size = Some(number(key, value, i64::MAX as u64)?),
            b"major" => self.major = Some(number(key, value, 0xfff)?),
            b"minor" => self.minor = Some(number(key, value, 0xf_ffff)?),
            _ => {
                let name = key.strip_prefix(b"xattr.").unwrap_or(key);
                check_xattr(name, value)?;
                self.xattrs.insert(name.to_vec(), value.to_vec());
            }
        }
        Ok(())
    }

    fn what(self, kind: Type) -> Result<EntryData, Fault> {
        Ok(match kind {
            Type::File => EntryData::File(self.bytes()?),
            Type::Dir => EntryData::Dir,
            Type::Symlink => EntryData::Symlink(symlink_target(self.target(kind)?)?),
            Type::Link => EntryData::Link(image_path(&self.target(kind)?)?),
            Type::Modify => EntryData::Modify,
            Type::Block => EntryData::Block(self.device(kind)?),
            Type::Char => EntryData::Char(self.device(kind)?),
            Type::Fifo => EntryData::Fifo,
            Type::Socket => EntryData::Socket,
        })
    }

    fn bytes(self) -> Result<Bytes, Fault> {
        match (self.from, self.data) {
            (Some(_), Some(_)) => Err(Fault::new("from and data: one of them is allowed")),
            (Some(path), None) => Ok(Bytes::From { path, offset: self.offset, len: self.size }),
            (None, _) if self.offset.is_some() => Err(Fault::new("offset: allowed only beside from")),
            (None, Some(data)) if self.size.is_some_and(|size| size != data.len() as u64) => {
                Err(Fault::new(format!("size: data is {} bytes long", data.len())))
            }
            (None, Some(data)) => Ok(Bytes::Inline(data)),
            (None, None) => Ok(Bytes::Hole(self.size.unwrap_or(0))),
        }
    }

    fn target(self, kind: Type) -> Result<Vec<u8>, Fault> {
        self.target.ok_or_else(|| Fault::new(format!("{} without target=", kind.word())))
    }

    fn device(&self, kind: Type) -> Result<DeviceNumber, Fault> {
        match (self.major, self.minor) {
            (Some(major), Some(minor)) => Ok(DeviceNumber { major: major as u32, minor: minor as u32 }),
            _ => Err(Fault::new(format!("{} needs both major= and minor=", kind.word()))),
        }
    }
}

fn image_path(bytes: &[u8]) -> Result<ImagePath, Fault> {
    ImagePath::parse(bytes).map_err(|error| Fault::new(error.to_string()))
}

fn host_path(value: &[u8]) -> Result<Vec<u8>, Fault> {
    if value.is_empty() || value.contains(&0) {
        return Err(Fault::new(format!("from \"{}\": a path without NUL is allowed", escaped(value)))
            .hint("a file without from= is empty"));
    }
    Ok(value.to_vec())
}

fn symlink_target(target: Vec<u8>) -> Result<Vec<u8>, Fault> {
    if target.is_empty() || target.len() > TARGET_LEN_MAX || target.contains(&0) {
        let text =
            format!("target of {} bytes: 1 to {TARGET_LEN_MAX} bytes without NUL are allowed", target.len());
        return Err(Fault::new(text));
    }
    Ok(target)
}

fn check_xattr(name: &[u8], value: &[u8]) -> Result<(), Fault> {
    if name.is_empty() || name.len() > XATTR_NAME_LEN_MAX || name.contains(&0) {
        return Err(Fault::new(format!(
            "xattr.{}: a name of 1 to {XATTR_NAME_LEN_MAX} bytes without NUL is allowed",
            escaped(name)
        )));
    }
    if value.len() > XATTR_VALUE_LEN_MAX {
        return Err(Fault::new(format!(
            "xattr.{}: value of {} bytes, at most {XATTR_VALUE_LEN_MAX} allowed",
            escaped(name),
            value.len()
        )));
    }
    Ok(())
}

fn mode(value: &[u8]) -> Result<u16, Fault> {
    let is_octal = !value.is_empty() && value.iter().all(|b| matches!(b, b'0'..=b'7'));
    let mode = std::str::from_utf8(value).ok().and_then(|text| u16::from_str_radix(text, 8).ok());
    mode.filter(|&mode| is_octal && mode <= 0o7777).ok_or_else(|| {
        Fault::new(format!("mode \"{}\": octal digits up to 7777 are allowed", escaped(value)))
    })
}

fn mtime(value: &[u8]) -> Result<Timestamp, Fault> {
    decimal::time(value).ok_or_else(|| {
        let found = escaped(value);
        Fault::new(format!("mtime \"{found}\": seconds since 1970 are allowed, such as 1700000000 or -1.5"))
    })
}

fn number(key: &[u8], value: &[u8], max: u64) -> Result<u64, Fault> {
    decimal::number(value).filter(|&number| number <= max).ok_or_else(|| {
        Fault::new(format!("{} \"{}\": a number from 0 to {max} is allowed", escaped(key), escaped(value)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(line: &str) -> Entry {
        parse(line.as_bytes(), &mut Defaults::default()).unwrap().unwrap()
    }

    #[test]
    fn missing_values_have_defaults_of_their_type() {
        for (line, mode) in [
            ("file a", 0o644),
            ("dir a", 0o755),
            ("symlink a target=b", 0o777),
            ("block a major=8 minor=0", 0o600),
            ("fifo a", 0o644),
        ] {
            assert_eq!(entry(line).meta(), Meta { mode, ..Meta::default() }, "{line}");
        }
        assert_eq!(entry("file a").what, EntryData::File(Bytes::Hole(0)));
        assert_eq!(entry("file a size=7").what, EntryData::File(Bytes::Hole(7)));
    }

    #[test]
    fn defaults_hold_for_what_follows_until_they_are_replaced() {
        let mut defaults = Defaults::default();
        let mut take = |line: &str| parse(line.as_bytes(), &mut defaults).unwrap();
        assert!(take("default uid=5 mtime=-1.5").is_none());
        assert!(take("default dir mode=0700 uid=6").is_none());
        assert!(take("default gid=7").is_none());
        let of = |entry: Option<Entry>| entry.unwrap().meta();
        let mtime = Timestamp { seconds: -2, nanos: 500_000_000 };
        assert_eq!(of(take("dir d")), Meta { mode: 0o700, owner: Owner { uid: 6, gid: 7 }, mtime });
        let meta = Meta { mode: 0o4755, owner: Owner { uid: 5, gid: 1 }, mtime };
        assert_eq!(of(take("file f mode=4755 gid=1")), meta);
    }

    #[test]
    fn errors_name_the_value_found_and_those_allowed() {
        for (line, words) in [
            ("flie a", ["type \"flie\"", "socket are allowed"]),
            ("file", ["without a path", "TYPE PATH"]),
            ("file a b", ["\"b\"", "KEY=VALUE"]),
            ("file a target=b", ["key \"target\"", "from, offset, size, data, xattr.NAME"]),
            ("dir a size=1", ["key \"size\"", "mode, uid, gid, mtime"]),
            ("link a target=b mode=0644", ["key \"mode\"", "of a link the keys target"]),
            ("file a uid=1 uid=1", ["key \"uid\"", "twice"]),
            ("file a uid=-1", ["uid \"-1\"", "0 to 4294967295"]),
            ("file a uid=4294967296", ["uid \"4294967296\"", "0 to 4294967295"]),
            ("file a mode=0888", ["mode \"0888\"", "7777"]),
            ("file a mode=17777", ["mode \"17777\"", "7777"]),
            ("file a mode=+7", ["mode \"+7\"", "octal"]),
            ("file a mtime=soon", ["mtime \"soon\"", "seconds"]),
            ("file a size=9223372036854775808", ["size", "9223372036854775807"]),
            ("file a from=b data=c", ["from and data", "one"]),
            ("file a data=abc size=4", ["size", "3 bytes long"]),
            ("file a offset=4", ["offset", "from"]),
            ("file a from=", ["from \"\"", "path"]),
            ("file a/../b", ["a/../b", "name \"..\""]),
            ("symlink a", ["symlink", "without target"]),
            ("symlink a target=", ["target of 0 bytes", "1 to 4095"]),
            ("block a major=1", ["block", "minor="]),
            ("char a major=4096 minor=0", ["major \"4096\"", "4095"]),
            ("file a xattr.=x", ["xattr.", "1 to 255"]),
            ("default mode=0644", ["mode", "needs a type"]),
            ("default from=x", ["key \"from\"", "mode, uid, gid, mtime"]),
            ("default flie uid=0", ["type \"flie\"", "file"]),
        ] {
            let fault = parse(line.as_bytes(), &mut Defaults::default()).unwrap_err().to_string();
            assert!(words.iter().all(|word| fault.contains(word)), "{line}: {fault}");
        }
    }
}
