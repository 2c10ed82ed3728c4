//! Compressed archives: recognised by their first bytes, decoded on a thread of their own.
//!
//! Members, streams or frames may follow one another. Zeros behind the last are padding, as on tapes; anything else there
//! is an error, and so is an end in the middle or a checksum that is wrong.

use packfs_core::{Error, Limits, Result, ResultExt};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// How an archive is compressed.
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
}

/// Recognises a compressed file by its first bytes.
pub fn compression_of(beginning: &[u8]) -> Option<Compression> {
    match beginning {
        [0x1f, 0x8b, 8, ..] => Some(Compression::Gzip),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Compression::Xz),
        // A frame, or one that is to be skipped: some compressors put their index first.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Compression::Zstd),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Compression::Bzip2),
        _ => None,
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::Gzip => "gzip",
            Compression::Xz => "xz",
            Compression::Zstd => "zstd",
            Compression::Bzip2 => "bzip2",
        })
    }
}

/// Bytes handed from the decoding thread at a time.
const PART_LEN: usize = 256 << 10;
/// Parts that may wait.
const PARTS_MAX: usize = 4;
/// Most memory that decoding may take, in bytes: eight times what `xz -9` needs.
const MEMORY_MAX: u64 = 512 << 20;
/// The same for Zstandard, as the base-2 logarithm of its window.
const WINDOW_LOG_MAX: u32 = 29;

/// Most zeros that may stand behind the last member, so that reading them ends.
const PADDING_LEN_MAX: u64 = 1 << 30;
/// How long reading waits for the decoding thread before it lets its caller look whether to go on.
const PATIENCE: Duration = Duration::from_millis(100);

/// Says within an [`io::Error`] that reading did not fail, but what was read is damaged.
#[derive(Debug)]
struct Damaged(String);

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Damaged {}

/// Turns an error of [`decoded`]'s reader into ours: damage is not the same as a disk that cannot be read.
pub(super) fn read_error(name: &str, error: io::Error) -> Error {
    if let Some(over_limit) = error.get_ref().and_then(|source| source.downcast_ref::<Error>()) {
        return over_limit.clone();
    }
    match error.get_ref().and_then(|source| source.downcast_ref::<Damaged>()) {
        Some(damaged) => Error::corrupt(format!("compressed tar archive {name}"), damaged),
        None => Error::io(format!("cannot read {name}"), error),
    }
}

type Source = BufReader<Watched>;

/// Decodes `reader`, running ahead on another thread. Reading is `Interrupted` now and then while that has nothing yet.
///
/// Errors: `Io` if there is no memory for the decoder, or no thread. The reader's errors are for [`read_error`].
pub(super) fn decoded(
    reader: Box<dyn Read + Send>,
    compression: Compression,
    limits: Limits,
    name: &str,
) -> Result<Box<dyn Read + Send>> {
    let watch = Arc::<Watch>::default();
    let source = BufReader::with_capacity(PART_LEN, Watched { reader, watch: Arc::clone(&watch) });
    let limited = Limited { limits, subject: format!("compressed tar archive {name}"), decoded_len: 0 };
    let cannot_decode = || format!("cannot decode {name}");
    let member = Member::new(source, compression).or_io(cannot_decode)?;
    let (parts, received) = sync_channel(PARTS_MAX);
    let members = Members(Some(member), compression);
    let thread = std::thread::Builder::new().name("decode tar".into());
    thread.spawn(move || hand_over(members, &watch, limited, &parts)).or_io(cannot_decode)?;
    Ok(Box::new(Parts { received, part: Vec::new(), read: 0, ended: false }))
}

/// What is known of the reader.
#[derive(Default)]
struct Watch {
    /// Whether reading failed, since decoders hand such errors on like their own.
    failed: AtomicBool,
    /// Bytes read.
    len: AtomicU64,
}

struct Watched {
    reader: Box<dyn Read + Send>,
    watch: Arc<Watch>,
}

/// Refuses to decode more than the archive's length allows.
struct Limited {
    limits: Limits,
    subject: String,
    decoded_len: u64,
}

impl Limited {
    fn count(&mut self, len: usize, watch: &Watch) -> Result<()> {
        self.decoded_len = self.decoded_len.saturating_add(len as u64);
        self.limits.check_data(&self.subject, self.decoded_len, watch.len.load(Ordering::Relaxed))
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

/// One member, stream or frame.
enum Member {
    Gzip(flate2::bufread::GzDecoder<Source>),
    Xz(liblzma::bufread::XzDecoder<Source>),
    Zstd(zstd::stream::read::Decoder<'static, Source>),
    Bzip2(bzip2::bufread::BzDecoder<Source>),
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
        })
    }

    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Member::Gzip(decoder) => decoder.read(buf),
            Member::Xz(decoder) => decoder.read(buf),
            Member::Zstd(decoder) => decoder.read(buf),
            Member::Bzip2(decoder) => decoder.read(buf),
        }
    }

    fn into_source(self) -> Source {
        match self {
            Member::Gzip(decoder) => decoder.into_inner(),
            Member::Xz(decoder) => decoder.into_inner(),
            Member::Zstd(decoder) => decoder.finish(),
            Member::Bzip2(decoder) => decoder.into_inner(),
        }
    }
}

/// All of them; `None` behind the last.
struct Members(Option<Member>, Compression);

impl Read for Members {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let len = member.read(buf)?;
            if len > 0 || buf.is_empty() {
                return Ok(len);
            }
            let Some(mut source) = self.0.take().map(Member::into_source) else { break };
            let padded = skip_zeros(&mut source)?;
            match source.fill_buf()? {
                [] => {}
                // Only `.xz` may have padding between two streams.
                _ if !padded || self.1 == Compression::Xz => self.0 = Some(Member::new(source, self.1)?),
                _ => return Err(io::Error::other("something follows the zeros behind its end")),
            }
        }
        Ok(0)
    }
}

/// Passes over zeros; `true` if there were any.
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
    Err(io::Error::other(format!("more than {PADDING_LEN_MAX} zeros behind its end")))
}

/// Sends what is decoded, and at the end an empty part: a thread that just stopped did not come to an end.
fn hand_over(
    mut decoder: Members,
    watch: &Watch,
    mut limited: Limited,
    parts: &SyncSender<io::Result<Vec<u8>>>,
) {
    loop {
        let mut part = Vec::with_capacity(PART_LEN);
        let outcome = decoder.by_ref().take(PART_LEN as u64).read_to_end(&mut part);
        let end = part.is_empty();
        if let Err(over) = limited.count(part.len(), watch) {
            let _ = parts.send(Err(io::Error::other(over)));
            return;
        }
        // What was decoded before an error is handed over first.
        if (!end || outcome.is_ok()) && parts.send(Ok(part)).is_err() {
            return;
        }
        if let Err(error) = outcome {
            let damaged = !watch.failed.load(Ordering::Relaxed);
            let _ = parts.send(Err(if damaged { damage(&error, decoder.1) } else { error }));
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
                    return Err(io::Error::other("the thread that decodes it stopped"));
                }
            }
        }
        let len = buf.len().min(self.part.len() - self.read);
        buf[..len].copy_from_slice(&self.part[self.read..self.read + len]);
        self.read += len;
        Ok(len)
    }
}
