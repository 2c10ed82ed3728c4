//! The bytes of an archive from start to end: data stays in place if possible, else it is copied to
//! a spool file.

use super::compression::{Watch, read_error};
use super::header::{BLOCK_LEN, Block};
use packfs_core::{Error, Progress, Result, ResultExt};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) const BUFFER_LEN: usize = 256 << 10;
/// Bytes read along with a header, which contain further headers if files are small.
const HEADERS_LEN: usize = 16 << 10;
/// Most bytes after the end of an archive, which bounds the time to read them.
const BEHIND_LEN_MAX: u64 = 1 << 30;

/// An archive being read.
pub(super) struct Input<'a> {
    name: String,
    /// Checked for cancellation during long reads.
    progress: &'a dyn Progress,
    offset: u64,
    /// A block that was peeked at.
    peeked: Option<Block>,
    /// Findings about compressed data.
    watch: Option<Arc<Watch>>,
    from: From,
}

enum From {
    /// A file whose data is read later, in place.
    Place { file: File, len: u64, buffer: Vec<u8>, buffer_start: u64 },
    /// Any other input: data is copied to an unnamed file.
    Stream {
        reader: BufReader<Box<dyn Read + Send>>,
        spool: BufWriter<File>,
        spool_len: u64,
        buffer: Vec<u8>,
    },
}

impl<'a> Input<'a> {
    pub(super) fn in_place(file: File, name: String, progress: &'a dyn Progress) -> Result<Self> {
        let len = file.metadata().or_io(|| format!("cannot read {name}"))?.len();
        let from = From::Place { file, len, buffer: Vec::new(), buffer_start: 0 };
        Ok(Input { name, progress, offset: 0, peeked: None, watch: None, from })
    }

    pub(super) fn stream(
        reader: Box<dyn Read + Send>,
        name: String,
        spool_dir: &Path,
        watch: Option<Arc<Watch>>,
        progress: &'a dyn Progress,
    ) -> Result<Self> {
        let spool = BufWriter::with_capacity(BUFFER_LEN, nameless_file(spool_dir)?);
        let reader = BufReader::with_capacity(BUFFER_LEN, reader);
        let from = From::Stream { reader, spool, spool_len: 0, buffer: Vec::new() };
        Ok(Input { name, progress, offset: 0, peeked: None, watch, from })
    }

    /// Returns the name of the archive in messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// True if data stays in the archive.
    pub(super) fn is_in_place(&self) -> bool {
        matches!(self.from, From::Place { .. })
    }

    /// Warns the user.
    pub(super) fn warn(&self, message: &str) {
        self.progress.warn(message);
    }

    /// Returns the current position.
    pub(super) fn offset(&self) -> u64 {
        self.offset - if self.peeked.is_some() { BLOCK_LEN as u64 } else { 0 }
    }

    /// Returns the next block; `None` at the end of the archive.
    pub(super) fn block(&mut self) -> Result<Option<Block>> {
        if let Some(block) = self.peeked.take() {
            return Ok(Some(block));
        }
        let mut block = [0; BLOCK_LEN];
        match self.read(&mut block)? {
            0 => Ok(None),
            BLOCK_LEN => Ok(Some(block)),
            len => Err(self.cut_off(len)),
        }
    }

    /// Returns the next block without consuming it.
    pub(super) fn peek(&mut self) -> Result<Option<Block>> {
        self.peeked = self.block()?;
        Ok(self.peeked)
    }

    /// Consumes a whole block of zeros and returns true, if that comes next.
    pub(super) fn zeros_follow(&mut self) -> Result<bool> {
        let mut block = [1; BLOCK_LEN];
        Ok(self.read(&mut block)? == BLOCK_LEN && block == [0; BLOCK_LEN])
    }

    /// Returns true if data follows the compressed data; known once all of that was read.
    pub(super) fn has_garbage(&self) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.has_garbage())
    }

    fn cut_off(&self, len: usize) -> Error {
        let fault = format!("ends {len} bytes into a block at offset {:#x}", self.offset - len as u64);
        Error::corrupt(format!("tar archive {}", self.name), fault).hint("the archive is cut off")
    }

    /// Reads until `buf` is full or the archive ends.
    fn read(&mut self, buf: &mut [u8]) -> Result<usize> {
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

    /// Reads data into memory, and skips its padding. The caller has limited its length.
    pub(super) fn bytes(&mut self, len: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while bytes.len() < len.next_multiple_of(BLOCK_LEN) {
            let block = self.block()?.ok_or_else(|| self.cut_off(0))?;
            bytes.extend_from_slice(&block);
        }
        bytes.truncate(len);
        Ok(bytes)
    }

    /// Skips data and its padding; returns its position for later reads.
    pub(super) fn data(&mut self, len: u64) -> Result<u64> {
        let padded = len.checked_next_multiple_of(BLOCK_LEN as u64).ok_or_else(|| self.cut_off(0))?;
        let start = self.offset();
        if let From::Place { len: file_len, .. } = &self.from {
            let end = start.checked_add(padded).filter(|end| end <= file_len).ok_or_else(|| {
                let fault = format!("{len} bytes of data at {start:#x} extend beyond its {file_len} bytes");
                Error::corrupt(format!("tar archive {}", self.name), fault).hint("the archive is cut off")
            })?;
            self.peeked = None;
            self.offset = end;
            return Ok(start);
        }
        self.spool(len, padded)
    }

    fn spool(&mut self, len: u64, padded: u64) -> Result<u64> {
        let From::Stream { spool_len: at, buffer, .. } = &mut self.from else { return Ok(0) };
        let (at, mut buffer) = (*at, std::mem::take(buffer));
        buffer.resize(BUFFER_LEN, 0);
        let mut done = 0;
        while done < padded {
            check_cancelled(self.progress)?;
            let part = &mut buffer[..(padded - done).min(BUFFER_LEN as u64) as usize];
            let mut filled = 0;
            if let Some(block) = self.peeked.take() {
                part[..BLOCK_LEN].copy_from_slice(&block);
                filled = BLOCK_LEN;
            }
            let got = filled + self.read(&mut part[filled..])?;
            if got < part.len() {
                return Err(self.cut_off(got % BLOCK_LEN));
            }
            let From::Stream { spool, spool_len, .. } = &mut self.from else { return Ok(0) };
            let wanted = (len - done.min(len)).min(part.len() as u64) as usize;
            spool.write_all(&part[..wanted]).or_io(cannot_spool)?;
            *spool_len += wanted as u64;
            done += part.len() as u64;
        }
        if let From::Stream { buffer: kept, .. } = &mut self.from {
            *kept = buffer;
        }
        Ok(at)
    }

    /// Reads to the end, so that a decoder verifies its checksums; returns the file with the data.
    ///
    /// Errors: `Corrupt` if too much follows the archive; `Cancelled`; `Io`.
    pub(super) fn finish(mut self) -> Result<(File, String)> {
        if matches!(self.from, From::Stream { .. }) {
            self.pass_rest()?;
        }
        if self.has_garbage() {
            let name = &self.name;
            self.warn(&format!("{name}: ignored data after the compressed archive"));
        }
        match self.from {
            From::Place { file, .. } => Ok((file, self.name)),
            From::Stream { spool, .. } => {
                let file = spool.into_inner().map_err(io::IntoInnerError::into_error).or_io(cannot_spool)?;
                Ok((file, self.name))
            }
        }
    }

    fn pass_rest(&mut self) -> Result<()> {
        let end = self.offset;
        let mut rest = vec![0; BUFFER_LEN];
        while self.read(&mut rest)? > 0 {
            check_cancelled(self.progress)?;
            if self.offset - end > BEHIND_LEN_MAX {
                let fault = format!("more than {BEHIND_LEN_MAX} bytes follow its end at {end:#x}");
                return Err(Error::corrupt(format!("tar archive {}", self.name), fault));
            }
        }
        Ok(())
    }
}

pub(super) fn check_cancelled(progress: &dyn Progress) -> Result<()> {
    if progress.cancelled() { Err(Error::cancelled()) } else { Ok(()) }
}

pub(super) fn cannot_spool() -> &'static str {
    "cannot write to the temporary file that holds decompressed contents (in TMPDIR)"
}

/// Creates an unnamed file, which is removed when closed.
pub(super) fn nameless_file(folder: &Path) -> Result<File> {
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
