//! An image in a file or on a block device.

use crate::{Error, Image, Result, ResultExt};
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use std::fs::{File, Metadata, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A file or block device, read by position.
#[derive(Debug)]
pub struct FileImage {
    file: File,
    path: PathBuf,
    len: u64,
    opened: Metadata,
}

impl FileImage {
    /// Opens a file or block device.
    ///
    /// Errors: `Io` if it cannot be opened, `Usage` for other types of files, such as a directory
    /// or a pipe.
    pub fn open(path: &Path) -> Result<Self> {
        // Opens without blocking, because a pipe may never have a writer; files and block devices
        // ignore the flag.
        let nonblock = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(nonblock)
            .open(path)
            .or_io(|| format!("cannot open {path:?}"))?;
        FileImage::of(file, path)
    }

    /// Wraps an open file or block device; `path` appears in messages.
    ///
    /// Errors: as [`FileImage::open`].
    pub fn of(file: File, path: &Path) -> Result<Self> {
        let found = file.metadata().or_io(|| format!("cannot open {path:?}"))?;
        let len = if found.file_type().is_block_device() {
            rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0))
                .or_io(|| format!("cannot determine the length of {path:?}"))?
        } else if found.is_file() {
            found.len()
        } else {
            return Err(if found.is_dir() { directory(path) } else { other(path) });
        };
        Ok(FileImage { file, path: path.into(), len, opened: found })
    }

    /// Returns the file, for other ways to read it.
    pub fn file(&self) -> &File {
        &self.file
    }
}

fn other(path: &Path) -> Error {
    Error::usage(format!("{path:?} is neither a file nor a block device, not an image"))
}

/// Hints at packing, which reads directories.
fn directory(path: &Path) -> Error {
    let shown = path.display();
    if path.join("oci-layout").exists() {
        let error = Error::usage(format!("{path:?} is an OCI image layout (a directory), not an image"));
        return error.hint(format!("packfs pack oci-layout:{shown} IMAGE packs its layers"));
    }
    let error = Error::usage(format!("{path:?} is a directory, not an image"));
    error.hint(format!("packfs pack {shown} IMAGE makes an image of it"))
}

impl Image for FileImage {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < buf.len() {
            match self.file.read_at(&mut buf[filled..], offset.saturating_add(filled as u64)) {
                Ok(0) => break,
                Ok(len) => filled = filled.saturating_add(len),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(Error::io(format!("cannot read {:?} at {offset:#x}", self.path), error));
                }
            }
        }
        Ok(filled)
    }

    fn next_data(&self, offset: u64) -> Result<Option<Range<u64>>> {
        if offset >= self.len {
            return Ok(None);
        }
        let start = match rustix::fs::seek(&self.file, SeekFrom::Data(offset)) {
            // Only a hole follows.
            Err(Errno::NXIO) => return Ok(None),
            // Block devices and some file systems do not report holes.
            found => found.unwrap_or(offset),
        };
        if start >= self.len {
            return Ok(None);
        }
        let end = rustix::fs::seek(&self.file, SeekFrom::Hole(start)).unwrap_or(self.len);
        Ok(Some(start..end.clamp(start.saturating_add(1), self.len)))
    }

    /// A block device does not report changes.
    fn check_unchanged(&self) -> Result<()> {
        let now = self.file.metadata().or_io(|| format!("cannot read {:?}", self.path))?;
        let written = |it: &Metadata| (it.len(), it.mtime(), it.mtime_nsec());
        let changed = |it: &Metadata| (it.ctime(), it.ctime_nsec());
        // Removing the last name changes a file's attributes, too.
        let is_same = now.nlink() == 0 || changed(&now) == changed(&self.opened);
        if !now.is_file() || is_same && written(&now) == written(&self.opened) {
            return Ok(());
        }
        Err(Error::failed(format!("cannot use {:?}: it changed while it was read", self.path))
            .hint("read a snapshot, or stop the program that writes to it"))
    }

    fn name(&self) -> String {
        format!("{:?}", self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn reads_at_any_offset_from_any_thread() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        let bytes: Vec<u8> = (0..100_000_u32).map(|index| (index % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let image = FileImage::open(&path).unwrap();
        assert_eq!(image.len(), 100_000);
        std::thread::scope(|scope| {
            for start in [0, 1, 4095, 99_990] {
                let (image, bytes) = (&image, &bytes);
                scope.spawn(move || {
                    let mut buf = [0xff; 100];
                    let len = image.read_at(start, &mut buf).unwrap();
                    assert_eq!(len, 100.min(100_000 - start as usize));
                    assert_eq!(buf[..len], bytes[start as usize..][..len]);
                });
            }
        });
        for beyond in [100_000, 1 << 40] {
            assert_eq!(image.read_at(beyond, &mut [0]).unwrap(), 0);
        }
    }

    #[test]
    fn a_file_cut_short_since_it_was_opened_is_corrupt() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        std::fs::write(&path, [1; 1000]).unwrap();
        let image = FileImage::open(&path).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(10).unwrap();
        assert_eq!(image.read_at(5, &mut [0; 10]).unwrap(), 5);
        assert_eq!(image.read_exact_at(5, &mut [0; 10]).unwrap_err().kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn a_file_tells_that_it_changed_since_it_was_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        std::fs::write(&path, [1; 1000]).unwrap();
        let image = FileImage::open(&path).unwrap();
        image.read_at(0, &mut [0; 10]).unwrap();
        image.check_unchanged().unwrap();
        File::options().write(true).open(&path).unwrap().set_len(999).unwrap();
        let error = image.check_unchanged().unwrap_err();
        assert!(error.to_string().contains("changed while it was read"), "{error}");
    }

    #[test]
    fn refuses_what_is_neither_a_file_nor_a_block_device() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for path in [folder.path(), &pipe, Path::new("/dev/null")] {
            let error = FileImage::open(path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage, "{path:?}: {error}");
        }
        let error = FileImage::open(&folder.path().join("missing")).unwrap_err();
        assert!(error.kind() == ErrorKind::Io && error.to_string().contains("missing"), "{error}");
    }
}
