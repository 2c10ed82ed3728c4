//! Lists an image directory by directory, without loading the whole tree.
//!
//! Memory holds only the entries of the directories on the way down. A directory that is reached
//! twice, as in damaged or hostile images, is an error, because the listing could be endless.

use crate::rows::Row;
use crate::select::{MatchState, Pattern, Selection};
use packfs_core::{Error, ImagePath, Limit, Limits, Meter, Progress, Result};
use packfs_format::{DirEntry, InodeId, InodeKind, SeenDirs, Volume, entry_name, image_words, read_entries};
use packfs_read::Faults;

/// Contents of a listing.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Paths to list; none means the root.
    pub paths: Vec<Pattern>,
    /// Set to list everything below directories, not only their entries.
    pub recursive: bool,
    /// Set to list matching directories themselves instead of their entries (`ls -d`).
    pub directory_itself: bool,
    /// Limits of the image.
    pub limits: Limits,
}

/// Calls `visit` for every row, parents before their children, names in the order stored.
///
/// A directory lists its entries (with `recursive` also itself, and everything below); any other
/// path lists itself. Damaged parts are skipped and reported through `progress`; the first such
/// error is returned at the end. Errors: `Failed` for a path or pattern that matches nothing;
/// `Limit`; `Corrupt`; any error of the volume or of `visit`.
pub fn list(
    volume: &dyn Volume,
    options: &ListOptions,
    progress: &dyn Progress,
    visit: &mut dyn FnMut(Row) -> Result<()>,
) -> Result<()> {
    let root_only = [Pattern::exact(&ImagePath::root())];
    let patterns = if options.paths.is_empty() { &root_only[..] } else { &options.paths };
    let selection = Selection::new(patterns, |path| Ok(find(volume, path)?.is_some()))?;
    let meter = Meter::new(options.limits, image_words(volume));
    let (seen, faults) = (SeenDirs::default(), Faults::default());
    let mut lister = Lister { volume, options, progress, selection, seen, meter, faults, visit };
    lister.run()?;
    lister.faults.into_result()?;
    lister.selection.finish()
}

/// Finds a path in a volume without following symbolic links.
pub fn find(volume: &dyn Volume, path: &ImagePath) -> Result<Option<InodeId>> {
    let mut at = volume.root();
    for name in path.names() {
        if !matches!(volume.inode(at)?.kind, InodeKind::Directory) {
            return Ok(None);
        }
        match volume.lookup(at, name.as_bytes())? {
            Some(found) => at = found,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

struct Lister<'a> {
    volume: &'a dyn Volume,
    options: &'a ListOptions,
    progress: &'a dyn Progress,
    selection: Selection,
    seen: SeenDirs,
    meter: Meter,
    faults: Faults,
    visit: &'a mut dyn FnMut(Row) -> Result<()>,
}

struct Open {
    entries: std::vec::IntoIter<DirEntry>,
    reached: MatchState,
    /// True if all entries are listed, without matching.
    inside: bool,
}

impl Lister<'_> {
    fn run(&mut self) -> Result<()> {
        let mut path = ImagePath::root();
        let start = self.selection.start();
        let mut open = Vec::new();
        self.meet(&path, self.volume.root(), start, false, &mut open)?;
        while let Some(dir) = open.last_mut() {
            let dir: &mut Open = dir;
            let Some(entry) = dir.entries.next() else {
                open.pop();
                path.pop();
                continue;
            };
            if self.progress.cancelled() {
                return Err(Error::cancelled());
            }
            let name = match entry_name(self.volume, &entry.name) {
                Ok(name) => name,
                Err(error) => {
                    self.faults.add(error.at(format!("{path:?}")), self.progress)?;
                    continue;
                }
            };
            let reached = self.selection.step(&dir.reached, name.as_bytes());
            let inside = dir.inside;
            if !inside && reached.is_dead() {
                continue;
            }
            path.push(name);
            let depth = open.len();
            if let Err(error) = self.meet(&path, entry.id, reached, inside, &mut open) {
                self.faults.add(error.at(format!("{path:?}")), self.progress)?;
            }
            if open.len() == depth {
                path.pop();
            }
        }
        Ok(())
    }

    /// Opens a directory if something below it may match.
    fn meet(
        &mut self,
        path: &ImagePath,
        id: InodeId,
        reached: MatchState,
        inside: bool,
        open: &mut Vec<Open>,
    ) -> Result<()> {
        let accepted = self.selection.accepts(&reached);
        let inode = self.volume.inode(id)?;
        let is_dir = matches!(inode.kind, InodeKind::Directory);
        let whole = self.options.recursive;
        let shows_itself = inside || accepted && (!is_dir || whole || self.options.directory_itself);
        if shows_itself {
            let target = match inode.kind {
                InodeKind::Symlink => self.link_target(path, id).map(Some),
                _ => Ok(None),
            };
            let target = match target {
                Err(error) => {
                    self.faults.add(error.at(format!("{path:?}")), self.progress)?;
                    None
                }
                Ok(target) => target,
            };
            (self.visit)(Row::new(path.clone(), id, &inode, target))?;
        }
        let opens_itself = accepted && !self.options.directory_itself || (inside || accepted) && whole;
        if is_dir && (opens_itself || !reached.is_dead()) {
            let entries = self.entries(path, id, open.len() as u64)?;
            open.push(Open { entries, reached, inside: opens_itself });
        }
        Ok(())
    }

    fn link_target(&self, path: &ImagePath, id: InodeId) -> Result<Vec<u8>> {
        let target = self.volume.read_link(id)?;
        let subject = format!("{path:?}");
        self.options.limits.check(&subject, Limit::TargetLen, target.len() as u64).map(|()| target)
    }

    fn entries(
        &mut self,
        path: &ImagePath,
        dir: InodeId,
        depth: u64,
    ) -> Result<std::vec::IntoIter<DirEntry>> {
        self.seen.enter(self.volume, dir)?;
        let mut entries = Vec::new();
        let read = read_entries(self.volume, dir, |entry, order| {
            self.meter.entry(depth, entry.name.len()).map_err(|error| error.at(format!("{path:?}")))?;
            order.next(&entry.name);
            entries.push(entry);
            if self.progress.cancelled() { Err(Error::cancelled()) } else { Ok(()) }
        })?;
        if let Err(error) = read {
            self.faults.add(error.at(format!("{path:?}")), self.progress)?;
        }
        Ok(entries.into_iter())
    }
}
