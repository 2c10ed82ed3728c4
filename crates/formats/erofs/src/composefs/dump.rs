//! composefs-dump(5): one line per file, with eleven fields and its attributes, separated by
//! spaces.

use super::SHA256_LEN;
use super::tree::{File, Inode, PATH_LEN_MAX, Tree};
use packfs_core::{Error, FileType, Owner, Result, Timestamp, Xattrs, escaped, from_hex, hex_byte, to_hex};
use packfs_format::units::*;
use std::collections::HashMap;

const FIELDS: usize = 11;
/// Limit of all attributes of a line, including escapes.
const XATTRS_LEN_MAX: usize = 65_535;

/// Result with the fault of a line.
type Parsed<T> = Result<T, String>;

/// Parser of a dump.
#[derive(Debug, Default)]
pub struct Parser {
    tree: Option<Tree>,
    /// Hard links, whose targets may follow later.
    links: Vec<Link>,
    links_by_name: HashMap<(u32, Vec<u8>), usize>,
    lines: u64,
}

#[derive(Debug)]
struct Link {
    parent: u32,
    name: Vec<u8>,
    target: Vec<u8>,
    line: u64,
}

/// Meaning of a path so far.
#[derive(Clone, Copy)]
enum Found {
    Inode(u32),
    Link(usize),
}

impl Parser {
    /// Longest line in bytes, without its line feed.
    pub const LINE_LEN_MAX: usize = 1 << 20;

    /// Adds a line, without its line feed.
    ///
    /// Errors: `Corrupt` for an invalid line, with its number.
    pub fn line(&mut self, line: &[u8]) -> Result<()> {
        self.lines = self.lines.plus(1);
        self.parse(line).map_err(|fault| corrupt(self.lines, &fault))
    }

    /// Returns the tree of all lines.
    ///
    /// Errors: `Corrupt` for a dump without lines, and for hard links without a target.
    pub fn finish(mut self) -> Result<Tree> {
        let links = std::mem::take(&mut self.links);
        for link in &links {
            let target = self.target(link, &links).map_err(|fault| corrupt(link.line, &fault))?;
            let Some(tree) = &mut self.tree else { break };
            let linked = tree.link(link.parent, &link.name, target);
            linked.map_err(|error| corrupt(link.line, &error.to_string()))?;
        }
        self.tree.ok_or_else(|| Error::corrupt("composefs dump", "it has no lines"))
    }

    /// Follows a chain of hard links to its inode.
    fn target(&self, link: &Link, links: &[Link]) -> Parsed<u32> {
        let mut target = &link.target;
        // A longer chain has a loop.
        for _ in 0..=links.len().min(LINKS_MAX) {
            let missing = || format!("the hard link's target \"{}\" is missing", escaped(target));
            match self.find(target).ok_or_else(missing)? {
                Found::Inode(inode) => return Ok(inode),
                Found::Link(next) => target = &links.get(next).ok_or_else(missing)?.target,
            }
        }
        Err("the hard link leads to itself, or through more than 40 links".into())
    }

    fn find(&self, path: &[u8]) -> Option<Found> {
        let tree = self.tree.as_ref()?;
        let mut at = Tree::ROOT;
        let mut names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).peekable();
        while let Some(name) = names.next() {
            at = match tree.get(at)?.children.get(name) {
                Some(child) => child.inode,
                None if names.peek().is_none() => {
                    return self.links_by_name.get(&(at, name.to_vec())).copied().map(Found::Link);
                }
                None => return None,
            };
        }
        Some(Found::Inode(at))
    }

    fn parse(&mut self, line: &[u8]) -> Parsed<()> {
        if line.contains(&0) {
            return Err("it has a NUL byte".into());
        }
        let mut fields = line.splitn(FIELDS.plus(1), |byte| *byte == b' ');
        let mut next = |name: &str| fields.next().ok_or_else(|| format!("the field {name} is missing"));
        let path = unescaped(next("PATH")?)?;
        let size = next("SIZE")?;
        let mode = next("MODE")?;
        let (is_link, mode) = match mode.strip_prefix(b"@") {
            Some(mode) => (true, mode),
            None => (false, mode),
        };
        // Images have 16 bits for the mode.
        let mode = (number(mode, 8, "MODE")? & 0xffff) as u16;
        let file_type = FileType::from_mode_bits(mode.into());
        let file_type = file_type.ok_or_else(|| format!("MODE {mode:o} names no file type"))?;
        let mut inode = Inode::new(file_type, mode);
        let links = next("NLINK")?;
        let uid = next("UID")?;
        let gid = next("GID")?;
        let device = next("RDEV")?;
        let mtime = next("MTIME")?;
        let payload = optional(next("PAYLOAD")?)?;
        // Hard links have no further fields.
        let mut next_of_file = |name: &str| match file_type {
            FileType::Symlink => {
                fields.next();
                Ok(&b"-"[..])
            }
            _ => fields.next().ok_or_else(|| format!("the field {name} is missing")),
        };
        let (content, digest) = (next_of_file("CONTENT")?, next_of_file("DIGEST")?);
        if is_link {
            if file_type == FileType::Directory {
                return Err("a directory cannot be a hard link".into());
            }
            return self.add_link(&path, payload.ok_or("the hard link has no target in PAYLOAD")?);
        }
        inode.size = number(size, 10, "SIZE")?;
        inode.links = number_u32(links, "NLINK")?;
        inode.owner = Owner { uid: number_u32(uid, "UID")?, gid: number_u32(gid, "GID")? };
        let device = number_u32(device, "RDEV")?;
        if matches!(file_type, FileType::CharDevice | FileType::BlockDevice) {
            inode.device = device;
        }
        inode.mtime = time(mtime)?;
        inode.file.digest = parse_digest(digest)?;
        match file_type {
            FileType::Symlink => inode.target = payload.unwrap_or_default(),
            _ => {
                inode.file.object = payload.unwrap_or_default();
                inode.file.content = content_of(content, inode.size)?;
            }
        }
        inode.xattrs = xattrs(fields.next().unwrap_or_default())?;
        self.add(&path, inode)
    }

    fn add(&mut self, path: &[u8], inode: Inode) -> Parsed<()> {
        let wrong = |error: Error| error.to_string();
        if path == b"/" {
            if self.tree.is_some() {
                return Err("the root exists twice".into());
            }
            self.tree = Some(Tree::new(inode).map_err(wrong)?);
            return Ok(());
        }
        let (parent, name) = self.place(path)?;
        let Some(tree) = &mut self.tree else { return Err("the first line must be the root".into()) };
        tree.add(parent, name, inode).map_err(wrong)?;
        Ok(())
    }

    fn add_link(&mut self, path: &[u8], target: Vec<u8>) -> Parsed<()> {
        let (parent, name) = self.place(path)?;
        if target.len() > PATH_LEN_MAX {
            return Err("the target of the hard link has more than 4095 bytes".into());
        }
        self.links_by_name.insert((parent, name.to_vec()), self.links.len());
        self.links.push(Link { parent, name: name.to_vec(), target, line: self.lines });
        Ok(())
    }

    /// Returns the parent of a new path, and its name.
    fn place<'a>(&self, path: &'a [u8]) -> Parsed<(u32, &'a [u8])> {
        let shown = escaped(path);
        let at = path.iter().rposition(|byte| *byte == b'/').ok_or("a path must begin with a slash")?;
        let parent = path.within(..at);
        let name = path.get(at.plus(1)..);
        let name = name.filter(|name| !name.is_empty()).ok_or_else(|| format!("\"{shown}\" has no name"))?;
        let Some(Found::Inode(parent)) = self.find(parent) else {
            return Err(format!("the directory of \"{shown}\" must come in a line before"));
        };
        if self.links_by_name.contains_key(&(parent, name.to_vec())) {
            return Err(format!("\"{shown}\" exists twice"));
        }
        Ok((parent, name))
    }
}

const LINKS_MAX: usize = 40;

fn corrupt(line: u64, fault: &str) -> Error {
    Error::corrupt("composefs dump", format!("line {line}: {fault}"))
}

fn unescaped(text: &[u8]) -> Parsed<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next() {
            Some(b'\\') => b'\\',
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'x') => {
                let digits: Vec<u8> = rest.by_ref().take(2).collect();
                hex_byte(&digits).ok_or("\\x needs two hexadecimal digits")?
            }
            _ => return Err("a backslash must be followed by \\, n, r, t, or x".into()),
        });
    }
    Ok(bytes)
}

fn optional(text: &[u8]) -> Parsed<Option<Vec<u8>>> {
    if text == b"-" { Ok(None) } else { unescaped(text).map(Some) }
}

fn number(text: &[u8], radix: u32, field: &str) -> Parsed<u64> {
    let parsed = std::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'));
    let parsed = parsed.and_then(|text| u64::from_str_radix(text, radix).ok());
    parsed.ok_or_else(|| format!("{field} \"{}\" is not a number", escaped(text)))
}

fn number_u32(text: &[u8], field: &str) -> Parsed<u32> {
    let value = number(text, 10, field)?;
    u32::try_from(value).map_err(|_| format!("{field} {value}: at most 4294967295 is allowed"))
}

/// Parses seconds and nanoseconds, separated by a point that is not a decimal point.
fn time(text: &[u8]) -> Parsed<Timestamp> {
    let wrong = || format!("MTIME \"{}\" is not SECONDS.NANOSECONDS", escaped(text));
    let text = std::str::from_utf8(text).map_err(|_| wrong())?;
    let (seconds, nanos) = text.split_once('.').ok_or_else(wrong)?;
    let seconds = seconds.parse().map_err(|_| wrong())?;
    Ok(Timestamp { seconds, nanos: number_u32(nanos.as_bytes(), "MTIME")? })
}

fn content_of(text: &[u8], size: u64) -> Parsed<Option<Box<[u8]>>> {
    let Some(content) = optional(text)? else { return Ok(None) };
    if content.len() as u64 == size {
        Ok(Some(content.into()))
    } else {
        Err(format!("CONTENT has {} bytes, and SIZE is {size}", content.len()))
    }
}

fn parse_digest(text: &[u8]) -> Parsed<Option<[u8; SHA256_LEN]>> {
    let Some(text) = optional(text)? else { return Ok(None) };
    let digest = from_hex(&text).and_then(|digest| digest.try_into().ok());
    let wrong = || format!("DIGEST \"{}\" is not 64 hexadecimal digits", escaped(&text));
    digest.map(Some).ok_or_else(wrong)
}

fn xattrs(text: &[u8]) -> Parsed<Xattrs> {
    if text.len() > XATTRS_LEN_MAX {
        return Err(format!("its attributes take {} bytes, at most {XATTRS_LEN_MAX} allowed", text.len()));
    }
    let mut xattrs = Xattrs::new();
    if text.is_empty() {
        return Ok(xattrs);
    }
    for field in text.strip_suffix(b" ").unwrap_or(text).split(|byte| *byte == b' ') {
        let at = field.iter().position(|byte| *byte == b'=');
        let at = at.ok_or_else(|| format!("attribute \"{}\" has no =", escaped(field)))?;
        let value = field.within(at.plus(1)..);
        xattrs.insert(unescaped(field.within(..at))?, unescaped(value)?);
    }
    Ok(xattrs)
}

/// A line to be written.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// Path with a leading slash.
    pub path: &'a [u8],
    /// Inode; names and links are separate.
    pub inode: &'a Inode,
    /// Path of the first name if this is a hard link.
    pub link: Option<&'a [u8]>,
}

impl Line<'_> {
    /// Appends the line with a line feed.
    pub fn write(&self, out: &mut Vec<u8>) {
        let Inode { mode, links, owner, device, size, mtime, target, file, xattrs, .. } = self.inode;
        let File { content, object, digest } = file;
        escape(out, self.path, Escape::Spaces);
        let at = if self.link.is_some() { "@" } else { "" };
        let Owner { uid, gid } = owner;
        let Timestamp { seconds, nanos } = *mtime;
        let fields = format!(" {size} {at}{mode:o} {links} {uid} {gid} {device} {seconds}.{nanos} ");
        out.extend_from_slice(fields.as_bytes());
        let payload = [target, object].into_iter().find(|payload| !payload.is_empty());
        write_optional(out, self.link.or(payload.map(Vec::as_slice)));
        out.push(b' ');
        write_optional(out, content.as_deref());
        out.push(b' ');
        match digest {
            Some(digest) => out.extend_from_slice(to_hex(digest).as_bytes()),
            None => out.push(b'-'),
        }
        for (name, value) in xattrs {
            out.push(b' ');
            escape(out, name, Escape::SpacesAndEquals);
            out.push(b'=');
            escape(out, value, Escape::SpacesAndEquals);
        }
        out.push(b'\n');
    }
}

fn write_optional(out: &mut Vec<u8>, text: Option<&[u8]>) {
    match text {
        None => out.push(b'-'),
        Some(b"-") => out.extend_from_slice(b"\\x2d"),
        Some(text) => escape(out, text, Escape::Spaces),
    }
}

/// Characters that are escaped in addition to backslashes and unprintable ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Escape {
    /// None, as in listings.
    Nothing,
    /// Spaces.
    Spaces,
    /// Spaces and the equals sign, as in attributes.
    SpacesAndEquals,
}

/// Appends bytes with escapes.
pub fn escape(out: &mut Vec<u8>, text: &[u8], escape: Escape) {
    for &byte in text {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b' ' if escape == Escape::Nothing => out.push(byte),
            b'=' if escape == Escape::SpacesAndEquals => out.extend_from_slice(b"\\x3d"),
            byte if byte.is_ascii_graphic() => out.push(byte),
            byte => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
}
