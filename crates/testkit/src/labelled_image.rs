//! Small images that tests build byte for byte, and damage.

use crate::{BytesImage, read_all};
use packfs_core::{Image, Result};
use packfs_format::{Finding, Volume};
use std::collections::HashMap;
use std::sync::Arc;

/// Opens an image as a volume.
type Open<V> = fn(Arc<dyn Image>) -> Result<V>;

/// Depth to which directories are read: those of damaged images may lie in a circle.
const DEPTH_MAX: usize = 100;

/// An image under construction that remembers where each labelled structure starts.
pub struct LabelledImage<V> {
    /// Its bytes so far.
    pub bytes: Vec<u8>,
    /// Offsets of its structures.
    pub labels: HashMap<String, usize>,
    open: Open<V>,
}

impl<V> Clone for LabelledImage<V> {
    fn clone(&self) -> Self {
        LabelledImage { bytes: self.bytes.clone(), labels: self.labels.clone(), open: self.open }
    }
}

impl<V: Volume> LabelledImage<V> {
    /// Begins an empty image that `open` opens.
    pub fn new(open: Open<V>) -> Self {
        LabelledImage { bytes: Vec::new(), labels: HashMap::new(), open }
    }

    /// Returns the offset of the next byte.
    pub fn end(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Appends a structure and returns its offset.
    pub fn put(&mut self, label: &str, bytes: &[u8]) -> u64 {
        let at = self.end();
        self.label(label, at as usize);
        self.bytes.extend_from_slice(bytes);
        at
    }

    /// Writes a structure over what is at `at`, within the image.
    pub fn put_at(&mut self, label: &str, at: usize, bytes: &[u8]) {
        self.label(label, at);
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Labels an offset.
    pub fn label(&mut self, label: &str, at: usize) {
        self.labels.insert(label.into(), at);
    }

    /// Overwrites bytes `within` bytes after a label.
    #[must_use]
    pub fn patch(mut self, label: &str, within: usize, bytes: &[u8]) -> Self {
        let at = self.labels.get(label).unwrap_or_else(|| panic!("no {label}")) + within;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Opens the image.
    ///
    /// # Errors
    /// Those of the format.
    pub fn open(&self) -> Result<V> {
        (self.open)(Arc::new(BytesImage(self.bytes.clone())))
    }

    /// Opens the image and reads everything but file data; returns the number of names.
    ///
    /// # Errors
    /// The first that the volume has.
    pub fn read_all(&self) -> Result<usize> {
        read_all(&self.open()?, DEPTH_MAX)
    }

    /// Returns the findings of the check.
    ///
    /// # Panics
    /// If the image cannot be opened or checked.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        self.open().unwrap().check(&mut |finding| findings.push(finding)).unwrap();
        findings
    }
}
