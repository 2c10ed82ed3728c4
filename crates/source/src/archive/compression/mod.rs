//! Compressed archives: detected by their first bytes, and decoded on a separate thread.
//!
//! Members, streams or frames may be concatenated. Zeros after the last one are padding, as on
//! tapes; other data there is ignored with a warning. A truncated archive or a wrong checksum is an
//! error.

mod lz4;
mod lzw;
mod source;

use packfs_core::{Error, Limits, Result, ResultExt};
use source::Source;
use std::fmt;
use std::io::{self, BufRead, ErrorKind, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Compression format of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// RFC 1952, one or more members.
    Gzip,
    /// One or more `.xz` streams.
    Xz,
    /// One or more Zstandard frames.
    Zstd,
    /// One or more bzip2 streams.
    Bzip2,
    /// One or more LZ4 frames, those of the first programs included.
    Lz4,
    /// One or more lzip members.
    Lzip,
    /// Predecessor of `.xz`, without a magic number.
    Lzma,
    /// LZW, as `compress` writes it.
    Compress,
}

/// Detects the compression of a file by its first bytes.
pub fn compression_of(beginning: &[u8]) -> Option<Compression> {
    match beginning {
        [0x1f, 0x8b, 8, ..] => Some(Compression::Gzip),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Compression::Xz),
        // A frame, or a skippable one: some compressors write their index first.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Compression::Zstd),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Compression::Bzip2),
        [a, b, c, d, ..] if [lz4::MAGIC, lz4::LEGACY_MAGIC].contains(&[*a, *b, *c, *d]) => {
            Some(Compression::Lz4)
        }
        [b'L', b'Z', b'I', b'P', 0 | 1, ..] => Some(Compression::Lzip),
        [0x1f, 0x9d, 0x09..=0x10 | 0x89..=0x90, ..] => Some(Compression::Compress),
        [0x5d, header @ ..] => {
            header.first_chunk().filter(|header| is_lzma(header)).map(|_| Compression::Lzma)
        }
        _ => None,
    }
}

/// Requires a usual dictionary size, and a length that is unknown or below 256 GiB, as xz does.
fn is_lzma(header: &[u8; 12]) -> bool {
    let dictionary = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
    let top_bits = dictionary.checked_shl(dictionary.leading_zeros()).unwrap_or(0);
    let known_size = [0x8000_0000, 0xc000_0000].contains(&top_bits) && dictionary >= 4096;
    let len_is_unknown = header[4..] == [0xff; 8];
    known_size && (len_is_unknown || header[8] < 64 && header[9..] == [0; 3])
}

impl Compression {
    /// Returns the name, which is that of the program.
    pub fn name(self) -> &'static str {
        match self {
            Compression::Gzip => "gzip",
            Compression::Xz => "xz",
            Compression::Zstd => "zstd",
            Compression::Bzip2 => "bzip2",
            Compression::Lz4 => "lz4",
            Compression::Lzip => "lzip",
            Compression::Lzma => "lzma",
            Compression::Compress => "compress",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

pub(crate) const BEGINNING_LEN: usize = 16;
const PART_LEN: usize = 256 << 10;
const PARTS_MAX: usize = 4;
/// Memory limit of decoding, in bytes: eight times that of `xz -9`.
const MEMORY_MAX: u64 = 512 << 20;
/// Base-2 logarithm of Zstandard's window, for the same limit.
const WINDOW_LOG_MAX: u32 = 29;

/// Most zeros after the last member, which bounds the time to read them.
const PADDING_LEN_MAX: u64 = 1 << 30;
/// Time that a read waits for the decoding thread before its caller can check for cancellation.
const PATIENCE: Duration = Duration::from_millis(100);

/// Marks an [`io::Error`] caused by damaged data instead of a failed read.
#[derive(Debug)]
struct Damaged(String);

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Damaged {}

/// Distinguishes damage from a failed read.
pub(crate) fn read_error(name: &str, error: io::Error) -> Error {
    if let Some(over_limit) = error.get_ref().and_then(|source| source.downcast_ref::<Error>()) {
        return over_limit.clone();
    }
    match error.get_ref().and_then(|source| source.downcast_ref::<Damaged>()) {
        Some(damaged) => Error::corrupt(format!("compressed file {name}"), damaged),
        None => Error::io(format!("cannot read {name}"), error),
    }
}

/// Decodes `reader` ahead of the caller, on another thread. A read returns `Interrupted` if there
/// is no data yet. Findings are complete once everything was read. Errors of the reader are for
/// [`read_error`].
pub(crate) fn decoded(
    reader: Box<dyn Read + Send>,
    compression: Compression,
    limits: Limits,
    name: &str,
) -> Result<(Box<dyn Read + Send>, Arc<Watch>)> {
    let watch = Arc::<Watch>::default();
    Ok((decoded_on(reader, compression, limits, name, &watch)?, watch))
}

/// Continues the findings of earlier data, so that limits hold for all together.
pub(crate) fn decoded_on(
    reader: Box<dyn Read + Send>,
    compression: Compression,
    limits: Limits,
    name: &str,
    watch: &Arc<Watch>,
) -> Result<Box<dyn Read + Send>> {
    let source = Source::new(Watched { reader, watch: Arc::clone(watch) });
    let limited = Limited { limits, subject: format!("compressed file {name}") };
    let cannot_decode = || format!("cannot decode {name}");
    let member = Member::new(source, compression).map_err(|error| match error.kind() {
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof | ErrorKind::Unsupported => {
            read_error(name, damage(&error, compression))
        }
        _ => Error::io(cannot_decode(), error),
    })?;
    let (parts, received) = sync_channel(PARTS_MAX);
    let seen = Arc::clone(watch);
    let members = Members { member: Some(member), compression, watch: Arc::clone(watch) };
    let thread = std::thread::Builder::new().name("decode archive".into());
    thread.spawn(move || hand_over(members, &seen, limited, &parts)).or_io(cannot_decode)?;
    Ok(Box::new(Parts { received, part: Vec::new(), read: 0, ended: false }))
}

#[derive(Default)]
pub(crate) struct Watch {
    /// True if reading failed: decoders return such errors like their own.
    failed: AtomicBool,
    len: AtomicU64,
    decoded_len: AtomicU64,
    rest: Mutex<Option<Box<dyn Read + Send>>>,
}

impl Watch {
    pub(crate) fn has_garbage(&self) -> bool {
        self.rest().is_some()
    }

    /// Returns `Some` only once.
    pub(crate) fn take_rest(&self) -> Option<Box<dyn Read + Send>> {
        self.rest().take()
    }

    fn rest(&self) -> std::sync::MutexGuard<'_, Option<Box<dyn Read + Send>>> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Watched {
    reader: Box<dyn Read + Send>,
    watch: Arc<Watch>,
}

/// Refuses to decode more than the length of the archive allows.
struct Limited {
    limits: Limits,
    subject: String,
}

impl Limited {
    fn count(&self, len: usize, watch: &Watch) -> Result<()> {
        let decoded_len = watch.decoded_len.fetch_add(len as u64, Ordering::Relaxed) + len as u64;
        self.limits.check_data(&self.subject, decoded_len, watch.len.load(Ordering::Relaxed))
    }
}

impl Read for Watched {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let outcome = self.reader.read(buf);
        let failed = outcome.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted);
        self.watch.failed.fetch_or(failed, Ordering::Relaxed);
        self.watch.len.fetch_add(*outcome.as_ref().unwrap_or(&0) as u64, Ordering::Relaxed);
        outcome
    }
}

enum Member {
    Gzip(flate2::bufread::GzDecoder<Source>),
    Xz(liblzma::bufread::XzDecoder<Source>),
    Zstd(zstd::stream::read::Decoder<'static, Source>),
    Bzip2(bzip2::bufread::BzDecoder<Source>),
    Lz4(Box<lz4::Decoder>),
    Compress(Box<lzw::Decoder>),
}

impl Member {
    fn new(source: Source, compression: Compression) -> io::Result<Self> {
        Ok(match compression {
            Compression::Gzip => Member::Gzip(flate2::bufread::GzDecoder::new(source)),
            Compression::Xz => {
                let stream = liblzma::stream::Stream::new_stream_decoder(MEMORY_MAX, 0)?;
                Member::Xz(liblzma::bufread::XzDecoder::new_stream(source, stream))
            }
            Compression::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(source)?.single_frame();
                decoder.window_log_max(WINDOW_LOG_MAX)?;
                Member::Zstd(decoder)
            }
            Compression::Bzip2 => Member::Bzip2(bzip2::bufread::BzDecoder::new(source)),
            Compression::Lzip => {
                let stream = liblzma::stream::Stream::new_lzip_decoder(MEMORY_MAX, 0)?;
                Member::Xz(liblzma::bufread::XzDecoder::new_stream(source, stream))
            }
            Compression::Lzma => {
                let stream = liblzma::stream::Stream::new_lzma_decoder(MEMORY_MAX)?;
                Member::Xz(liblzma::bufread::XzDecoder::new_stream(source, stream))
            }
            Compression::Lz4 => Member::Lz4(Box::new(lz4::Decoder::new(source)?)),
            Compression::Compress => Member::Compress(Box::new(lzw::Decoder::new(source)?)),
        })
    }

    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Member::Gzip(decoder) => decoder.read(buf),
            Member::Xz(decoder) => decoder.read(buf),
            Member::Zstd(decoder) => decoder.read(buf),
            Member::Bzip2(decoder) => decoder.read(buf),
            Member::Lz4(decoder) => decoder.read(buf),
            Member::Compress(decoder) => decoder.read(buf),
        }
    }

    fn into_source(self) -> Source {
        match self {
            Member::Gzip(decoder) => decoder.into_inner(),
            Member::Xz(decoder) => decoder.into_inner(),
            Member::Zstd(decoder) => decoder.finish(),
            Member::Bzip2(decoder) => decoder.into_inner(),
            Member::Lz4(decoder) => decoder.into_source(),
            Member::Compress(decoder) => decoder.into_source(),
        }
    }
}

struct Members {
    /// `None` after the last one.
    member: Option<Member>,
    compression: Compression,
    watch: Arc<Watch>,
}

impl Members {
    fn next(&self, source: &mut Source, padded: bool) -> io::Result<Option<Compression>> {
        let next = compression_of(source.peek(BEGINNING_LEN)?);
        // Only `.xz` allows padding between streams; LZ4 and Zstandard share skippable frames.
        let may_follow = match (self.compression, next) {
            (Compression::Xz, next) => next == Some(Compression::Xz),
            _ if padded => false,
            (Compression::Zstd | Compression::Lz4, next) => {
                matches!(next, Some(Compression::Zstd | Compression::Lz4))
            }
            (compression, next) => next == Some(compression),
        };
        Ok(next.filter(|_| may_follow))
    }
}

impl Read for Members {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let len = member.read(buf)?;
            if len > 0 || buf.is_empty() {
                return Ok(len);
            }
            let Some(mut source) = self.member.take().map(Member::into_source) else { break };
            let padded = skip_zeros(&mut source)?;
            if let Some(next) = self.next(&mut source, padded)? {
                (self.member, self.compression) = (Some(Member::new(source, next)?), next);
            } else if !source.fill_buf()?.is_empty() {
                *self.watch.rest() = Some(source.into_rest());
            }
        }
        Ok(0)
    }
}

/// Returns true if there were any zeros.
fn skip_zeros(source: &mut Source) -> io::Result<bool> {
    let mut len = 0;
    while len <= PADDING_LEN_MAX {
        let bytes = source.fill_buf()?;
        let zeros = bytes.iter().position(|&b| b != 0).unwrap_or(bytes.len());
        if zeros == 0 {
            return Ok(len > 0);
        }
        len += zeros as u64;
        source.consume(zeros);
    }
    Err(io::Error::other(format!("more than {PADDING_LEN_MAX} zeros after its end")))
}

/// Sends an empty part at the end, which distinguishes the end from a panic.
fn hand_over(mut decoder: Members, watch: &Watch, limited: Limited, parts: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut part = Vec::with_capacity(PART_LEN);
        let outcome = decoder.by_ref().take(PART_LEN as u64).read_to_end(&mut part);
        let end = part.is_empty();
        if let Err(over) = limited.count(part.len(), watch) {
            let _ = parts.send(Err(io::Error::other(over)));
            return;
        }
        // Data decoded before an error is sent first.
        if (!end || outcome.is_ok()) && parts.send(Ok(part)).is_err() {
            return;
        }
        if let Err(error) = outcome {
            let damaged = !watch.failed.load(Ordering::Relaxed);
            let _ = parts.send(Err(if damaged { damage(&error, decoder.compression) } else { error }));
            return;
        }
        if end {
            return;
        }
    }
}

fn damage(error: &io::Error, compression: Compression) -> io::Error {
    io::Error::other(Damaged(format!("its {compression} data is damaged: {error}")))
}

struct Parts {
    received: Receiver<io::Result<Vec<u8>>>,
    part: Vec<u8>,
    read: usize,
    ended: bool,
}

impl Read for Parts {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.read == self.part.len() && !self.ended {
            match self.received.recv_timeout(PATIENCE) {
                Ok(part) => {
                    (self.part, self.read) = (part?, 0);
                    self.ended = self.part.is_empty();
                }
                Err(RecvTimeoutError::Timeout) => return Err(io::ErrorKind::Interrupted.into()),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("the decoding thread stopped"));
                }
            }
        }
        let len = buf.len().min(self.part.len() - self.read);
        buf[..len].copy_from_slice(&self.part[self.read..self.read + len]);
        self.read += len;
        Ok(len)
    }
}
