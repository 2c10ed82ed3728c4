//! Compressed files other than archives: their beginning, or the whole file decoded to a temporary
//! file.

use super::compression::{compression_of, decoded, read_error};
use super::input::{BUFFER_LEN, cannot_spool, check_cancelled, nameless_file};
use packfs_core::{Error, Limit, Limits, Progress, Result, ResultExt};
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Zeros omitted in the temporary file, in bytes.
const HOLE_LEN: usize = 4096;
/// Bytes between two checks of free space.
const LOOK_LEN: u64 = 64 << 20;
/// Bytes between two notices to the user.
const TOLD_LEN: u64 = 1 << 30;

/// Returns the first `len` decoded bytes of a compressed file, or fewer if it is shorter.
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
    let file = nameless_file(folder)?;
    let (mut len, mut looked) = (0_u64, 0_u64);
    each_part(reader, name, limits, progress, &mut |part| {
        check_cancelled(progress)?;
        let end = len.saturating_add(part.len() as u64);
        limits.check(name, Limit::Bytes, end)?;
        write_data(&file, len, part).or_io(cannot_spool)?;
        if end - looked >= LOOK_LEN {
            check_room(&file, name, folder, end)?;
            looked = end;
        }
        if len < TOLD_LEN && end >= TOLD_LEN {
            progress.warn(&format!("{name} is decompressed to a file in {folder:?}: more than 1 GiB"));
        }
        len = end;
        Ok(true)
    })?;
    file.set_len(len).or_io(cannot_spool)?;
    Ok(file)
}

pub(crate) fn append_data(file: &File, len: &mut u64, bytes: &[u8]) -> Result<()> {
    write_data(file, *len, bytes).or_io(cannot_spool)?;
    *len += bytes.len() as u64;
    file.set_len(*len).or_io(cannot_spool)
}

/// Omits zeros that fill blocks of the file.
fn write_data(file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
    let (mut at, mut data) = (0, 0);
    while at < bytes.len() {
        let skip = ((offset + at as u64) % HOLE_LEN as u64) as usize;
        let end = (at + HOLE_LEN - skip).min(bytes.len());
        if bytes[at..end].iter().all(|byte| *byte == 0) {
            file.write_all_at(&bytes[data..at], offset + data as u64)?;
            data = end;
        }
        at = end;
    }
    file.write_all_at(&bytes[data..], offset + data as u64)
}

/// Refuses to fill a file system that others write to.
fn check_room(file: &File, name: &str, folder: &Path, len: u64) -> Result<()> {
    match rustix::fs::fstatvfs(file) {
        Ok(found) if is_short(found.f_bavail, found.f_blocks) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            let fault =
                format!("cannot decompress {name}: after {len} bytes, {free} bytes are free in {folder:?}");
            Err(Error::failed(fault).hint("TMPDIR=DIR names a folder with more space"))
        }
        // Not every file system reports its free space.
        _ => Ok(()),
    }
}

fn is_short(free: u64, all: u64) -> bool {
    free < all / 20
}

/// Returns a reader of the bytes of a stream, decoded if it is compressed. A read returns
/// `Interrupted` if there are none yet.
///
/// Errors: `Corrupt` if it cannot be decoded, `Io`. The reader's errors contain an [`Error`] if a
/// limit is exceeded.
pub fn decoded_stream(
    mut reader: Box<dyn Read + Send>,
    name: &str,
    limits: Limits,
) -> Result<Box<dyn Read + Send>> {
    let beginning = beginning_of(&mut reader, name)?;
    let compression = compression_of(&beginning);
    let whole = Box::new(Cursor::new(beginning).chain(reader));
    match compression {
        Some(compression) => decoded(whole, compression, limits, name).map(|(plain, _)| plain),
        None => Ok(whole),
    }
}

fn beginning_of(reader: &mut Box<dyn Read + Send>, name: &str) -> Result<Vec<u8>> {
    let mut beginning = Vec::new();
    let head_len = super::compression::BEGINNING_LEN as u64;
    match reader.by_ref().take(head_len).read_to_end(&mut beginning) {
        Ok(_) => Ok(beginning),
        Err(error) => Err(read_error(name, error)),
    }
}

fn each_part(
    mut reader: Box<dyn Read + Send>,
    name: &str,
    limits: Limits,
    progress: &dyn Progress,
    take: &mut dyn FnMut(&[u8]) -> Result<bool>,
) -> Result<()> {
    let beginning = beginning_of(&mut reader, name)?;
    let compression = compression_of(&beginning);
    let compression = compression.ok_or_else(|| Error::unsupported(name, "not compressed"))?;
    let whole = Box::new(Cursor::new(beginning).chain(reader));
    let (mut plain, watch) = decoded(whole, compression, limits, name)?;
    if pass_parts(&mut *plain, name, progress, take)? && watch.has_garbage() {
        progress.warn(&format!("{name}: ignored data after the compressed data"));
    }
    Ok(())
}

/// Passes the bytes of a stream to `take` until it returns false; returns true at their end.
pub(crate) fn pass_parts(
    reader: &mut dyn Read,
    name: &str,
    progress: &dyn Progress,
    take: &mut dyn FnMut(&[u8]) -> Result<bool>,
) -> Result<bool> {
    let mut buffer = vec![0; BUFFER_LEN];
    loop {
        check_cancelled(progress)?;
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(true),
            Ok(len) if !take(&buffer[..len])? => return Ok(false),
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(read_error(name, error)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn zeros_that_fill_blocks_are_holes_wherever_parts_end() {
        let mut wanted = vec![0; 40 * HOLE_LEN];
        for at in [0, 5 * HOLE_LEN + 7, 20 * HOLE_LEN - 1, 39 * HOLE_LEN] {
            wanted[at] = 1;
        }
        for part in [1000, HOLE_LEN, 3 * HOLE_LEN + 5, wanted.len()] {
            let file = nameless_file(&std::env::temp_dir()).unwrap();
            for (index, bytes) in wanted.chunks(part).enumerate() {
                write_data(&file, (index * part) as u64, bytes).unwrap();
            }
            file.set_len(wanted.len() as u64).unwrap();
            let mut found = vec![9; wanted.len()];
            file.read_exact_at(&mut found, 0).unwrap();
            assert!(found == wanted, "{part}");
            assert!(file.metadata().unwrap().blocks() <= 4 * 8, "{part}");
        }
    }

    #[test]
    fn a_twentieth_of_the_folder_is_left_free() {
        assert!(is_short(4, 100) && !is_short(5, 100) && !is_short(0, 0));
    }
}
