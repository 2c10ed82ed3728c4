use packfs_core::{ContentDigest, Image, NodeId, Progress, Result, ResultExt, Tree};
use packfs_format::PackFormat;
use std::fmt::Debug;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;

/// A complete file of the image, not yet renamed into place.
pub struct WrittenFile<'a> {
    /// Open for reading.
    pub file: &'a File,
    /// Final name, for messages.
    pub name: String,
    /// Start of the written data in the file.
    pub start: u64,
    /// Length of the written data.
    pub len: u64,
}

impl Image for WrittenFile<'_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let wanted = self.len.saturating_sub(offset).min(buf.len() as u64) as usize;
        let mut done = 0;
        while done < wanted {
            match self.file.read_at(&mut buf[done..wanted], self.start + offset + done as u64) {
                Ok(0) => break,
                Ok(len) => done += len,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                error => return error.or_io(|| format!("cannot read {}", self.name)),
            }
        }
        Ok(done)
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// A written image, and its input.
pub struct Written<'a> {
    /// The image.
    pub image: WrittenFile<'a>,
    /// Files of its data, if they are not the image.
    pub data_files: Vec<WrittenFile<'a>>,
    /// The format, with its settings.
    pub format: &'a dyn PackFormat,
    /// The tree that was packed.
    pub tree: &'a Tree,
    /// Files that could not be read and were stored empty, sorted.
    pub failed: &'a [NodeId],
    /// Digest of each node's contents as they were read for compression.
    pub contents: &'a [ContentDigest],
    /// Number of threads that may read the image.
    pub jobs: usize,
}

/// Verifies an image before it is renamed into place.
pub trait Verify: Debug + Send + Sync {
    /// Verifies that the image contains the packed tree.
    ///
    /// Errors: `Failed` if it does not, naming the difference; the image is then discarded.
    fn verify(&self, written: &Written<'_>, progress: &dyn Progress) -> Result<()>;
}
