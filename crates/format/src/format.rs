//! The interface between a format and the rest of packfs.

use crate::{DataFile, FormatInfo, Opening, PackFormat, PackSettings, Volume};
use packfs_core::{Error, Image, Result};
use std::sync::Arc;

/// An on-disk format. Formats are listed in one table, `packfs-formats`; no other code names them.
/// Only crates of packfs implement it: any version may add methods.
pub trait Format: Send + Sync {
    /// Returns its identity.
    fn info(&self) -> &'static FormatInfo;

    /// Returns its name.
    fn name(&self) -> &'static str {
        self.info().name
    }

    /// Returns true if the image starts like one of this format; false for images that are too
    /// short to tell. Most formats are known by their magic bytes.
    fn probe(&self, image: &dyn Image) -> Result<bool> {
        for magic in self.info().magics {
            if magic.is_in(image)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Opens an image; checks only the structures that describe all of it.
    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>>;

    /// Opens an image with the options that [`FormatInfo::opens_with`] lists.
    ///
    /// Errors: as [`Format::open`]; `Usage` for a wrong number of devices, and for a subvolume
    /// or snapshot that does not exist.
    fn open_with(&self, image: Arc<dyn Image>, opening: Opening) -> Result<Box<dyn Volume>> {
        let _ = opening;
        self.open(image)
    }

    /// Prepares to pack.
    ///
    /// Errors: `Usage` for settings out of range (saying what is allowed), `Unsupported` for a
    /// read-only format.
    fn packer(&self, settings: &PackSettings) -> Result<Box<dyn PackFormat>>;

    /// Prepares an image that contains the stored data of other images of the format. Its plan has
    /// no files.
    ///
    /// Errors: `Usage` for images whose data one image cannot contain, naming both; `Unsupported`
    /// for a format, or a feature of an image, that cannot be merged.
    fn merger(&self, merging: &Merging<'_>) -> Result<Box<dyn PackFormat>> {
        let _ = merging;
        let error = Error::unsupported("request", format!("cannot merge {} images", self.name()));
        Err(error.hint("packfs merges SquashFS 4.0 and EROFS images"))
    }
}

/// Images to merge.
pub struct Merging<'a> {
    /// The images, of one format.
    pub volumes: Vec<&'a dyn Volume>,
    /// Creation time of the new image, seconds since 1970.
    pub made_at: i64,
    /// Files for the data, if it is not stored in the new image.
    pub data_files: Vec<DataFile>,
    /// True if the new image also contains these files, at the addresses that it gives to them.
    pub is_flat: bool,
    /// Oldest Linux version that must read the new image, if the caller names one.
    pub kernel: Option<String>,
    /// Total length of all images in bytes, an upper bound for the data of the new one.
    pub data_len: u64,
    /// Options of the format that describe the new image as a whole, such as its UUID.
    pub options: Vec<(String, String)>,
}
