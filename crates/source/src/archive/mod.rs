//! Archives of every kind, compressed or not: detected by their first bytes, read once and in order
//! if the kind allows that.
//!
//! A kind reads headers from an [`Input`](input::Input) and adds entries to a shaper. Contents of a
//! file that is not compressed are read in place when they are packed; others are kept in an
//! unnamed file, so memory stays bounded.

pub(crate) mod compression;
pub(crate) mod contents;
pub(crate) mod entries;
pub(crate) mod input;
pub(crate) mod sparse;
pub(crate) mod spooled;
mod told;

pub use compression::{Compression, compression_of};
pub use spooled::{decoded_beginning, decoded_file, decoded_stream};
pub(crate) use told::Told;

use compression::BEGINNING_LEN;
use input::{OpenedBytes, Opening, check_cancelled};
use packfs_core::{Limits, Progress, Result, ResultExt};
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Input of an archive.
#[non_exhaustive]
pub enum TarInput {
    /// A file, compressed or not.
    File(PathBuf),
    /// A stream, compressed or not.
    Stream {
        /// The bytes.
        reader: Box<dyn Read + Send>,
        /// Name in messages, such as `standard input`.
        name: String,
        /// Directory for an unnamed file with contents.
        spool_dir: PathBuf,
    },
}

/// Bytes that determine the kind of an archive, once decoded.
const HEAD_LEN: usize = 512;

pub(crate) fn open(input: TarInput, limits: Limits, progress: &dyn Progress) -> Result<Opening<'_>> {
    let (mut reader, name, spool_dir): (Box<dyn Read + Send>, _, _) = match input {
        TarInput::Stream { reader, name, spool_dir } => (reader, name, spool_dir),
        TarInput::File(path) => {
            let name = format!("{path:?}");
            let spool_dir = std::env::temp_dir();
            let file = File::open(&path).or_io(|| format!("cannot open {name}"))?;
            let mut beginning = [0; BEGINNING_LEN];
            let len = file.read_at(&mut beginning, 0).or_io(|| format!("cannot read {name}"))?;
            if compression_of(&beginning[..len]).is_none() {
                return Ok(Opening { name, limits, spool_dir, progress, bytes: OpenedBytes::Place(file) });
            }
            (Box::new(file), name, spool_dir)
        }
    };
    let mut beginning = Vec::new();
    reader
        .by_ref()
        .take(BEGINNING_LEN as u64)
        .read_to_end(&mut beginning)
        .or_io(|| format!("cannot read {name}"))?;
    let compression = compression_of(&beginning);
    let whole: Box<dyn Read + Send> = Box::new(Cursor::new(beginning).chain(reader));
    let (plain, watch) = match compression {
        Some(compression) => {
            let (plain, watch) = compression::decoded(whole, compression, limits, &name)?;
            (plain, Some(watch))
        }
        None => (whole, None),
    };
    Ok(Opening { name, limits, spool_dir, progress, bytes: OpenedBytes::Stream(plain, watch) })
}

impl Opening<'_> {
    /// The bytes are read again later.
    pub(crate) fn head(&mut self) -> Result<Vec<u8>> {
        let mut head = vec![0; HEAD_LEN];
        let mut len = 0;
        match &mut self.bytes {
            OpenedBytes::Place(file) => {
                len = file.read_at(&mut head, 0).or_io(|| format!("cannot read {}", self.name))?;
                head.truncate(len);
            }
            OpenedBytes::Stream(reader, _) => {
                while len < HEAD_LEN {
                    match reader.read(&mut head[len..]) {
                        Ok(0) => break,
                        Ok(more) => len += more,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                            check_cancelled(self.progress)?;
                        }
                        Err(error) => return Err(compression::read_error(&self.name, error)),
                    }
                }
                head.truncate(len);
                let rest = std::mem::replace(reader, Box::new(io::empty()));
                *reader = Box::new(Cursor::new(head.clone()).chain(rest));
            }
        }
        Ok(head)
    }
}
