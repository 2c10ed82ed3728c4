//! Stores: named objects that appear complete and are never changed.

use crate::{Error, FileImage, Image, Progress, Result, usize_of};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Range of an image that lies in a store, which copies it into a new object.
pub struct Copied<'a> {
    /// The image.
    pub from: &'a dyn Image,
    /// Start of the range in it.
    pub start: u64,
    /// Start of the range in the new object.
    pub at: u64,
    /// Length of the range.
    pub len: u64,
}

/// Folder of objects. Each appears complete or not at all, under a name that had none: two workers
/// that write the same one cost time, and nothing else.
pub trait Store: Send + Sync {
    /// Returns the path or URL of the store, without secrets.
    fn name(&self) -> String;

    /// Returns the path or URL of an object, by which it is opened.
    fn place(&self, name: &str) -> PathBuf;

    /// Opens an object for reads of its ranges; `None` if there is none.
    ///
    /// Errors: `Io`, `Failed` for a store that refuses.
    fn open(&self, name: &str) -> Result<Option<Arc<dyn Image>>>;

    /// Returns the bytes of a small object; `None` if there is none.
    ///
    /// Errors: as [`Store::open`]; `Corrupt` for one that is longer than `len_max`.
    fn get(&self, name: &str, len_max: u64) -> Result<Option<Vec<u8>>> {
        let Some(image) = self.open(name)? else { return Ok(None) };
        if image.len() > len_max {
            let fault = format!("{:?}: more than {len_max} bytes", self.place(name));
            return Err(Error::corrupt("store", fault));
        }
        let mut bytes = vec![0; usize_of(image.len())];
        image.read_exact_at(0, &mut bytes)?;
        Ok(Some(bytes))
    }

    /// Creates an object of the bytes of an image, and changes nothing if there is one of this
    /// name. Ranges that the store has may be `copied` instead of read from the image; they are in
    /// the order of their place, and do not overlap. Returns the number of bytes that the store
    /// copied; `None` if there is another object of this name.
    ///
    /// Errors: `Failed` if the store refuses or an object that is copied has changed, `Io`, `Limit`
    /// for more than a store takes, `Cancelled`, those of reading the image.
    fn create(
        &self,
        name: &str,
        image: &dyn Image,
        copied: &[Copied<'_>],
        progress: &dyn Progress,
    ) -> Result<Option<u64>>;

    /// Creates an object of a complete, synced file, which may be moved. Returns false, and changes
    /// nothing, if there is one of this name.
    ///
    /// Errors: as [`Store::create`].
    fn put(&self, name: &str, file: &Path, progress: &dyn Progress) -> Result<bool> {
        Ok(self.create(name, &FileImage::open(file)?, &[], progress)?.is_some())
    }

    /// Returns the folder in which files are made that [`Store::put`] moves; `None` if it moves
    /// none.
    fn staging(&self) -> Option<&Path> {
        None
    }

    /// Checks that an object can be created: there is none of this name, and the store takes one.
    ///
    /// Errors: `AlreadyExists`; as [`Store::open`].
    fn check_creation(&self, name: &str) -> Result<()> {
        if self.open(name)?.is_some() { Err(self.exists(name)) } else { Ok(()) }
    }

    /// Returns the error for an object that exists.
    fn exists(&self, name: &str) -> Error {
        let place = self.place(name);
        let error =
            Error::already_exists(format!("cannot write {}: an object of this name exists", place.display()));
        error.hint("objects are never replaced; another name, or its removal, is needed")
    }

    /// Removes an object, if there is one.
    ///
    /// Errors: as [`Store::open`].
    fn remove(&self, name: &str) -> Result<()>;
}
