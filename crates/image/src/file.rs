//! An image in a file or on a block device.

use packfs_core::{Error, Image, Result, ResultExt};
use std::fs::File;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

/// A file or block device, read by position.
#[derive(Debug)]
pub struct FileImage {
    file: File,
    path: PathBuf,
    len: u64,
}

impl FileImage {
    /// Opens a file or block device.
    ///
    /// Errors: `Io` if it cannot be opened, `Usage` if it is something else, such as a directory or a pipe.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).or_io(|| format!("cannot open {path:?}"))?;
        let found = file.metadata().or_io(|| format!("cannot open {path:?}"))?;
        let len = if found.file_type().is_block_device() {
            rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0))
                .or_io(|| format!("cannot measure {path:?}"))?
        } else if found.is_file() {
            found.len()
        } else {
            let kind = if found.is_dir() { "a directory" } else { "neither a file nor a block device" };
            return Err(Error::usage(format!("{path:?} is {kind}, not an image")));
        };
        Ok(FileImage { file, path: path.into(), len })
    }
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
                Ok(len) => filled += len,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(Error::io(format!("cannot read {:?} at {offset:#x}", self.path), error));
                }
            }
        }
        Ok(filled)
    }

    fn name(&self) -> String {
        format!("{:?}", self.path)
    }
}
