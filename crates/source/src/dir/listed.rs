//! The directory source restricted to a list, and its survey, which makes such lists.

use super::{Open, Scan, meta};
use crate::dir_contents::{DirIndex, open_dir_below};
use crate::listed::{ChangeKind, ListedChange, ListedEntry, Surveyed};
use crate::shape::Shape;
use crate::{Loaded, Notes};
use packfs_core::{Error, FileType, ImagePath, Progress, Result, ResultExt, Stage};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Entries between two reports of progress.
const ENTRIES_BETWEEN_LOOKS: u64 = 1024;

/// Result of [`load_listed`].
pub enum Listed {
    /// The directory matches the list.
    Loaded(Box<Loaded>),
    /// It does not; contains all entries that differ.
    Changed(Vec<ListedChange>),
}

/// Scans the entries of a list, and no others, as [`crate::load_dir`] scans a directory.
/// Directories precede their entries in the list, the root first.
///
/// Errors: as [`crate::load_dir`]; `Corrupt` for an entry whose directory is not listed before it.
pub fn load_listed(
    path: &Path,
    entries: impl IntoIterator<Item = Result<ListedEntry>>,
    shape: &Shape,
    progress: &dyn Progress,
) -> Result<Listed> {
    progress.begin(Stage::Scan, 0, 0);
    let mut scan = Scan::new(path, open_root(path)?, shape, progress)?;
    let mut listing = Listing::default();
    for (index, entry) in (0u64..).zip(entries) {
        if index % ENTRIES_BETWEEN_LOOKS == 0 && progress.cancelled() {
            return Err(Error::cancelled());
        }
        let entry = entry?;
        if let Err(error) = scan.listed(&entry, &mut listing) {
            scan.left_out(error)?;
        }
        progress.advance(1, 0, 0);
    }
    if listing.changes.is_empty() {
        Ok(Listed::Loaded(Box::new(scan.finish()?)))
    } else {
        Ok(Listed::Changed(listing.changes))
    }
}

/// Visits every name in a directory that the shape's filters keep, without building a tree. The
/// order is unspecified, but directories precede their entries.
///
/// Errors: as [`crate::load_dir`], and those of `visit`.
pub fn survey_dir(
    path: &Path,
    shape: &Shape,
    progress: &dyn Progress,
    visit: &mut dyn FnMut(Surveyed) -> Result<()>,
) -> Result<Notes> {
    progress.begin(Stage::Scan, 0, 0);
    let root = open_root(path)?;
    let stat = rustix::fs::fstat(&root).or_io(|| format!("cannot read {path:?}"))?;
    let mut scan = Scan::new(path, root, shape, progress)?;
    scan.device = stat.st_dev;
    visit(surveyed(ImagePath::root(), FileType::Directory, &stat))?;
    scan.visit = Some(visit);
    scan.looker.stat_only = true;
    scan.open.push(Open { place: ImagePath::root(), index: DirIndex::ROOT, ancestors: None });
    scan.all_dirs()?;
    let mut notes = std::mem::take(scan.shaper.notes());
    notes.unused_globs = scan.shaper.unused_globs();
    Ok(notes)
}

/// A directory whose entries are looked up one by one.
pub struct Prober {
    path: PathBuf,
    root: OwnedFd,
    dir: Option<(ImagePath, OwnedFd)>,
}

impl Prober {
    /// Opens the directory.
    ///
    /// Errors: `Io`.
    pub fn new(path: &Path) -> Result<Self> {
        Ok(Prober { path: path.to_owned(), root: open_root(path)?, dir: None })
    }

    /// Returns an entry; `None` if it does not exist.
    ///
    /// Errors: `Io`; `Failed` for an entry of unknown type.
    pub fn probe(&mut self, path: &ImagePath) -> Result<Option<Surveyed>> {
        let cannot_read = || format!("cannot read {:?}", self.path.join(OsStr::from_bytes(path.as_bytes())));
        let stat = match path.file_name() {
            None => rustix::fs::fstat(&self.root),
            Some(name) => {
                let mut parent = path.clone();
                parent.pop();
                if self.dir.as_ref().is_none_or(|(at, _)| *at != parent) {
                    match open_dir_below(&self.root, parent.as_bytes(), false) {
                        Ok(dir) => self.dir = Some((parent, dir)),
                        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
                        Err(error) => return Err(Error::io(cannot_read(), error.into())),
                    }
                }
                let dir = self.dir.as_ref().map_or(&self.root, |(_, dir)| dir);
                rustix::fs::statat(dir, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW)
            }
        };
        match stat {
            Ok(stat) => {
                let file_type = FileType::from_mode_bits(stat.st_mode);
                let unknown = || Error::failed(format!("{}: unknown type", cannot_read()));
                Ok(Some(surveyed(path.clone(), file_type.ok_or_else(unknown)?, &stat)))
            }
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(Error::io(cannot_read(), error.into())),
        }
    }
}

#[derive(Default)]
struct Listing {
    /// Directories above the entry, the root first.
    above: Vec<Open>,
    dir: Option<(ImagePath, OwnedFd, String)>,
    changes: Vec<ListedChange>,
}

impl Scan<'_> {
    /// After a change nothing is added.
    fn listed(&mut self, entry: &ListedEntry, listing: &mut Listing) -> Result<()> {
        let path = &entry.path;
        let Some(name) = path.file_name() else { return self.listed_root(entry, listing) };
        let mut parent = path.clone();
        parent.pop();
        while listing.above.last().is_some_and(|open| open.place != parent) {
            listing.above.pop();
        }
        if listing.above.is_empty() {
            return Err(Error::corrupt("list", format!("{path:?} does not follow its directory")));
        }
        let is_dir = entry.file_type == FileType::Directory;
        let changed = |kind| ListedChange { path: path.clone(), kind };
        if listing.dir.as_ref().is_none_or(|(at, ..)| *at != parent) {
            match open_dir_below(&self.root, parent.as_bytes(), false) {
                Ok(fd) => {
                    let number = fd.as_raw_fd().to_string();
                    listing.dir = Some((parent, fd, number));
                }
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                    listing.changes.push(changed(ChangeKind::Missing));
                    listing.enter(is_dir, path, DirIndex::ROOT);
                    return Ok(());
                }
                Err(error) => {
                    return Err(Error::io(format!("cannot open {}", self.name(&parent)), error.into()));
                }
            }
        }
        let Some((_, fd, number)) = &listing.dir else { return Ok(()) };
        let c_name =
            CString::new(name.as_bytes()).map_err(|_| Error::corrupt("list", "a name with a NUL"))?;
        let difference = match self.looker.look(fd, number, &c_name) {
            Ok(found) => {
                let now = surveyed(path.clone(), self.file_type(path, &found.stat)?, &found.stat);
                match (entry.difference(&now.entry), listing.above.last()) {
                    (None, Some(open)) if listing.changes.is_empty() => {
                        self.node_of(open, &c_name, path.clone(), found)?;
                        None
                    }
                    (difference, _) => difference,
                }
            }
            Err(Errno::NOENT | Errno::NOTDIR) => Some(ChangeKind::Missing),
            Err(error) => return Err(Error::io(format!("cannot read {}", self.name(path)), error.into())),
        };
        listing.changes.extend(difference.map(changed));
        // The scan would read the directory; its entries come from the list instead.
        let index = self.open.pop().map_or(DirIndex::ROOT, |open| open.index);
        listing.enter(is_dir, path, index);
        Ok(())
    }

    fn listed_root(&mut self, entry: &ListedEntry, listing: &mut Listing) -> Result<()> {
        let root = ImagePath::root();
        if !listing.above.is_empty() {
            return Err(Error::corrupt("list", "the root twice"));
        }
        let stat = rustix::fs::fstat(&self.root).or_io(|| format!("cannot read {}", self.name(&root)))?;
        self.device = stat.st_dev;
        let now = surveyed(root.clone(), FileType::Directory, &stat);
        match entry.difference(&now.entry) {
            Some(kind) => listing.changes.push(ListedChange { path: root.clone(), kind }),
            None => {
                let xattrs = self.looker.xattrs(&self.root.as_raw_fd().to_string(), b"");
                let xattrs = xattrs.map_err(|unread| unread.error(&self.name(&root)))?;
                self.shaper.add(&root, packfs_core::NodeKind::Directory, meta(&stat), xattrs)?;
            }
        }
        listing.enter(true, &root, DirIndex::ROOT);
        Ok(())
    }
}

impl Listing {
    fn enter(&mut self, is_dir: bool, path: &ImagePath, index: u32) {
        if is_dir {
            self.above.push(Open { place: path.clone(), index, ancestors: None });
        }
    }
}

fn open_root(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).or_io(|| format!("cannot open {path:?}"))
}

pub(super) fn surveyed(path: ImagePath, file_type: FileType, stat: &Stat) -> Surveyed {
    let has_len = matches!(file_type, FileType::File | FileType::Symlink);
    let len = if has_len { u64::try_from(stat.st_size).unwrap_or_default() } else { 0 };
    Surveyed {
        entry: ListedEntry { path, file_type, meta: meta(stat), len },
        identity: (stat.st_dev, stat.st_ino),
        // Not of this type on every architecture.
        #[allow(clippy::useless_conversion)]
        links: stat.st_nlink.into(),
    }
}
