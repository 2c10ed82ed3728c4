//! Pack files of squashfs-tools-ng, read by gensquashfs and written by rdsquashfs: `TYPE PATH MODE
//! UID GID [EXTRA]`.

use super::glob;
use super::words::{Line, is_blank, shown, trimmed};
use crate::squash::pseudo::{keyed, line, quoted};
use packfs::{Error, FileType, ImagePath, Meta, NodeKind, Owner, Result, ResultExt, Tree};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Returns an entry of a manifest; files are relative to `base`.
fn entry(typed: &Line<'_>, base: &Path, defaults: Meta) -> Result<Vec<u8>> {
    let (path, extra) = (&typed.path, typed.extra);
    let owner = Owner { uid: typed.uid.unwrap_or(0), gid: typed.gid.unwrap_or(0) };
    let meta = Meta { mode: typed.mode.unwrap_or(0), owner, mtime: defaults.mtime };
    Ok(match typed.kind {
        b"dir" => line("dir", path, meta),
        b"slink" => keyed(line("symlink", path, Meta { mode: 0o777, ..meta }), "target", extra),
        b"link" => {
            let target = ImagePath::parse(extra)?;
            keyed([b"link ", &quoted(path.as_bytes())[..]].concat(), "target", target.as_bytes())
        }
        b"nod" => device(typed, meta)?,
        b"pipe" => line("fifo", path, meta),
        b"sock" => line("socket", path, meta),
        _ => {
            let from = if extra.is_empty() { path.as_bytes() } else { extra };
            let from = base.join(OsStr::from_bytes(from));
            match from.metadata() {
                // /dev/null is an empty file.
                Ok(found) if found.rdev() == rustix::fs::makedev(1, 3) => line("file", path, meta),
                _ => keyed(line("file", path, meta), "from", from.as_os_str().as_bytes()),
            }
        }
    })
}

fn device(typed: &Line<'_>, meta: Meta) -> Result<Vec<u8>> {
    let text = String::from_utf8_lossy(typed.extra);
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let word = match words.first() {
        Some(&("c" | "C")) => "char",
        Some(&("b" | "B")) => "block",
        _ => "",
    };
    match &words[1.min(words.len())..] {
        [major, minor, ..]
            if !word.is_empty() && [major, minor].iter().all(|id| id.parse::<u32>().is_ok()) =>
        {
            let mut line = line(word, &typed.path, meta);
            line.extend(format!(" major={major} minor={minor}").bytes());
            Ok(line)
        }
        _ => Err(Error::usage("<c|b> MAJOR MINOR is expected")),
    }
}

/// Returns entries of a manifest.
///
/// Errors: `Io`; `Usage` with the line.
pub fn entries(file: &Path, dir: Option<&Path>, defaults: Meta) -> Result<Vec<Vec<u8>>> {
    let text = std::fs::read(file).or_io(|| format!("cannot read {file:?}"))?;
    let base = dir.or_else(|| file.parent()).unwrap_or(Path::new(""));
    let base = std::path::absolute(if base.as_os_str().is_empty() { Path::new(".") } else { base })
        .or_io(|| "cannot find the directory of the pack file")?;
    let mut lines = Vec::new();
    let mut made = glob::Directories::default();
    let mut typed = BTreeSet::new();
    for (index, text) in text.split(|&byte| byte == b'\n').enumerate() {
        let text = trimmed(text.strip_suffix(b"\r").unwrap_or(text));
        if text.is_empty() || text.starts_with(b"#") {
            continue;
        }
        let at = |error: Error| error.at(format!("{}:{}", file.display(), index + 1));
        let line = Line::parse(text).map_err(at)?;
        if line.kind == b"glob" {
            lines.extend(glob::entries(&line, &base, &mut made, defaults).map_err(at)?);
            continue;
        }
        lines.extend(made.add_parents(&line.path, defaults));
        if line.kind == b"dir" {
            made.add(&line.path);
        }
        if !typed.insert(line.path.clone()) {
            return Err(at(Error::failed(format!("{}: File exists", line.path))));
        }
        lines.push(entry(&line, &base, defaults).map_err(at)?);
    }
    Ok(lines)
}

#[derive(Default)]
pub struct List {
    pub text: Vec<u8>,
    /// Paths that a line cannot represent, because they contain a line break, and those of links
    /// whose target contains one, or begins with a blank.
    pub left_out: Vec<ImagePath>,
}

/// Data of regular files is below `prefix`.
pub fn described(tree: &Tree, prefix: Option<&OsStr>) -> List {
    let (mut list, mut walk) = (List::default(), tree.walk());
    while let Some((path, id)) = walk.next() {
        let node = tree.node(id);
        let word = match node.kind.file_type() {
            _ if path.is_root() => continue,
            FileType::Directory => "dir",
            FileType::File => "file",
            FileType::Symlink => "slink",
            FileType::BlockDevice | FileType::CharDevice => "nod",
            FileType::Fifo => "pipe",
            FileType::Socket => "sock",
        };
        let extra = extra_of(path, &node.kind, prefix);
        let breaks = |text: &[u8]| text.contains(&b'\n');
        if breaks(path.as_bytes()) || breaks(&extra) || extra.first().is_some_and(|&byte| is_blank(byte)) {
            list.left_out.push(path.clone());
            continue;
        }
        let Owner { uid, gid } = node.meta.owner;
        list.text.extend([word.as_bytes(), b" ", &shown(path.as_bytes())].concat());
        list.text.extend(format!(" 0{:o} {uid} {gid}", node.meta.mode).bytes());
        if !extra.is_empty() {
            list.text.extend([b" ", &extra[..]].concat());
            // Readers remove one of these from the end of a line.
            list.text.extend(extra.last().filter(|last| **last == b'\r'));
        }
        list.text.push(b'\n');
    }
    list
}

fn extra_of(path: &ImagePath, kind: &NodeKind, prefix: Option<&OsStr>) -> Vec<u8> {
    match (kind, prefix) {
        (NodeKind::Symlink(target), _) => target.to_vec(),
        (NodeKind::BlockDevice(number), _) => format!("b {} {}", number.major, number.minor).into(),
        (NodeKind::CharDevice(number), _) => format!("c {} {}", number.major, number.minor).into(),
        (NodeKind::File { .. }, Some(prefix)) => [prefix.as_bytes(), b"/", path.as_bytes()].concat(),
        _ => Vec::new(),
    }
}
