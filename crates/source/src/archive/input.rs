//! The bytes of an archive from start to end: data stays in place if possible, else it is copied to
//! a spool file.

use super::compression::{BEGINNING_LEN, Watch, compression_of, decoded_on, read_error};
use super::contents::{ArchiveContents, Stored};
use packfs_core::{Error, Limits, Progress, Result, ResultExt};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Cursor, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const BUFFER_LEN: usize = 256 << 10;
/// Bytes read along with a header, which contain further headers if files are small.
const HEADERS_LEN: usize = 16 << 10;
/// Most bytes after the end of an archive, which bounds the time to read them.
const BEHIND_LEN_MAX: u64 = 1 << 30;

pub(crate) struct Input<'a> {
    what: &'static str,
    name: String,
    /// Alignment of data.
    pub align: u64,
    limits: Limits,
    spool_dir: PathBuf,
    /// Checked for cancellation during long reads.
    progress: &'a dyn Progress,
    offset: u64,
    ahead: Vec<u8>,
    sum: Option<u32>,
    watch: Option<Arc<Watch>>,
    from: From,
    /// A file whose first members were read in place, and their number.
    left: Option<(File, usize)>,
}

enum From {
    /// A file whose data is read later, in place.
    Place { file: File, len: u64, buffer: Vec<u8>, buffer_start: u64 },
    /// Any other input: data is copied to an unnamed file.
    Stream { reader: Box<dyn Read + Send>, spool: Spool, buffer: Vec<u8> },
}

pub(crate) struct Spool {
    file: BufWriter<File>,
    len: u64,
}

impl Spool {
    pub(crate) fn new(folder: &Path) -> Result<Self> {
        Ok(Spool { file: BufWriter::with_capacity(BUFFER_LEN, nameless_file(folder)?), len: 0 })
    }

    /// The position of the next byte.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).or_io(cannot_spool)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<File> {
        self.file.into_inner().map_err(io::IntoInnerError::into_error).or_io(cannot_spool)
    }
}

pub(crate) struct Opening<'a> {
    pub name: String,
    pub limits: Limits,
    pub spool_dir: PathBuf,
    pub progress: &'a dyn Progress,
    pub bytes: OpenedBytes,
}

pub(crate) enum OpenedBytes {
    Place(File),
    Stream(Box<dyn Read + Send>, Option<Arc<Watch>>),
}

impl<'a> Input<'a> {
    pub(crate) fn new(opening: Opening<'a>, what: &'static str, align: u64) -> Result<Self> {
        let Opening { name, limits, spool_dir, progress, bytes } = opening;
        let (from, watch) = match bytes {
            OpenedBytes::Place(file) => {
                let len = file.metadata().or_io(|| format!("cannot read {name}"))?.len();
                (From::Place { file, len, buffer: Vec::new(), buffer_start: 0 }, None)
            }
            OpenedBytes::Stream(reader, watch) => (From::stream(reader, &spool_dir)?, watch),
        };
        let (offset, ahead, sum, left) = (0, Vec::new(), None, None);
        Ok(Input { what, name, align, limits, spool_dir, progress, offset, ahead, sum, watch, from, left })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn progress(&self) -> &'a dyn Progress {
        self.progress
    }

    pub(crate) fn warn(&self, message: &str) {
        self.progress.warn(message);
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset - self.ahead.len() as u64
    }

    pub(crate) fn corrupt(&self, fault: impl std::fmt::Display) -> Error {
        Error::corrupt(format!("{} {}", self.what, self.name), fault)
    }

    pub(crate) fn fault(&self, start: u64, fault: &str) -> Error {
        self.corrupt(format!("member at {start:#x}: {fault}"))
    }

    /// `len`: bytes after the start of the block.
    pub(crate) fn cut_off(&self, len: usize) -> Error {
        let at = self.offset().saturating_sub(len as u64);
        self.corrupt(format!("ends {len} bytes into a block at offset {at:#x}"))
            .hint("the archive is cut off")
    }

    /// Fewer before the end.
    pub(crate) fn peek(&mut self, len: usize) -> Result<&[u8]> {
        let known = self.ahead.len();
        if known < len {
            let mut ahead = std::mem::take(&mut self.ahead);
            ahead.resize(len, 0);
            let got = self.fetch(&mut ahead[known..])?;
            ahead.truncate(known + got);
            self.ahead = ahead;
        }
        Ok(&self.ahead[..len.min(self.ahead.len())])
    }

    /// Known once all of the compressed data was read.
    pub(crate) fn has_garbage(&self) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.has_garbage())
    }

    pub(crate) fn read(&mut self, buf: &mut [u8]) -> Result<usize> {
        let known = self.ahead.len().min(buf.len());
        buf[..known].copy_from_slice(&self.ahead[..known]);
        self.ahead.drain(..known);
        Ok(known + self.fetch(&mut buf[known..])?)
    }

    fn fetch(&mut self, buf: &mut [u8]) -> Result<usize> {
        let failed = || format!("cannot read {}", self.name);
        let mut filled = 0;
        while filled < buf.len() {
            let part = &mut buf[filled..];
            let len = match &mut self.from {
                From::Stream { reader, .. } => match reader.read(part) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                        check_cancelled(self.progress)?;
                        continue;
                    }
                    len => len.map_err(|error| read_error(&self.name, error))?,
                },
                From::Place { file, buffer, buffer_start, .. } => {
                    let at = self.offset + filled as u64;
                    if at < *buffer_start || at >= *buffer_start + buffer.len() as u64 {
                        buffer.resize(HEADERS_LEN, 0);
                        let len = file.read_at(buffer, at).or_io(failed)?;
                        buffer.truncate(len);
                        *buffer_start = at;
                    }
                    let ready = &buffer[(at - *buffer_start) as usize..];
                    let len = ready.len().min(part.len());
                    part[..len].copy_from_slice(&ready[..len]);
                    len
                }
            };
            if len == 0 {
                break;
            }
            filled += len;
        }
        self.offset += filled as u64;
        Ok(filled)
    }

    /// The caller has limited the length.
    pub(crate) fn bytes(&mut self, len: usize) -> Result<Vec<u8>> {
        let padded = len.next_multiple_of(self.align as usize);
        let mut bytes = vec![0; padded];
        let got = self.read(&mut bytes)?;
        if got < padded {
            return Err(self.cut_off(got));
        }
        bytes.truncate(len);
        Ok(bytes)
    }

    /// Returns the position for later reads.
    pub(crate) fn data(&mut self, len: u64) -> Result<u64> {
        let padded = len.checked_next_multiple_of(self.align).ok_or_else(|| self.cut_off(0))?;
        let start = self.offset();
        match &self.from {
            From::Place { len: file_len, .. } => {
                let end = start.checked_add(padded).filter(|end| end <= file_len).ok_or_else(|| {
                    let fault =
                        format!("{len} bytes of data at {start:#x} extend beyond its {file_len} bytes");
                    self.corrupt(fault).hint("the archive is cut off")
                })?;
                if self.sum.is_some() {
                    self.copy(len, padded)?;
                }
                self.ahead.clear();
                self.offset = end;
                Ok(start)
            }
            From::Stream { spool, .. } => {
                let at = spool.len();
                self.copy(len, padded)?;
                Ok(at)
            }
        }
    }

    pub(crate) fn summed_data(&mut self, len: u64) -> Result<(u64, u32)> {
        self.sum = Some(0);
        let at = self.data(len)?;
        Ok((at, self.sum.take().unwrap_or(0)))
    }

    /// Data is copied to the spool file, if there is one, and summed if requested.
    fn copy(&mut self, len: u64, padded: u64) -> Result<()> {
        let mut buffer = match &mut self.from {
            From::Stream { buffer, .. } => std::mem::take(buffer),
            From::Place { .. } => Vec::new(),
        };
        buffer.resize(BUFFER_LEN, 0);
        let mut done = 0;
        while done < padded {
            check_cancelled(self.progress)?;
            let part = &mut buffer[..(padded - done).min(BUFFER_LEN as u64) as usize];
            let got = self.read(part)?;
            if got < part.len() {
                return Err(self.cut_off(got % self.align as usize));
            }
            let wanted = &part[..(len - done.min(len)).min(part.len() as u64) as usize];
            if let Some(sum) = &mut self.sum {
                *sum = wanted.iter().fold(*sum, |sum, &byte| sum.wrapping_add(byte.into()));
            }
            if let From::Stream { spool, .. } = &mut self.from {
                spool.append(wanted)?;
            }
            done += part.len() as u64;
        }
        if let From::Stream { buffer: kept, .. } = &mut self.from {
            *kept = buffer;
        }
        Ok(())
    }

    /// Skips zeros, and starts the next of several concatenated archives, each with its own
    /// compression or none. Returns false at the end.
    ///
    /// Errors: `Corrupt` for too many zeros.
    pub(crate) fn next_part(&mut self, rows: usize) -> Result<bool> {
        let start = self.offset();
        loop {
            let ahead = self.peek(BEGINNING_LEN)?;
            match ahead.iter().position(|&byte| byte != 0) {
                None if ahead.is_empty() => {
                    let Some(rest) = self.watch.as_ref().and_then(|watch| watch.take_rest()) else {
                        return Ok(false);
                    };
                    self.replace(rest, rows)?;
                }
                None => self.ahead.clear(),
                Some(0) => break,
                Some(zeros) => drop(self.ahead.drain(..zeros)),
            }
            if self.offset() - start > BEHIND_LEN_MAX {
                return Err(self.corrupt(format!("more than {BEHIND_LEN_MAX} zeros at {start:#x}")));
            }
        }
        if let Some(compression) = compression_of(&self.ahead) {
            let rest = self.rest()?;
            let watch = self.watch.clone().unwrap_or_default();
            let plain = decoded_on(rest, compression, self.limits, &self.name, &watch)?;
            self.watch = Some(watch);
            self.replace(plain, rows)?;
            return self.next_part(rows);
        }
        Ok(true)
    }

    fn rest(&mut self) -> Result<Box<dyn Read + Send>> {
        let ahead = Cursor::new(std::mem::take(&mut self.ahead));
        let rest: Box<dyn Read + Send> = match &mut self.from {
            From::Stream { reader, .. } => std::mem::replace(reader, Box::new(io::empty())),
            From::Place { file, .. } => {
                let failed = || format!("cannot read {}", self.name);
                let mut file = file.try_clone().or_io(failed)?;
                file.seek(SeekFrom::Start(self.offset)).or_io(failed)?;
                Box::new(file)
            }
        };
        Ok(Box::new(ahead.chain(rest)))
    }

    fn replace(&mut self, next: Box<dyn Read + Send>, rows: usize) -> Result<()> {
        match &mut self.from {
            From::Stream { reader, .. } => *reader = Box::new(BufReader::with_capacity(BUFFER_LEN, next)),
            From::Place { .. } => {
                let next = From::stream(next, &self.spool_dir)?;
                if let From::Place { file, .. } = std::mem::replace(&mut self.from, next) {
                    self.left = Some((file, rows));
                }
            }
        }
        Ok(())
    }

    /// Reads to the end, so that a decoder verifies its checksums.
    ///
    /// Errors: `Corrupt` if too much follows the archive.
    pub(crate) fn finish(mut self, stored: Stored) -> Result<ArchiveContents> {
        if matches!(self.from, From::Stream { .. }) {
            self.pass_rest()?;
        }
        if self.has_garbage() {
            let name = &self.name;
            self.warn(&format!("{name}: ignored data after the compressed archive"));
        }
        let (name, left) = (self.name, self.left);
        Ok(match self.from {
            From::Place { file, .. } => {
                let rows = stored.count();
                ArchiveContents { place: Some((file, rows)), spool: None, name, stored }
            }
            From::Stream { spool, .. } => {
                ArchiveContents { place: left, spool: Some(spool.finish()?), name, stored }
            }
        })
    }

    fn pass_rest(&mut self) -> Result<()> {
        let end = self.offset;
        let mut rest = vec![0; BUFFER_LEN];
        while self.read(&mut rest)? > 0 {
            check_cancelled(self.progress)?;
            if self.offset - end > BEHIND_LEN_MAX {
                return Err(
                    self.corrupt(format!("more than {BEHIND_LEN_MAX} bytes follow its end at {end:#x}"))
                );
            }
        }
        Ok(())
    }
}

impl From {
    fn stream(reader: Box<dyn Read + Send>, spool_dir: &Path) -> Result<Self> {
        let reader = Box::new(BufReader::with_capacity(BUFFER_LEN, reader));
        Ok(From::Stream { reader, spool: Spool::new(spool_dir)?, buffer: Vec::new() })
    }
}

pub(crate) fn check_cancelled(progress: &dyn Progress) -> Result<()> {
    if progress.cancelled() { Err(Error::cancelled()) } else { Ok(()) }
}

pub(crate) fn cannot_spool() -> &'static str {
    "cannot write to the temporary file that holds decompressed contents (in TMPDIR)"
}

/// Creates an unnamed file, which is removed when closed.
pub(crate) fn nameless_file(folder: &Path) -> Result<File> {
    let failed = || format!("cannot create a temporary file in {folder:?}");
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(folder, flags, Mode::from_raw_mode(0o600)) {
        return Ok(file.into());
    }
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!(".packfs-spool-{}-{count}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let mut options = File::options();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path).or_io(failed)?;
    std::fs::remove_file(&path).or_io(failed)?;
    Ok(file)
}
