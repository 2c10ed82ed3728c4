//! An image to merge.

use packfs_core::{FileImage, Image, ImagePath};
use packfs_format::Volume;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

/// Opened image, and its mount path in the new one.
pub struct MergeInput {
    /// The opened image.
    pub volume: Arc<dyn Volume>,
    /// The image that the volume was opened from.
    pub image: Arc<dyn Image>,
    /// File that contains the image from its start on, if any, to copy within the kernel.
    pub file: Option<Arc<FileImage>>,
    /// Path that names a device of the new image.
    pub path: PathBuf,
    /// Its name in messages.
    pub name: String,
    /// Path of its root in the new image.
    pub at: ImagePath,
}

impl MergeInput {
    /// Returns the image that offsets of data refer to.
    pub fn data_image(&self) -> Arc<dyn Image> {
        self.volume.data_image().unwrap_or_else(|| Arc::clone(&self.image))
    }

    /// Returns the file that contains the data at the same offsets, if any.
    pub(crate) fn data_file(&self) -> Option<&File> {
        self.file.as_ref().map(|image| image.file()).filter(|_| self.volume.data_image().is_none())
    }
}
