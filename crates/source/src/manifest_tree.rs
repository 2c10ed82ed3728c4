//! Loads a manifest as a tree.

use crate::Loaded;
use crate::manifest::{Defaults, Entry, EntryData, EntryNode, Fault, ManifestContents};
use crate::manifest::{check_first_line, entry_node, first_line_fault, parse, read_lines};
use crate::shape::Shape;
use crate::shaper::Shaper;
use packfs_core::{Error, ImagePath, Limits, Progress, Result, ResultExt, Stage, escaped};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Lines read between two checks of [`Progress::cancelled`].
const LINES_AT_ONCE: u64 = 256;

/// Loads a manifest. File paths in it are relative to its directory.
///
/// Errors: `Corrupt`, naming the line, for an invalid manifest; `Unsupported` for a later version;
/// `Io` and `Failed` for a file that cannot be read, which with [`Shape::keep_going`] is skipped
/// and reported, with all hard links to it; `Usage` for bad globs; `Limit`; `Cancelled`.
pub fn load_manifest(path: &Path, shape: &Shape, progress: &dyn Progress) -> Result<Loaded> {
    load_manifest_within(path, shape, Limits::default(), progress)
}

/// Loads a manifest with other limits.
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
    let mut reading = Reading {
        name: &name,
        shape,
        shaper: Shaper::within(shape, limits, "manifest")?,
        contents: ManifestContents::below(path.parent().unwrap_or(path))?,
        lines: HashMap::new(),
        links: Vec::new(),
        unreadable: HashSet::new(),
    };
    reading.read_all(&mut BufReader::with_capacity(256 << 10, file), progress)?;
    reading.make_links()?;
    reading.shaper.resolve_links().map_err(|error| error.at(&name))?;
    reading.shaper.finish(Arc::new(reading.contents))
}

struct Reading<'a> {
    name: &'a str,
    shape: &'a Shape,
    shaper: Shaper<'a>,
    contents: ManifestContents,
    lines: HashMap<ImagePath, (u64, bool)>,
    /// Line, path and target. Hard links are resolved last, when all targets are known.
    links: Vec<(u64, ImagePath, ImagePath)>,
    unreadable: HashSet<ImagePath>,
}

impl Reading<'_> {
    fn place(&self, line: u64) -> String {
        format!("{}:{line}", self.name)
    }

    fn read_all(&mut self, input: &mut impl BufRead, progress: &dyn Progress) -> Result<()> {
        let mut defaults = Defaults::default();
        let count = read_lines(input, self.name, |line, number| {
            self.take_line(line, number, &mut defaults)?;
            if number % LINES_AT_ONCE == 0 {
                progress.advance(LINES_AT_ONCE, 0, 0);
                if progress.cancelled() {
                    return Err(Error::cancelled());
                }
            }
            Ok(())
        })?;
        progress.advance(count % LINES_AT_ONCE, 0, 0);
        if count == 0 { Err(first_line_fault(b"").at(self.place(1))) } else { Ok(()) }
    }

    fn take_line(&mut self, line: &[u8], number: u64, defaults: &mut Defaults) -> Result<()> {
        if number == 1 {
            return check_first_line(line, self.place(1));
        }
        match parse(line, defaults) {
            Ok(Some(entry)) => self.add(entry, number).map_err(|error| error.at(self.place(number))),
            Ok(None) => Ok(()),
            Err(fault) => Err(fault.at(self.place(number))),
        }
    }

    fn add(&mut self, entry: Entry, line: u64) -> Result<()> {
        let is_dir = entry.what == EntryData::Dir;
        if let Some((before, _)) = self.lines.insert(entry.path.clone(), (line, is_dir)) {
            let fault = format!("path {:?}: already on line {before}, and once is allowed", entry.path);
            return Err(Error::corrupt("manifest", fault));
        }
        let meta = entry.meta();
        match entry_node(entry.what, &mut self.contents) {
            Ok(EntryNode::Node(kind)) => self.shaper.add(&entry.path, kind, meta, entry.xattrs),
            Ok(EntryNode::Modified) => {
                let fault = Fault::new("modify: allowed only where entries are laid over another source");
                Err(fault.hint("pack SOURCE IMAGE --add-manifest FILE does that").at(self.place(line)))
            }
            Ok(EntryNode::Link(target)) => {
                self.links.push((line, entry.path, target));
                Ok(())
            }
            Err(error) if self.shape.keep_going => {
                self.leave_out(entry.path, error.at(self.place(line)));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn leave_out(&mut self, path: ImagePath, why: Error) {
        self.shaper.notes().unreadable.push(why.to_string());
        self.unreadable.insert(path);
    }

    /// Reports the line of a dangling link; the tree detects circles.
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

/// Directly or through other links.
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
