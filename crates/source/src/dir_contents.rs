//! Contents of files in a source directory, opened by name when they are packed.

use packfs_core::{ContentId, ContentReader, Contents, Error, Result, ResultExt};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, SeekFrom, Stat};
use rustix::io::Errno;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::path::PathBuf;

/// Longest path of a Linux system call, with its NUL.
const PATH_LEN_MAX: usize = 4096;

#[derive(Default)]
pub(crate) struct DirIndex {
    dirs: Vec<DirRow>,
    dir_names: Vec<u8>,
    files: Files,
    /// Keys of [`Files::states`].
    hashing: RandomState,
    last_path: Option<(Vec<u8>, u32)>,
}

struct DirRow {
    name_start: usize,
    parent: u32,
    name_len: u8,
}

#[derive(Default)]
struct Files {
    /// Hashes of length and times as scanned: enough to find out that a file changed.
    states: Vec<u64>,
    dirs: Vec<u32>,
    names: Vec<u8>,
    name_ends: Vec<u64>,
}

impl Files {
    fn name(&self, file: usize) -> &[u8] {
        let start = file.checked_sub(1).map_or(0, |before| self.name_ends[before]);
        &self.names[start as usize..self.name_ends[file] as usize]
    }
}

/// mtime and ctime, which cannot be reset: nanoseconds since 1970, truncated.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Times {
    mtime: i64,
    ctime: i64,
}

impl Times {
    pub(crate) fn of(stat: &Stat) -> Self {
        let nanos = |seconds: i64, nanos: u32| seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos.into());
        Times {
            mtime: nanos(stat.st_mtime, stat.st_mtime_nsec as u32),
            ctime: nanos(stat.st_ctime, stat.st_ctime_nsec as u32),
        }
    }
}

impl DirIndex {
    pub(crate) const ROOT: u32 = 0;

    /// The root is row 0 without being added.
    pub(crate) fn add_dir(&mut self, parent: u32, name: &[u8]) -> u32 {
        let (name_start, name_len) = (self.dir_names.len(), name.len() as u8);
        self.dir_names.extend_from_slice(name);
        self.dirs.push(DirRow { name_start, parent, name_len });
        self.dirs.len() as u32
    }

    /// An empty path is the root. An absolute path starts with an empty name.
    pub(crate) fn add_path(&mut self, path: &[u8]) -> u32 {
        if path.is_empty() {
            return DirIndex::ROOT;
        }
        match &self.last_path {
            Some((last, row)) if last == path => *row,
            _ => {
                let row =
                    path.split(|&b| b == b'/').fold(DirIndex::ROOT, |row, name| self.add_dir(row, name));
                self.last_path = Some((path.to_vec(), row));
                row
            }
        }
    }

    pub(crate) fn add_file(&mut self, dir: u32, name: &[u8], stat: &Stat) -> ContentId {
        let state = self.state(stat);
        let Files { states, dirs, names, name_ends } = &mut self.files;
        states.push(state);
        dirs.push(dir);
        names.extend_from_slice(name);
        name_ends.push(names.len() as u64);
        ContentId(states.len() as u64 - 1)
    }

    fn state(&self, stat: &Stat) -> u64 {
        self.hashing.hash_one((stat.st_size, Times::of(stat)))
    }

    fn path(&self, file: usize) -> Vec<u8> {
        let mut names = vec![self.files.name(file)];
        let mut at = self.files.dirs[file];
        while at != DirIndex::ROOT {
            let dir = &self.dirs[at as usize - 1];
            names.push(&self.dir_names[dir.name_start..][..usize::from(dir.name_len)]);
            at = dir.parent;
        }
        names.reverse();
        names.join(&b'/')
    }
}

pub(crate) struct DirContents {
    path: PathBuf,
    root: OwnedFd,
    index: DirIndex,
    follow_symlinks: bool,
}

impl DirContents {
    pub(crate) fn new(path: PathBuf, root: OwnedFd, mut index: DirIndex, follow_symlinks: bool) -> Self {
        let Files { states, dirs, names, name_ends } = &mut index.files;
        states.shrink_to_fit();
        dirs.shrink_to_fit();
        names.shrink_to_fit();
        name_ends.shrink_to_fit();
        DirContents { path, root, index, follow_symlinks }
    }

    fn name(&self, file: usize) -> String {
        use std::os::unix::ffi::OsStringExt;
        let below = std::ffi::OsString::from_vec(self.index.path(file));
        format!("{:?}", self.path.join(below))
    }

    fn changed(&self, file: usize) -> Error {
        Error::failed(format!("cannot pack {}: it changed during packing", self.name(file)))
            .hint("pack a snapshot, or stop the program that writes to it")
    }

    fn check(&self, file: usize, fd: &OwnedFd) -> Result<Stat> {
        let stat = rustix::fs::fstat(fd).or_io(|| format!("cannot read {}", self.name(file)))?;
        let is_file = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file();
        let is_same = is_file && self.index.state(&stat) == self.index.files.states[file];
        if is_same { Ok(stat) } else { Err(self.changed(file)) }
    }
}

impl Contents for DirContents {
    fn open(&self, id: ContentId) -> Result<Box<dyn ContentReader + '_>> {
        let file = usize::try_from(id.0).ok().filter(|&file| file < self.index.files.states.len());
        let file = file.ok_or_else(|| Error::failed(format!("no file with id {}", id.0)))?;
        let path = self.index.path(file);
        let fd = open_below(&self.root, &path, self.follow_symlinks)
            .or_io(|| format!("cannot open {}", self.name(file)))?;
        let stat = self.check(file, &fd)?;
        let len = stat.st_size as u64;
        let dense = stat.st_blocks as u64 * 512 >= stat.st_size as u64;
        Ok(Box::new(DirReader { contents: self, file, fd, len, dense }))
    }
}

struct DirReader<'a> {
    contents: &'a DirContents,
    file: usize,
    fd: OwnedFd,
    len: u64,
    /// True if all bytes are allocated, so that there are no holes.
    dense: bool,
}

impl ContentReader for DirReader<'_> {
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut filled = 0;
        while filled < buf.len() {
            match rustix::io::pread(&self.fd, &mut buf[filled..], offset + filled as u64) {
                Ok(0) => return Err(self.contents.changed(self.file)),
                Ok(len) => filled += len,
                Err(Errno::INTR) => {}
                Err(error) => {
                    let name = self.contents.name(self.file);
                    return Err(Error::io(format!("cannot read {name}"), error.into()));
                }
            }
        }
        Ok(())
    }

    fn next_data(&mut self, offset: u64) -> Result<Option<Range<u64>>> {
        if offset >= self.len {
            return Ok(None);
        }
        if self.dense {
            return Ok(Some(offset..self.len));
        }
        next_data(&self.fd, offset, self.len)
            .or_io(|| format!("cannot seek in {}", self.contents.name(self.file)))
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }

    fn check_unchanged(&mut self) -> Result<()> {
        self.contents.check(self.file, &self.fd).map(|_| ())
    }
}

/// The run is cut off at `len`; `None` if no data follows. If the filesystem does not report holes,
/// everything is data.
pub(crate) fn next_data(file: impl AsFd, offset: u64, len: u64) -> Result<Option<Range<u64>>, Errno> {
    let start = match rustix::fs::seek(&file, SeekFrom::Data(offset)) {
        // Only a hole is left.
        Err(Errno::NXIO) => return Ok(None),
        Err(Errno::INVAL) => offset,
        start => start?,
    };
    if start >= len {
        return Ok(None);
    }
    let end = rustix::fs::seek(&file, SeekFrom::Hole(start)).unwrap_or(len);
    Ok(Some(start..end.clamp(start + 1, len)))
}

/// The path may have any length.
pub(crate) fn open_below(root: &OwnedFd, path: &[u8], follow: bool) -> Result<OwnedFd, Errno> {
    // Opening a FIFO that replaced a file must not block.
    open(root, path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, follow)
}

/// The path may have any length; an empty one is the directory itself.
pub(crate) fn open_dir_below(root: &OwnedFd, path: &[u8], follow: bool) -> Result<OwnedFd, Errno> {
    let path = if path.is_empty() { b"." } else { path };
    open(root, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, follow)
}

fn open(root: &OwnedFd, path: &[u8], flags: OFlags, follow: bool) -> Result<OwnedFd, Errno> {
    let follow = if follow { OFlags::empty() } else { OFlags::NOFOLLOW };
    let mut at: Option<OwnedFd> = None;
    let mut rest = path;
    while rest.len() >= PATH_LEN_MAX {
        let cut = rest[..PATH_LEN_MAX - 1].iter().rposition(|&b| b == b'/').ok_or(Errno::NAMETOOLONG)?;
        let from = at.as_ref().map_or(root.as_fd(), OwnedFd::as_fd);
        let through = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | follow;
        at = Some(rustix::fs::openat(from, &rest[..cut], through, Mode::empty())?);
        rest = &rest[cut + 1..];
    }
    rustix::fs::openat(at.as_ref().map_or(root.as_fd(), OwnedFd::as_fd), rest, flags | follow, Mode::empty())
}
