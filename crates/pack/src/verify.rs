//! What is handed to whoever verifies an image before it gets its name.

use packfs_core::{NodeId, PackFormat, Progress, Result, Tree, Witnessed};
use std::fmt::Debug;
use std::fs::File;

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
}

/// Looks at an image before it gets its name.
pub trait Verify: Debug + Send + Sync {
    /// Whether the image gives back what was packed.
    ///
    /// Errors: `Failed` if it does not, naming what; the image then gets no name.
    fn verify(&self, written: &Written<'_>, progress: &dyn Progress) -> Result<()>;
}
