//! The manifest source: a text with one line an entry. docs/manifest.md describes it.
//!
//! A line means the same wherever it stands, but for `default` lines above it; what it says is taken as it is or
//! refused, naming the line. Contents are read when they are packed.

mod contents;
mod entry;
mod fault;
mod words;
mod write;

pub use write::write_manifest;

use crate::Loaded;
use crate::shape::Shape;
use crate::shaper::Shaper;
use contents::ManifestContents;
use entry::{Bytes, Defaults, Entry, What};
use fault::Fault;
use packfs_core::{Error, ImagePath, Limits, NodeKind, Progress, Result, ResultExt, Stage, escaped};
use rustix::fs::{Mode, OFlags};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// What every manifest begins with, before its version.
const MAGIC: &[u8] = b"#packfs-manifest ";
/// The first line of every manifest of this version.
const FIRST_LINE: &[u8] = b"#packfs-manifest 1";
/// Longest line, so that a file that is no text does not fill memory.
const LINE_LEN_MAX: u64 = 64 << 20;
/// How many lines are read between two looks at [`Progress::cancelled`].
const LINES_AT_ONCE: u64 = 256;

/// Whether a file begins as a manifest of any version does.
pub fn looks_like_manifest(first_bytes: &[u8]) -> bool {
    first_bytes.starts_with(MAGIC)
}

/// Reads a manifest. Paths of files in it begin at the folder that it lies in.
///
/// Errors: `Corrupt`, naming the line, for what is no manifest; `Unsupported` for a later version; `Io` and `Failed` for
/// a file that cannot be read, which with [`Shape::keep_going`] is noted and left out, with all hard links to it; `Usage`
/// for bad globs; `Limit`; `Cancelled`.
pub fn load_manifest(path: &Path, shape: &Shape, progress: &dyn Progress) -> Result<Loaded> {
    load_manifest_within(path, shape, Limits::default(), progress)
}

/// The same, with limits of its own.
///
/// Errors: as [`load_manifest`].
pub fn load_manifest_within(
    path: &Path,
    shape: &Shape,
    limits: Limits,
    progress: &dyn Progress,
) -> Result<Loaded> {
    progress.begin(Stage::Scan, 0, 0);
    let name = escaped(path.as_os_str().as_bytes()).to_string();
    let file = File::open(path).or_io(|| format!("cannot open {path:?}"))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder_fd =
        rustix::fs::open(folder, flags, Mode::empty()).or_io(|| format!("cannot open {folder:?}"))?;
    let mut reading = Reading {
        name: &name,
        shape,
        shaper: Shaper::within(shape, limits, "manifest")?,
        contents: ManifestContents::new(folder.into(), folder_fd),
        lines: HashMap::new(),
        links: Vec::new(),
        unreadable: HashSet::new(),
    };
    reading.read_all(&mut BufReader::with_capacity(256 << 10, file), progress)?;
    reading.make_links()?;
    let (tree, notes) = reading.shaper.finish().map_err(|error| error.at(&name))?;
    Ok(Loaded { tree, contents: Arc::new(reading.contents), notes })
}

struct Reading<'a> {
    name: &'a str,
    shape: &'a Shape,
    shaper: Shaper<'a>,
    contents: ManifestContents,
    /// On which line each path stands, and whether that is a directory.
    lines: HashMap<ImagePath, (u64, bool)>,
    /// Hard links: line, path and target. They are made last, when everything that they could lead to is known.
    links: Vec<(u64, ImagePath, ImagePath)>,
    /// What was left out since it cannot be read.
    unreadable: HashSet<ImagePath>,
}

impl Reading<'_> {
    fn place(&self, line: u64) -> String {
        format!("{}:{line}", self.name)
    }

    fn read_all(&mut self, input: &mut impl BufRead, progress: &dyn Progress) -> Result<()> {
        let mut defaults = Defaults::default();
        let mut line = Vec::new();
        let mut number = 0;
        loop {
            line.clear();
            let read = input.take(LINE_LEN_MAX).read_until(b'\n', &mut line);
            if read.or_io(|| format!("cannot read \"{}\"", self.name))? == 0 {
                break;
            }
            number += 1;
            self.take_line(&line, number, &mut defaults)?;
            if number % LINES_AT_ONCE == 0 {
                progress.advance(LINES_AT_ONCE, 0, 0);
                if progress.cancelled() {
                    return Err(Error::cancelled());
                }
            }
        }
        progress.advance(number % LINES_AT_ONCE, 0, 0);
        if number == 0 { Err(first_line_fault(b"").at(self.place(1))) } else { Ok(()) }
    }

    fn take_line(&mut self, line: &[u8], number: u64, defaults: &mut Defaults) -> Result<()> {
        if line.len() as u64 == LINE_LEN_MAX && !line.ends_with(b"\n") {
            let fault = Fault::new(format!("line of {LINE_LEN_MAX} bytes or more"));
            return Err(fault.hint("put such data into a file, and name it by from=").at(self.place(number)));
        }
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if number == 1 {
            return self.check_first_line(line);
        }
        match entry::parse(line, defaults) {
            Ok(Some(entry)) => self.add(entry, number).map_err(|error| error.at(self.place(number))),
            Ok(None) => Ok(()),
            Err(fault) => Err(fault.at(self.place(number))),
        }
    }

    fn check_first_line(&self, line: &[u8]) -> Result<()> {
        match line.trim_ascii_end().strip_prefix(MAGIC) {
            Some(b"1") => Ok(()),
            Some(version) if !version.is_empty() && version.iter().all(u8::is_ascii_digit) => {
                let what = format!("version {}, this packfs knows version 1", escaped(version));
                Err(Error::unsupported("manifest", what).at(self.place(1)))
            }
            _ => Err(first_line_fault(line).at(self.place(1))),
        }
    }

    fn add(&mut self, entry: Entry, line: u64) -> Result<()> {
        let is_dir = entry.what == What::Dir;
        if let Some((before, _)) = self.lines.insert(entry.path.clone(), (line, is_dir)) {
            let fault = format!("path {:?}: already on line {before}, and once is allowed", entry.path);
            return Err(Error::corrupt("manifest", fault));
        }
        let kind = match entry.what {
            What::Link(target) => {
                self.links.push((line, entry.path, target));
                return Ok(());
            }
            What::File(bytes) => match self.file(bytes) {
                Err(error) if self.shape.keep_going => {
                    self.leave_out(entry.path, error.at(self.place(line)));
                    return Ok(());
                }
                kind => kind?,
            },
            What::Dir => NodeKind::Directory,
            What::Symlink(target) => NodeKind::Symlink(target.into()),
            What::Block(number) => NodeKind::BlockDevice(number),
            What::Char(number) => NodeKind::CharDevice(number),
            What::Fifo => NodeKind::Fifo,
            What::Socket => NodeKind::Socket,
        };
        self.shaper.add(&entry.path, kind, entry.meta, entry.xattrs)
    }

    fn file(&mut self, bytes: Bytes) -> Result<NodeKind> {
        let (content, len) = match bytes {
            Bytes::Hole(len) => (self.contents.add_hole(len), len),
            Bytes::Inline(bytes) => {
                let len = bytes.len() as u64;
                (self.contents.add_inline(bytes), len)
            }
            Bytes::From { path, offset, len } => self.contents.add_from(&path, offset, len)?,
        };
        Ok(NodeKind::File { len, content })
    }

    fn leave_out(&mut self, path: ImagePath, why: Error) {
        self.shaper.notes().unreadable.push(why.to_string());
        self.unreadable.insert(path);
    }

    /// Makes the hard links, and says on which line one stands that leads nowhere; what is left to the tree are circles.
    fn make_links(&mut self) -> Result<()> {
        let links = std::mem::take(&mut self.links);
        let lost = links_to(&self.unreadable, &links);
        for (index, (line, path, target)) in links.into_iter().enumerate() {
            if lost.contains(&index) {
                let why = Error::failed(format!("hard link {path:?} to {target:?}, which is left out"));
                self.leave_out(path, why.at(self.place(line)));
                continue;
            }
            let fault = match self.lines.get(&target) {
                Some((_, false)) => {
                    self.shaper.link(&path, &target).map_err(|error| error.at(self.place(line)))?;
                    continue;
                }
                Some((_, true)) => format!("target {target:?}: a directory, which cannot have hard links"),
                None => format!("target {target:?}: no line has this path"),
            };
            return Err(Fault::new(fault).at(self.place(line)));
        }
        Ok(())
    }
}

/// Which of the links lead to one of these paths, be it through other links.
fn links_to(paths: &HashSet<ImagePath>, links: &[(u64, ImagePath, ImagePath)]) -> HashSet<usize> {
    let mut found = HashSet::new();
    if paths.is_empty() {
        return found;
    }
    let mut links_by_target: HashMap<&ImagePath, Vec<usize>> = HashMap::new();
    for (index, (_, _, target)) in links.iter().enumerate() {
        links_by_target.entry(target).or_default().push(index);
    }
    let mut reached: Vec<&ImagePath> = paths.iter().collect();
    while let Some(target) = reached.pop() {
        for index in links_by_target.remove(target).unwrap_or_default() {
            found.insert(index);
            reached.push(&links[index].1);
        }
    }
    found
}

fn first_line_fault(line: &[u8]) -> Fault {
    let shown = &line[..line.len().min(64)];
    let allowed = String::from_utf8_lossy(FIRST_LINE);
    Fault::new(format!("first line \"{}\": {allowed} is allowed", escaped(shown)))
}
