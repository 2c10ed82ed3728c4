//! Compressed files that are no archives: their beginning, and all of them in a temporary file.

use super::compression::{compression_of, decoded, read_error};
use super::input::{BUFFER_LEN, cannot_spool, check_cancelled, nameless_file};
use packfs_core::{Error, Limit, Limits, Progress, Result, ResultExt};
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Zeros that are left out of the temporary file, in bytes.
const HOLE_LEN: usize = 4096;

/// Returns the first bytes of a compressed file, decoded: `len`, or fewer if it ends before.
///
/// Errors: `Corrupt` if it cannot be decoded, `Io`.
pub fn decoded_beginning(
    reader: Box<dyn Read + Send>,
    name: &str,
    limits: Limits,
    len: usize,
    progress: &dyn Progress,
) -> Result<Vec<u8>> {
    let mut beginning = Vec::new();
    each_part(reader, name, limits, progress, &mut |part| {
        beginning.extend_from_slice(part);
        Ok(beginning.len() < len)
    })?;
    beginning.truncate(len);
    Ok(beginning)
}

/// Decodes a compressed file into an unnamed file in `folder`, which has holes in place of zeros.
///
/// Errors: `Corrupt` if it cannot be decoded, `Limit` if it decodes to more than `limits` allow,
/// `Cancelled`, `Io`.
pub fn decoded_file(
    reader: Box<dyn Read + Send>,
    name: &str,
    limits: Limits,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<File> {
    let mut file = nameless_file(folder)?;
    let mut len = 0_u64;
    each_part(reader, name, limits, progress, &mut |part| {
        limits.check(name, Limit::Bytes, len.saturating_add(part.len() as u64))?;
        for piece in part.chunks(HOLE_LEN) {
            if piece.iter().any(|byte| *byte != 0) {
                file.seek(SeekFrom::Start(len)).or_io(cannot_spool)?;
                file.write_all(piece).or_io(cannot_spool)?;
            }
            len = len.saturating_add(piece.len() as u64);
        }
        Ok(true)
    })?;
    file.set_len(len).or_io(cannot_spool)?;
    Ok(file)
}

/// Hands out decoded bytes until `take` returns false.
fn each_part(
    mut reader: Box<dyn Read + Send>,
    name: &str,
    limits: Limits,
    progress: &dyn Progress,
    take: &mut dyn FnMut(&[u8]) -> Result<bool>,
) -> Result<()> {
    let mut beginning = Vec::new();
    let cannot = || format!("cannot read {name}");
    let head_len = super::compression::BEGINNING_LEN as u64;
    reader.by_ref().take(head_len).read_to_end(&mut beginning).or_io(cannot)?;
    let compression = compression_of(&beginning);
    let compression = compression.ok_or_else(|| Error::unsupported(name, "not compressed"))?;
    let whole = Box::new(Cursor::new(beginning).chain(reader));
    let (mut plain, watch) = decoded(whole, compression, limits, name)?;
    let mut buffer = vec![0; BUFFER_LEN];
    let mut goes_on = true;
    while goes_on {
        match plain.read(&mut buffer) {
            Ok(0) => {
                if watch.has_garbage() {
                    progress.warn(&format!("{name}: ignored data after the compressed data"));
                }
                return Ok(());
            }
            Ok(len) => goes_on = take(&buffer[..len])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => check_cancelled(progress)?,
            Err(error) => return Err(read_error(name, error)),
        }
    }
    Ok(())
}
