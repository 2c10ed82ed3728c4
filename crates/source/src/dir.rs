//! The directory source: scans a directory of the host without following links unintentionally.

mod ahead;
mod found;
mod listed;

pub use listed::{Listed, Prober, load_listed, survey_dir};

use crate::Loaded;
use crate::dir_contents::{DirContents, DirIndex, open_below, open_dir_below};
use crate::listed::Surveyed;
use crate::rules::IgnoreFiles;
use crate::shape::Shape;
use crate::shaper::Shaper;
use crate::tops;
use ahead::Ahead;
use found::{Entries, Found, Looker, NotListed};
use packfs_core::{
    DeviceNumber, Error, FileType, ImagePath, Meta, Name, NodeKind, Owner, Progress, Result, ResultExt,
    Stage, Timestamp, Xattrs,
};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Scans a directory. Contents are read when they are packed, and must not have changed by then.
///
/// Errors: `Io` and `Failed` for unreadable files, unless [`Shape::keep_going`]; `Usage` for bad
/// globs; `Cancelled`.
pub fn load_dir(path: &Path, shape: &Shape, progress: &dyn Progress) -> Result<Loaded> {
    progress.begin(Stage::Scan, 0, 0);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(path, flags, Mode::empty()).or_io(|| format!("cannot open {path:?}"))?;
    let mut scan = Scan::new(path, root, shape, progress)?;
    scan.root_dir(Vec::new(), DirIndex::ROOT)?;
    scan.finish()
}

/// Scans files and directories of any type; each becomes an entry of the root under its own name,
/// the last one of its path. The root gets default metadata. A symbolic link stays one, unless it
/// is the only path: then its target is scanned. Hard links across paths are preserved.
///
/// Errors: as [`load_dir`]; `Usage` for duplicate names, and for the root of the filesystem, which
/// has no name.
pub fn load_entries(paths: &[PathBuf], shape: &Shape, progress: &dyn Progress) -> Result<Loaded> {
    progress.begin(Stage::Scan, 0, 0);
    let tops = tops::named(paths)?;
    let mut scan = Scan::below_working_directory(shape, progress)?;
    for (name, path) in &tops {
        scan.top(name, path)?;
    }
    scan.finish()
}

/// Scans directories like [`load_entries`], but merges their contents and metadata into the root.
/// Of two entries with the same name, the one of the later path counts. Hard links are preserved
/// only within a path.
///
/// Errors: as [`load_dir`]; `Failed` if a directory with entries would be replaced.
pub fn load_merged(paths: &[PathBuf], shape: &Shape, progress: &dyn Progress) -> Result<Loaded> {
    progress.begin(Stage::Scan, 0, 0);
    let mut scan = Scan::below_working_directory(shape, progress)?;
    for path in paths {
        scan.first_names.clear();
        scan.ignored = IgnoreFiles::default();
        if path.is_dir() {
            let host = path.as_os_str().as_bytes().to_vec();
            let row = scan.index.add_path(&host);
            scan.root_dir(host, row)?;
        } else {
            scan.top(&tops::name_of(path)?, path)?;
        }
    }
    scan.finish()
}

struct Open {
    place: ImagePath,
    index: u32,
    /// Device and inode of the directories above, to detect circles if symlinks are followed.
    ancestors: Option<Arc<Ancestor>>,
}

struct Ancestor {
    identity: (u64, u64),
    above: Option<Arc<Ancestor>>,
}

struct Scan<'a> {
    path: &'a Path,
    /// Path from `root`, and in the image, of the directory being scanned.
    host: Vec<u8>,
    at: ImagePath,
    shape: &'a Shape,
    progress: &'a dyn Progress,
    root: OwnedFd,
    device: u64,
    shaper: Shaper<'a>,
    index: DirIndex,
    ignored: IgnoreFiles,
    /// First name of each file with several names, by device and inode.
    first_names: HashMap<(u64, u64), ImagePath>,
    /// A list instead of recursion, because depth is unlimited.
    open: Vec<Open>,
    looker: Looker,
    /// Set for a survey, which keeps no entries.
    visit: Option<&'a mut Visit<'a>>,
    is_over: bool,
}

type Visit<'a> = dyn FnMut(Surveyed) -> Result<()> + 'a;

impl<'a> Scan<'a> {
    fn new(path: &'a Path, root: OwnedFd, shape: &'a Shape, progress: &'a dyn Progress) -> Result<Self> {
        Ok(Scan {
            path,
            host: Vec::new(),
            at: ImagePath::root(),
            shape,
            progress,
            device: 0,
            shaper: Shaper::new(shape)?,
            index: DirIndex::default(),
            ignored: IgnoreFiles::default(),
            first_names: HashMap::new(),
            open: Vec::new(),
            looker: Looker::new(shape.follow_symlinks),
            root,
            visit: None,
            is_over: false,
        })
    }

    /// Paths are absolute or relative to the working directory.
    fn below_working_directory(shape: &'a Shape, progress: &'a dyn Progress) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let here =
            rustix::fs::open(".", flags, Mode::empty()).or_io(|| "cannot open the working directory")?;
        Scan::new(Path::new(""), here, shape, progress)
    }

    fn finish(self) -> Result<Loaded> {
        let contents = DirContents::new(self.path.into(), self.root, self.index, self.shape.follow_symlinks);
        self.shaper.finish(Arc::new(contents))
    }

    fn root_dir(&mut self, host: Vec<u8>, row: u32) -> Result<()> {
        (self.host, self.at) = (host, ImagePath::root());
        let root = ImagePath::root();
        let cannot_open = || format!("cannot open {}", self.name(&root));
        let fd = open_dir_below(&self.root, &self.host, true).or_io(cannot_open)?;
        let stat = rustix::fs::fstat(&fd).or_io(cannot_open)?;
        self.device = stat.st_dev;
        let xattrs = self.xattrs_of_root(&fd)?;
        self.shaper.add(&root, NodeKind::Directory, meta(&stat), xattrs)?;
        self.open.push(Open { place: root, index: row, ancestors: None });
        self.all_dirs()
    }

    fn top(&mut self, name: &[u8], path: &Path) -> Result<()> {
        let bytes = path.as_os_str().as_bytes();
        let place = ImagePath::root().join(Name::new(name).map_err(Error::usage)?);
        (self.host, self.at) = (bytes.to_vec(), place.clone());
        let (folder, last) = tops::split(bytes);
        let cannot_open = || format!("cannot open {path:?}");
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let at = if folder.is_empty() { b"." } else { folder };
        let fd = rustix::fs::openat(&self.root, at, flags, Mode::empty()).or_io(cannot_open)?;
        let c_name = CString::new(last).map_err(|_| Error::usage(format!("{path:?} has a NUL in it")))?;
        let follow = if self.shape.follow_symlinks { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        self.device = rustix::fs::statat(&fd, &c_name, follow).or_io(cannot_open)?.st_dev;
        let index = self.index.add_path(folder);
        let open = Open { place: ImagePath::root(), index, ancestors: None };
        let found = self.looker.look(&fd, &fd.as_raw_fd().to_string(), &c_name);
        if let Err(error) = self.node(&open, &c_name, place, found) {
            self.left_out(error)?;
        }
        self.progress.advance(1, 0, 0);
        self.all_dirs()
    }

    fn all_dirs(&mut self) -> Result<()> {
        let root = self.root.try_clone().or_io(|| "cannot duplicate a file descriptor")?;
        let (ahead, spare) = (Ahead::default(), self.looker.clone());
        std::thread::scope(|scope| {
            let _ends = ahead.end_on_drop();
            loop {
                let hosts = self.open[ahead.depth()..].iter().map(|open| self.host(&open.place));
                ahead.push(hosts.collect());
                let Some(open) = self.open.pop() else { return Ok(()) };
                if self.progress.cancelled() {
                    return Err(Error::cancelled());
                }
                ahead.start(scope, &root, &spare);
                let entries = ahead.pop(&root, &mut self.looker);
                if let Err(error) = self.dir(&open, entries) {
                    self.left_out(error)?;
                }
            }
        })
    }

    fn host(&self, place: &ImagePath) -> Vec<u8> {
        let place = place.as_bytes();
        let below = place.get(self.at.as_bytes().len()..).unwrap_or(place);
        let below = below.strip_prefix(b"/").unwrap_or(below);
        match (&self.host[..], below) {
            (host, b"") => host.to_vec(),
            (b"", below) => below.to_vec(),
            (host, below) => [host, b"/", below].concat(),
        }
    }

    fn name(&self, place: &ImagePath) -> String {
        format!("{:?}", self.path.join(OsStr::from_bytes(&self.host(place))))
    }

    fn left_out(&mut self, error: Error) -> Result<()> {
        let is_final = self.is_over || error.kind() == packfs_core::ErrorKind::Cancelled;
        if !self.shape.keep_going || is_final {
            return Err(error);
        }
        self.shaper.notes().unreadable.push(error.to_string());
        Ok(())
    }

    fn dir(&mut self, open: &Open, entries: Result<Entries, NotListed>) -> Result<()> {
        let entries = entries.map_err(|NotListed { verb, error }| {
            Error::io(format!("cannot {verb} {}", self.name(&open.place)), error.into())
        })?;
        if !self.shape.ignore_files.is_empty() {
            let fd = open_dir_below(&self.root, &self.host(&open.place), self.shape.follow_symlinks)
                .or_io(|| format!("cannot open {}", self.name(&open.place)))?;
            self.read_ignore_files(&fd, &open.place)?;
        }
        let count = entries.len();
        for (name, found) in entries {
            if let Err(error) = self.entry(open, &name, found) {
                self.left_out(error)?;
            }
        }
        self.progress.advance(count as u64, 0, 0);
        Ok(())
    }

    fn read_ignore_files(&mut self, fd: &OwnedFd, place: &ImagePath) -> Result<()> {
        for name in &self.shape.ignore_files {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let Ok(file) = rustix::fs::openat(fd, name.as_str(), flags, Mode::empty()) else { continue };
            let mut text = Vec::new();
            let read = std::fs::File::from(file).take(1 << 20).read_to_end(&mut text);
            read.or_io(|| format!("cannot read {name:?} in {}", self.name(place)))?;
            let in_messages =
                format!("{:?}", self.path.join(OsStr::from_bytes(&self.host(place))).join(name));
            self.ignored.add(place, &text, &in_messages)?;
        }
        Ok(())
    }

    fn entry(&mut self, open: &Open, c_name: &CStr, found: Result<Found, Errno>) -> Result<()> {
        let name = Name::new(c_name.to_bytes())
            .map_err(|fault| Error::failed(format!("{}: {fault}", self.name(&open.place))))?;
        self.node(open, c_name, open.place.join(name), found)
    }

    fn node(
        &mut self,
        open: &Open,
        c_name: &CStr,
        place: ImagePath,
        found: Result<Found, Errno>,
    ) -> Result<()> {
        let found = found.or_io(|| format!("cannot read {}", self.name(&place)))?;
        self.node_of(open, c_name, place, found)
    }

    fn file_type(&self, place: &ImagePath, stat: &Stat) -> Result<FileType> {
        FileType::from_mode_bits(stat.st_mode)
            .ok_or_else(|| Error::failed(format!("{}: unknown type {:o}", self.name(place), stat.st_mode)))
    }

    fn node_of(&mut self, open: &Open, c_name: &CStr, place: ImagePath, found: Found) -> Result<()> {
        let Found { stat, target, xattrs } = found;
        let stat = &stat;
        let identity = (stat.st_dev, stat.st_ino);
        let file_type = self.file_type(&place, stat)?;
        let is_dir = file_type == FileType::Directory;
        let elsewhere = self.shape.one_file_system && stat.st_dev != self.device;
        if self.shape.skip.contains(&identity)
            || self.ignored.leave_out(&place, is_dir)
            || is_dir && self.shaper.leaves_out_dir(&place)
            // A file with several names may still be included under another one.
            || !is_dir && stat.st_nlink == 1 && self.shaper.leaves_out_file(&place)
            || elsewhere && !is_dir
        {
            self.shaper.notes().left_out += 1;
            return Ok(());
        }
        if let Some(visit) = &mut self.visit {
            visit(listed::surveyed(place.clone(), file_type, stat)).inspect_err(|_| self.is_over = true)?;
            if is_dir && !elsewhere {
                self.open.push(Open { place, index: DirIndex::ROOT, ancestors: None });
            }
            return Ok(());
        }
        let several_names = stat.st_nlink > 1 && !is_dir;
        if several_names && let Some(first) = self.first_names.get(&identity) {
            return self.shaper.link(&place, first);
        }
        let kind = self.kind((file_type, target), c_name, open, &place, stat)?;
        let xattrs = xattrs.map_err(|unread| unread.error(&self.name(&place)))?;
        self.shaper.add(&place, kind, meta(stat), xattrs)?;
        if is_dir && !elsewhere {
            self.open_later(open, &place, identity, c_name.to_bytes())?;
        }
        if several_names {
            self.first_names.insert(identity, place);
        }
        Ok(())
    }

    fn open_later(
        &mut self,
        above: &Open,
        place: &ImagePath,
        identity: (u64, u64),
        name: &[u8],
    ) -> Result<()> {
        let mut ancestors = None;
        if self.shape.follow_symlinks {
            let mut at = &above.ancestors;
            while let Some(ancestor) = at {
                if ancestor.identity == identity {
                    return Err(Error::failed(format!(
                        "{}: symbolic links lead in a circle",
                        self.name(place)
                    )));
                }
                at = &ancestor.above;
            }
            ancestors = Some(Arc::new(Ancestor { identity, above: above.ancestors.clone() }));
        }
        let index = self.index.add_dir(above.index, name);
        self.open.push(Open { place: place.clone(), index, ancestors });
        Ok(())
    }

    fn kind(
        &mut self,
        (file_type, target): (FileType, Result<Vec<u8>, Errno>),
        name: &CStr,
        open: &Open,
        place: &ImagePath,
        stat: &Stat,
    ) -> Result<NodeKind> {
        let number =
            DeviceNumber { major: rustix::fs::major(stat.st_rdev), minor: rustix::fs::minor(stat.st_rdev) };
        Ok(match file_type {
            FileType::Directory => NodeKind::Directory,
            FileType::File => {
                if self.shape.keep_going {
                    open_below(&self.root, &self.host(place), self.shape.follow_symlinks)
                        .or_io(|| format!("cannot open {}", self.name(place)))?;
                }
                NodeKind::File {
                    len: stat.st_size as u64,
                    content: self.index.add_file(open.index, name.to_bytes(), stat),
                }
            }
            FileType::Symlink => {
                NodeKind::Symlink(target.or_io(|| format!("cannot read {}", self.name(place)))?.into())
            }
            FileType::BlockDevice => NodeKind::BlockDevice(number),
            FileType::CharDevice => NodeKind::CharDevice(number),
            FileType::Fifo => NodeKind::Fifo,
            FileType::Socket => NodeKind::Socket,
        })
    }

    fn xattrs_of_root(&mut self, fd: &OwnedFd) -> Result<Xattrs> {
        let xattrs = self.looker.xattrs(&fd.as_raw_fd().to_string(), b"");
        xattrs.map_err(|unread| unread.error(&self.name(&ImagePath::root())))
    }
}

fn meta(stat: &Stat) -> Meta {
    Meta {
        mode: (stat.st_mode & 0o7777) as u16,
        owner: Owner { uid: stat.st_uid, gid: stat.st_gid },
        mtime: Timestamp { seconds: stat.st_mtime, nanos: stat.st_mtime_nsec as u32 },
    }
}
