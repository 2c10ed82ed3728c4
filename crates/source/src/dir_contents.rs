//! Contents of files in a source directory, opened by name when they are packed.

use packfs_core::{ContentId, ContentReader, Contents, Error, Result, ResultExt};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, SeekFrom, Stat};
use rustix::io::Errno;
use std::ops::Range;
use std::path::PathBuf;

/// Longest path of a Linux system call, with its NUL.
const PATH_LEN_MAX: usize = 4096;

/// Names and parents of files; compact, because there may be millions: rows have no padding but at
/// their end.
#[derive(Default)]
pub(crate) struct DirIndex {
    dirs: Vec<DirRow>,
    files: Vec<FileRow>,
    /// Names of all rows, concatenated.
    names: Vec<u8>,
    /// Last path that [`DirIndex::add_path`] added, and its row.
    last_path: Option<(Vec<u8>, u32)>,
}

struct DirRow {
    name_start: u64,
    parent: u32,
    name_len: u8,
}

struct FileRow {
    len: u64,
    times: Times,
    name_start: u64,
    dir: u32,
    name_len: u8,
}

/// Time of the last write, and of the last change of any kind, which cannot be reset: nanoseconds
/// since 1970, truncated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Times {
    mtime: i64,
    ctime: i64,
}

impl Times {
    pub(crate) fn of(stat: &Stat) -> Self {
        let nanos = |seconds: i64, nanos: i64| seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos);
        Times {
            mtime: nanos(stat.st_mtime, stat.st_mtime_nsec),
            ctime: nanos(stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

impl DirIndex {
    /// The source directory itself.
    pub(crate) const ROOT: u32 = 0;

    /// Returns the start of the name and its length.
    fn add_name(&mut self, name: &[u8]) -> (u64, u8) {
        let start = self.names.len() as u64;
        self.names.extend_from_slice(name);
        (start, name.len() as u8)
    }

    /// Adds a directory; the root is row 0 without being added.
    pub(crate) fn add_dir(&mut self, parent: u32, name: &[u8]) -> u32 {
        let (name_start, name_len) = self.add_name(name);
        self.dirs.push(DirRow { name_start, parent, name_len });
        self.dirs.len() as u32
    }

    /// Adds the directories of an existing path, unless it was added last; an empty path is the
    /// root. An absolute path starts with an empty name.
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

    /// Adds a file in its scanned state.
    pub(crate) fn add_file(&mut self, dir: u32, name: &[u8], len: u64, times: Times) -> ContentId {
        let (name_start, name_len) = self.add_name(name);
        self.files.push(FileRow { len, times, name_start, dir, name_len });
        ContentId(self.files.len() as u64 - 1)
    }

    fn name(&self, start: u64, len: u8) -> &[u8] {
        &self.names[start as usize..][..usize::from(len)]
    }

    fn path(&self, file: &FileRow) -> Vec<u8> {
        let mut names = vec![self.name(file.name_start, file.name_len)];
        let mut at = file.dir;
        while at != DirIndex::ROOT {
            let dir = &self.dirs[at as usize - 1];
            names.push(self.name(dir.name_start, dir.name_len));
            at = dir.parent;
        }
        names.reverse();
        names.join(&b'/')
    }
}

/// Contents of scanned files.
pub(crate) struct DirContents {
    path: PathBuf,
    root: OwnedFd,
    index: DirIndex,
    follow_symlinks: bool,
}

impl DirContents {
    pub(crate) fn new(path: PathBuf, root: OwnedFd, mut index: DirIndex, follow_symlinks: bool) -> Self {
        index.files.shrink_to_fit();
        index.names.shrink_to_fit();
        DirContents { path, root, index, follow_symlinks }
    }
}

impl Contents for DirContents {
    fn open(&self, id: ContentId) -> Result<Box<dyn ContentReader + '_>> {
        let row = usize::try_from(id.0).ok().and_then(|index| self.index.files.get(index));
        let row = row.ok_or_else(|| Error::failed(format!("no file with id {}", id.0)))?;
        let path = self.index.path(row);
        let file = open_below(&self.root, &path, self.follow_symlinks).or_io(|| {
            format!("cannot open {}", DirReader { contents: self, row, file: None, dense: true }.name())
        })?;
        let mut reader = DirReader { contents: self, row, file: None, dense: true };
        let stat = reader.check(&file)?;
        reader.dense = stat.st_blocks as u64 * 512 >= row.len;
        reader.file = Some(file);
        Ok(Box::new(reader))
    }
}

struct DirReader<'a> {
    contents: &'a DirContents,
    row: &'a FileRow,
    file: Option<OwnedFd>,
    /// True if all bytes are allocated, so that there are no holes.
    dense: bool,
}

impl DirReader<'_> {
    fn name(&self) -> String {
        use std::os::unix::ffi::OsStringExt;
        let below = std::ffi::OsString::from_vec(self.contents.index.path(self.row));
        format!("{:?}", self.contents.path.join(below))
    }

    fn changed(&self) -> Error {
        Error::failed(format!("cannot pack {}: it changed during packing", self.name()))
            .hint("pack a snapshot, or stop the program that writes to it")
    }

    /// Errors: `Failed` for a file that changed since the scan.
    fn check(&self, file: &OwnedFd) -> Result<Stat> {
        let stat = rustix::fs::fstat(file).or_io(|| format!("cannot read {}", self.name()))?;
        let is_file = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file();
        let is_same = is_file && stat.st_size as u64 == self.row.len && Times::of(&stat) == self.row.times;
        if is_same { Ok(stat) } else { Err(self.changed()) }
    }

    fn opened(&self) -> Result<&OwnedFd> {
        self.file.as_ref().ok_or_else(|| self.changed())
    }
}

impl ContentReader for DirReader<'_> {
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut filled = 0;
        while filled < buf.len() {
            match rustix::io::pread(self.opened()?, &mut buf[filled..], offset + filled as u64) {
                Ok(0) => return Err(self.changed()),
                Ok(len) => filled += len,
                Err(Errno::INTR) => {}
                Err(error) => return Err(Error::io(format!("cannot read {}", self.name()), error.into())),
            }
        }
        Ok(())
    }

    fn next_data(&mut self, offset: u64) -> Result<Option<Range<u64>>> {
        let len = self.row.len;
        if offset >= len {
            return Ok(None);
        }
        if self.dense {
            return Ok(Some(offset..len));
        }
        next_data(self.opened()?, offset, len).or_io(|| format!("cannot seek in {}", self.name()))
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(AsFd::as_fd)
    }

    fn check_unchanged(&mut self) -> Result<()> {
        self.check(self.opened()?).map(|_| ())
    }
}

/// Returns the first run of data at or after `offset`, cut off at `len`; `None` if there is none.
///
/// If the filesystem does not report holes, everything is data.
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

/// Opens a file below a directory; the path may have any length.
pub(crate) fn open_below(root: &OwnedFd, path: &[u8], follow: bool) -> Result<OwnedFd, Errno> {
    // Opening a FIFO that replaced a file must not block.
    open(root, path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, follow)
}

/// Opens a directory below another; the path may have any length, and an empty one is the directory
/// itself.
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
