//! The image file while it is written: appended in order, and under its final name only when it is complete.
//!
//! The file has no name until then where the system allows it (`O_TMPFILE`), so even a killed process leaves nothing;
//! elsewhere it has a temporary name beside the final one, removed when packing fails. A block device is written in
//! place: it has no name to swap.

use packfs_core::{Error, Result, ResultExt, Section};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Bytes gathered before they are written.
const BUFFER_LEN: usize = 1 << 20;

/// See the module.
pub(crate) struct Output {
    file: File,
    path: PathBuf,
    /// The name the file has while it is written; `None`: it has none, or its own.
    temporary: Option<PathBuf>,
    in_place: bool,
    /// Length of a block device.
    room: Option<u64>,
    /// Where the image starts in the file.
    base: u64,
    /// Where the next byte goes, from the start of the image; bytes before it that are not yet written are in `buffer`.
    position: u64,
    end: u64,
    buffer: Vec<u8>,
}

impl Output {
    /// Starts a file that will become `path`; the image begins `base` bytes into it, file data `position` after that.
    pub(crate) fn create(path: &Path, base: u64, position: u64) -> Result<Self> {
        let existing = std::fs::metadata(path).ok();
        let (file, temporary, room) = match &existing {
            Some(found) if found.file_type().is_block_device() => {
                let file =
                    File::options().write(true).open(path).or_io(|| format!("cannot write to {path:?}"))?;
                let room = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0))
                    .or_io(|| format!("cannot measure {path:?}"))?;
                (file, None, Some(room))
            }
            Some(found) if !found.is_file() => {
                return Err(Error::usage(format!(
                    "cannot write an image to {path:?}: not a regular file or block device"
                )));
            }
            _ => {
                let (file, temporary) = create_temporary(path)?;
                (file, temporary, None)
            }
        };
        let in_place = room.is_some();
        let out = Output {
            file,
            path: path.into(),
            temporary,
            in_place,
            room,
            base,
            position,
            end: position,
            buffer: Vec::with_capacity(BUFFER_LEN),
        };
        if base > 0 && !in_place && existing.is_some() {
            out.keep_beginning()?;
        }
        Ok(out)
    }

    /// Copies what the existing file has before the image.
    fn keep_beginning(&self) -> Result<()> {
        let name = || format!("cannot copy the first {} bytes of {:?}", self.base, self.path);
        let old = File::open(&self.path).or_io(name)?;
        io::copy(&mut io::Read::take(&old, self.base), &mut &self.file).or_io(name)?;
        Ok(())
    }

    /// Where the next byte goes, from the start of the image.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Writes behind what was written last.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER_LEN {
            self.flush()?;
        }
        if bytes.len() >= BUFFER_LEN {
            self.write_at(self.position, bytes)?;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        self.position += bytes.len() as u64;
        self.end = self.end.max(self.position);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        self.write_at(self.position - buffer.len() as u64, &buffer)?;
        self.buffer = buffer;
        self.buffer.clear();
        Ok(())
    }

    /// Writes one of the format's own parts where it belongs.
    pub(crate) fn write_section(&mut self, section: &Section) -> Result<()> {
        if section.offset == self.position {
            return self.append(&section.bytes);
        }
        self.flush()?;
        self.write_at(section.offset, &section.bytes)?;
        self.end = self.end.max(section.offset + section.bytes.len() as u64);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let start = self.base + offset;
        if let Some(room) = self.room.filter(|&room| start + bytes.len() as u64 > room) {
            let found = start + bytes.len() as u64;
            return Err(Error::failed(format!(
                "{:?} is too small: {room} bytes, more than {found} needed",
                self.path
            )));
        }
        self.file.write_all_at(bytes, start).or_io(|| format!("cannot write {:?}", self.path))
    }

    /// Pads the image with zeros to a multiple of `padding` and gives the file its name; returns the image's length.
    pub(crate) fn finish(mut self, padding: u64, sync: bool) -> Result<u64> {
        self.flush()?;
        let len = self.end.next_multiple_of(padding.max(1));
        self.write_at(self.end, &vec![0; (len - self.end) as usize])?;
        if sync {
            self.file.sync_data().or_io(|| format!("cannot write {:?} to the disk", self.path))?;
        }
        if !self.in_place {
            self.name_it()?;
        }
        Ok(len)
    }

    fn name_it(&mut self) -> Result<()> {
        let failed = || format!("cannot create {:?}", self.path);
        let temporary = match self.temporary.take() {
            Some(temporary) => temporary,
            None => {
                let temporary = temporary_name(&self.path, 0);
                let nameless = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                let _ = std::fs::remove_file(&temporary);
                rustix::fs::linkat(CWD, nameless, CWD, &temporary, AtFlags::SYMLINK_FOLLOW).or_io(failed)?;
                temporary
            }
        };
        std::fs::rename(&temporary, &self.path).or_io(failed).inspect_err(|_| {
            let _ = std::fs::remove_file(&temporary);
        })
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// A file in the folder of `path`: without a name where possible.
fn create_temporary(path: &Path) -> Result<(File, Option<PathBuf>)> {
    if path.file_name().is_none() {
        return Err(Error::usage(format!("{path:?} is not a file name")));
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mode = Mode::from_raw_mode(0o666);
    match rustix::fs::open(folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
        Ok(file) if can_be_named(&file) => return Ok((file.into(), None)),
        _ => {}
    }
    for attempt in 0..100 {
        let temporary = temporary_name(path, attempt);
        match File::options().read(true).write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((file, Some(temporary))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io(format!("cannot create {path:?}"), error)),
        }
    }
    Err(Error::failed(format!("cannot create a temporary file beside {path:?}")))
}

/// A file without a name in the folder of `path`, for what has no place yet.
pub(crate) fn nameless_file(path: &Path) -> Result<File> {
    let (file, temporary) = create_temporary(path)?;
    if let Some(temporary) = temporary {
        std::fs::remove_file(&temporary).or_io(|| format!("cannot remove {temporary:?}"))?;
    }
    Ok(file)
}

/// A nameless file gets its name through `/proc`, which may not be there.
fn can_be_named(file: &OwnedFd) -> bool {
    std::fs::metadata(format!("/proc/self/fd/{}", file.as_raw_fd())).is_ok_and(|found| found.ino() > 0)
}

fn temporary_name(path: &Path, attempt: u32) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // A name at the limit of 255 bytes leaves no room for a suffix.
    let short: String = name.chars().take(48).collect();
    path.with_file_name(format!(".{short}.{}-{attempt}.packfs-tmp", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn the_file_appears_only_when_it_is_finished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.img");
        let mut out = Output::create(&path, 0, 4).unwrap();
        out.append(b"data").unwrap();
        assert!(!path.exists());
        out.write_section(&Section { owner: "superblock", offset: 0, bytes: b"head".to_vec() }).unwrap();
        assert_eq!(out.finish(16, true).unwrap(), 16);
        assert_eq!(std::fs::read(&path).unwrap(), b"headdata\0\0\0\0\0\0\0\0");
        assert_eq!(names(folder.path()), ["a.img"]);
    }

    #[test]
    fn an_abandoned_file_leaves_the_old_one_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.img");
        std::fs::write(&path, "old").unwrap();
        let mut out = Output::create(&path, 0, 0).unwrap();
        out.append(&[1; 3 << 20]).unwrap();
        drop(out);
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["a.img"]);
    }

    #[test]
    fn what_stands_before_the_image_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.img");
        std::fs::write(&path, "runtime, then an old image").unwrap();
        let mut out = Output::create(&path, 7, 0).unwrap();
        out.append(b"image").unwrap();
        out.finish(1, false).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"runtimeimage");
    }

    #[test]
    fn refuses_to_write_into_a_folder_or_a_device_like_null() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Output::create(folder.path(), 0, 0).is_err());
        assert!(Output::create(Path::new("/dev/null"), 0, 0).is_err());
        assert!(Output::create(&folder.path().join("missing/a.img"), 0, 0).is_err());
    }
}
