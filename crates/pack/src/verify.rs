//! What is handed to whoever verifies an image before it gets its name.

use packfs_core::{Image, NodeId, Progress, Result, ResultExt, Tree, Witnessed};
use packfs_format::PackFormat;
use std::fmt::Debug;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;

/// A file of the image, complete but for its name.
pub struct WrittenFile<'a> {
    /// Open for reading.
    pub file: &'a File,
    /// What it will be called, for messages.
    pub name: String,
    /// Where what was written starts in it.
    pub start: u64,
    /// How long it is.
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

/// An image that was written, and what it was made of.
pub struct Written<'a> {
    /// The image.
    pub image: WrittenFile<'a>,
    /// The files of its data, if they do not lie in it.
    pub data_files: Vec<WrittenFile<'a>>,
    /// The format, with its settings.
    pub format: &'a dyn PackFormat,
    /// What was to be packed.
    pub tree: &'a Tree,
    /// Files that could not be read and were stored empty, sorted.
    pub failed: &'a [NodeId],
    /// What was seen of each node's contents when they were read to be compressed.
    pub contents: &'a [Witnessed],
    /// Number of threads that may read it back.
    pub jobs: usize,
}

/// Looks at an image before it gets its name.
pub trait Verify: Debug + Send + Sync {
    /// Whether the image gives back what was packed.
    ///
    /// Errors: `Failed` if it does not, naming what; the image then gets no name.
    fn verify(&self, written: &Written<'_>, progress: &dyn Progress) -> Result<()>;
}
