//! A file of an image that is itself an image: a disk in a compressed container, a partition.

use crate::file::FileReader;
use packfs_core::{Fetched, Image, Result};
use std::ops::Range;

/// Presents a file as an image, decoding its blocks.
pub struct FileAsImage {
    file: FileReader,
    name: String,
}

impl FileAsImage {
    /// Wraps a file; `name` appears in messages.
    pub fn new(file: FileReader, name: String) -> Self {
        FileAsImage { file, name }
    }
}

impl Image for FileAsImage {
    fn len(&self) -> u64 {
        self.file.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.file.read_at(offset, buf)
    }

    fn next_data(&self, offset: u64) -> Result<Option<Range<u64>>> {
        self.file.next_data(offset)
    }

    fn will_read(&self, ranges: &[Range<u64>]) {
        self.file.will_read(ranges);
    }

    fn fetched(&self) -> Option<Fetched> {
        self.file.engine.image().fetched()
    }

    fn check_unchanged(&self) -> Result<()> {
        self.file.engine.image().check_unchanged()
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}
