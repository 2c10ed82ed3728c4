//! An image as a stream, for hashing it from start to end.

use packfs_core::{Error, Image, Progress, Result};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Optionally copies the image, and keeps the original error.
pub(crate) struct ImageReader<'a> {
    image: &'a dyn Image,
    copy: Option<&'a File>,
    progress: &'a dyn Progress,
    position: u64,
    failed: Option<Error>,
}

impl<'a> ImageReader<'a> {
    pub(crate) fn new(image: &'a dyn Image, copy: Option<&'a File>, progress: &'a dyn Progress) -> Self {
        ImageReader { image, copy, progress, position: 0, failed: None }
    }

    /// Also reports errors of incomplete reads.
    pub(crate) fn outcome(self) -> Result<()> {
        match self.failed {
            Some(error) => Err(error),
            None if self.position != self.image.len() => {
                Err(Error::failed(format!("cannot read {}: it changed while being read", self.image.name())))
            }
            None => self.image.check_unchanged(),
        }
    }

    fn read_on(&mut self, buf: &mut [u8]) -> Result<usize> {
        if self.progress.cancelled() {
            return Err(Error::cancelled());
        }
        let left = self.image.len().saturating_sub(self.position);
        let len = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.image.read_exact_at(self.position, &mut buf[..len])?;
        if let Some(mut copy) = self.copy {
            copy.write_all(&buf[..len]).map_err(|error| Error::io("cannot write the copy", error))?;
        }
        self.position += len as u64;
        self.progress.advance(0, len as u64, 0);
        Ok(len)
    }
}

impl Read for ImageReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.read_on(buf).map_err(|error| {
            let told = io::Error::other(error.to_string());
            self.failed = Some(error);
            told
        })
    }
}

/// Required only for printing verified data, which this crate does not do.
impl Seek for ImageReader<'_> {
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
