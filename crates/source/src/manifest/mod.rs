//! The manifest source: a text with one line for each entry. docs/guide/manifest.md describes it.
//!
//! The meaning of a line depends only on `default` lines above it. Errors name the line. Contents
//! are read when they are packed.

mod additions;
mod contents;
mod entry;
mod fault;
mod tables;
mod words;
mod write;

pub use additions::Additions;
pub(crate) use additions::Shaping;
pub(crate) use contents::ManifestContents;
pub(crate) use entry::{Defaults, Entry, EntryData, parse};
pub(crate) use fault::Fault;
pub use write::{write_manifest, write_manifest_below};

use packfs_core::{Error, ImagePath, NodeKind, Result, ResultExt, escaped};
use std::io::{BufRead, Read};

/// First bytes of every manifest, before its version.
const MAGIC: &[u8] = b"#packfs-manifest ";
/// The first line of every manifest of this version.
const FIRST_LINE: &[u8] = b"#packfs-manifest 1";
/// Longest line, which bounds memory for files that are not text.
const LINE_LEN_MAX: u64 = 64 << 20;

/// Returns true if a file starts like a manifest of any version.
pub fn looks_like_manifest(first_bytes: &[u8]) -> bool {
    first_bytes.starts_with(MAGIC)
}

/// Returns true if a file may be a manifest without its first line: its first line that is neither
/// empty nor a comment is an entry.
pub fn looks_like_entries(first_bytes: &[u8]) -> bool {
    let mut lines = first_bytes.split(|&b| b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let first = lines.find(|line| !line.is_empty() && !line.trim_ascii_start().starts_with(b"#"));
    first.is_some_and(|line| parse(line, &mut Defaults::default()).is_ok())
}

pub(crate) enum EntryNode {
    Node(NodeKind),
    Link(ImagePath),
    Modified,
}

pub(crate) fn entry_node(what: EntryData, contents: &mut ManifestContents) -> Result<EntryNode> {
    Ok(EntryNode::Node(match what {
        EntryData::Link(target) => return Ok(EntryNode::Link(target)),
        EntryData::Modify => return Ok(EntryNode::Modified),
        EntryData::File(bytes) => contents.add(bytes)?,
        EntryData::Dir => NodeKind::Directory,
        EntryData::Symlink(target) => NodeKind::Symlink(target.into()),
        EntryData::Block(number) => NodeKind::BlockDevice(number),
        EntryData::Char(number) => NodeKind::CharDevice(number),
        EntryData::Fifo => NodeKind::Fifo,
        EntryData::Socket => NodeKind::Socket,
    }))
}

/// Passes each line without its end, and its number; returns the number of lines.
pub(crate) fn read_lines(
    input: &mut (impl BufRead + ?Sized),
    name: &str,
    mut take: impl FnMut(&[u8], u64) -> Result<()>,
) -> Result<u64> {
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        let read = (&mut *input).take(LINE_LEN_MAX).read_until(b'\n', &mut line);
        if read.or_io(|| format!("cannot read \"{name}\""))? == 0 {
            return Ok(number);
        }
        number += 1;
        if line.len() as u64 == LINE_LEN_MAX && !line.ends_with(b"\n") {
            let fault = Fault::new(format!("line of {LINE_LEN_MAX} bytes or more"));
            let hint = "put such data into a file, and name it by from=";
            return Err(fault.hint(hint).at(format!("{name}:{number}")));
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        take(text.strip_suffix(b"\r").unwrap_or(text), number)?;
    }
}

pub(crate) fn check_first_line(line: &[u8], place: String) -> Result<()> {
    match line.trim_ascii_end().strip_prefix(MAGIC) {
        Some(b"1") => Ok(()),
        Some(version) if !version.is_empty() && version.iter().all(u8::is_ascii_digit) => {
            let fault = format!("version {}, this packfs knows version 1", escaped(version));
            Err(Error::unsupported("manifest", fault).at(place))
        }
        _ => Err(first_line_fault(line).at(place)),
    }
}

pub(crate) fn first_line_fault(line: &[u8]) -> Fault {
    let shown = &line[..line.len().min(64)];
    let allowed = String::from_utf8_lossy(FIRST_LINE);
    Fault::new(format!("first line \"{}\": {allowed} is allowed", escaped(shown)))
}
