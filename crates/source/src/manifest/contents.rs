//! Contents of files that a manifest describes: inline bytes, holes, and files of the host.

use super::entry::Bytes;
use crate::dir_contents::{Times, next_data, open_below};
use packfs_core::{ContentId, ContentReader, Contents, Error, NodeKind, Result, ResultExt};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, Stat};
use std::ffi::OsStr;
use std::fs::File;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

enum Row {
    Hole(u64),
    Inline(Box<[u8]>),
    Host(HostRow),
}

/// A range of a host file, which must not change after the manifest was read.
struct HostRow {
    /// Relative to the manifest's directory.
    path: Box<[u8]>,
    start: u64,
    len: u64,
    file_len: u64,
    times: Times,
}

pub(crate) struct ManifestContents {
    folder: PathBuf,
    folder_fd: OwnedFd,
    rows: Vec<Row>,
}

impl ManifestContents {
    /// An empty `folder` is the working directory.
    pub(crate) fn below(folder: &Path) -> Result<Self> {
        let opened = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder_fd =
            rustix::fs::open(opened, flags, Mode::empty()).or_io(|| format!("cannot open {opened:?}"))?;
        Ok(ManifestContents { folder: folder.into(), folder_fd, rows: Vec::new() })
    }

    pub(crate) fn count(&self) -> u64 {
        self.rows.len() as u64
    }

    pub(crate) fn add(&mut self, bytes: Bytes) -> Result<NodeKind> {
        let (content, len) = match bytes {
            Bytes::Hole(len) => (self.push(Row::Hole(len)), len),
            Bytes::Inline(bytes) => {
                let len = bytes.len() as u64;
                (self.push(Row::Inline(bytes.into())), len)
            }
            Bytes::From { path, offset, len } => self.add_from(&path, offset, len)?,
        };
        Ok(NodeKind::File { len, content })
    }

    fn push(&mut self, row: Row) -> ContentId {
        self.rows.push(row);
        ContentId(self.rows.len() as u64 - 1)
    }

    /// Returns the length of the file, or of its range from `offset` on.
    ///
    /// Errors: `Failed` if it is not a regular file, or has another length than given.
    fn add_from(&mut self, path: &[u8], offset: Option<u64>, len: Option<u64>) -> Result<(ContentId, u64)> {
        let (_, stat) = self.open_file(path).map_err(|error| self.advised(error))?;
        let (file_len, times) = (stat.st_size as u64, Times::of(&stat));
        let start = offset.unwrap_or(0);
        let found = match (file_len.checked_sub(start), len) {
            // Without an offset, the whole file is used, and another length means another file.
            (Some(rest), Some(len)) if len > rest || offset.is_none() && len != rest => None,
            (rest, len) => rest.map(|rest| len.unwrap_or(rest)),
        };
        let Some(found) = found else { return Err(self.wrong_len(path, file_len, offset, len)) };
        Ok((self.push(Row::Host(HostRow { path: path.into(), start, len: found, file_len, times })), found))
    }

    /// Hints at the directory if a file is missing, as happens beside the manifest of an image.
    fn advised(&self, error: Error) -> Error {
        if error.io_source().is_none_or(|source| source.kind() != std::io::ErrorKind::NotFound) {
            return error;
        }
        let folder = if self.folder.as_os_str().is_empty() { Path::new(".") } else { &self.folder };
        error.hint(format!(
            "files behind from= lie in the folder of the manifest; packfs unpack IMAGE {folder:?} puts those of \
             an image there"
        ))
    }

    fn wrong_len(&self, path: &[u8], file_len: u64, offset: Option<u64>, len: Option<u64>) -> Error {
        let wanted = match (offset, len) {
            (None, Some(len)) => format!("size={len}"),
            (Some(offset), Some(len)) => format!("offset={offset} size={len}"),
            (offset, None) => format!("offset={}", offset.unwrap_or(0)),
        };
        Error::failed(format!("{} has {file_len} bytes, the line says {wanted}", self.name(path)))
            .hint("omit offset= and size= to use the whole file")
    }

    fn open_file(&self, path: &[u8]) -> Result<(File, Stat)> {
        let cannot_open = || format!("cannot open {}", self.name(path));
        let file = File::from(open_below(&self.folder_fd, path, true).or_io(cannot_open)?);
        let stat = rustix::fs::fstat(&file).or_io(cannot_open)?;
        if !rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file() {
            return Err(Error::failed(format!("{} is not a regular file", self.name(path))));
        }
        Ok((file, stat))
    }

    fn name(&self, path: &[u8]) -> String {
        format!("{:?}", self.folder.join(OsStr::from_bytes(path)))
    }

    fn check(&self, row: &HostRow, stat: &Stat) -> Result<()> {
        let is_same = stat.st_size as u64 == row.file_len && Times::of(stat) == row.times;
        if is_same { Ok(()) } else { Err(self.changed(row)) }
    }

    fn changed(&self, row: &HostRow) -> Error {
        Error::failed(format!("cannot pack {}: it changed during packing", self.name(&row.path)))
            .hint("stop the program that writes to it")
    }
}

impl Contents for ManifestContents {
    fn open(&self, id: ContentId) -> Result<Box<dyn ContentReader + '_>> {
        let row = usize::try_from(id.0).ok().and_then(|index| self.rows.get(index));
        Ok(match row.ok_or_else(|| Error::failed(format!("no file with id {}", id.0)))? {
            Row::Hole(len) => Box::new(Hole(*len)),
            Row::Inline(bytes) => Box::new(Inline(bytes)),
            Row::Host(row) => {
                let (file, stat) = self.open_file(&row.path)?;
                self.check(row, &stat)?;
                let dense = stat.st_blocks as u64 * 512 >= row.file_len;
                Box::new(Host { contents: self, row, file, dense })
            }
        })
    }
}

fn past_the_end() -> Error {
    Error::failed("contents end early")
}

struct Hole(u64);

impl ContentReader for Hole {
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if offset.checked_add(buf.len() as u64).is_none_or(|end| end > self.0) {
            return Err(past_the_end());
        }
        buf.fill(0);
        Ok(())
    }

    fn next_data(&mut self, _offset: u64) -> Result<Option<Range<u64>>> {
        Ok(None)
    }
}

struct Inline<'a>(&'a [u8]);

impl ContentReader for Inline<'_> {
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = self.0.get(start..).and_then(|rest| rest.get(..buf.len()));
        buf.copy_from_slice(bytes.ok_or_else(past_the_end)?);
        Ok(())
    }

    fn next_data(&mut self, offset: u64) -> Result<Option<Range<u64>>> {
        let len = self.0.len() as u64;
        Ok((offset < len).then_some(offset..len))
    }
}

struct Host<'a> {
    contents: &'a ManifestContents,
    row: &'a HostRow,
    file: File,
    /// True if all bytes are allocated, so that there are no holes.
    dense: bool,
}

impl ContentReader for Host<'_> {
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if offset.checked_add(buf.len() as u64).is_none_or(|end| end > self.row.len) {
            return Err(past_the_end());
        }
        match self.file.read_exact_at(buf, self.row.start + offset) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                Err(self.contents.changed(self.row))
            }
            read => read.or_io(|| format!("cannot read {}", self.contents.name(&self.row.path))),
        }
    }

    fn check_unchanged(&mut self) -> Result<()> {
        let cannot_read = || format!("cannot read {}", self.contents.name(&self.row.path));
        let stat = rustix::fs::fstat(&self.file).or_io(cannot_read)?;
        self.contents.check(self.row, &stat)
    }

    fn next_data(&mut self, offset: u64) -> Result<Option<Range<u64>>> {
        let row = self.row;
        if offset >= row.len {
            return Ok(None);
        }
        if self.dense {
            return Ok(Some(offset..row.len));
        }
        let found = next_data(&self.file, row.start + offset, row.start + row.len)
            .or_io(|| format!("cannot seek in {}", self.contents.name(&row.path)))?;
        Ok(found.map(|data| data.start - row.start..data.end - row.start))
    }
}
