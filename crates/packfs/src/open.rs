//! Doors to an image: a path, bytes in memory, a reader.

use crate::behind::behind;
use crate::layer::{Layer, Which};
use crate::{OpenOptions, Opened, nested};
use packfs_core::{Image, MemoryImage, Place, ReaderImage, Result};
use std::io::{Read, Seek};
use std::path::Path;
use std::sync::Arc;

/// Opens an image, whatever its format, in a file, on a block device, or at a URL (`http://`,
/// `https://`, `s3://BUCKET/KEY`). See [`OpenOptions`] for an image that does not begin at the
/// start of its file.
///
/// Errors: `Io` if it cannot be read, `Unsupported` if no format knows it, `Corrupt` if what
/// describes the whole is damaged.
pub fn open(path: impl AsRef<Path>) -> Result<Opened> {
    OpenOptions::new().open(path)
}

/// Opens an image that is in memory: a `Vec<u8>`, an `Arc<[u8]>` or a boxed slice is taken over, a
/// `&[u8]` is copied. For anything else that holds bytes, such as a mapped file, see
/// [`crate::MemoryImage::held`].
///
/// ```
/// # fn main() -> packfs::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let hosts = [("etc/hosts", "127.0.0.1 localhost\n")];
/// # packfs::pack_files(hosts, dir.path().join("a.sqfs"))?.run()?;
/// # let bytes = std::fs::read(dir.path().join("a.sqfs")).unwrap();
/// let image = packfs::open_bytes(bytes)?;
/// assert_eq!(image.read("etc/hosts")?, b"127.0.0.1 localhost\n");
/// # Ok(())
/// # }
/// ```
///
/// Errors: as [`open`].
pub fn open_bytes(bytes: impl Into<MemoryImage>) -> Result<Opened> {
    OpenOptions::new().open_bytes(bytes)
}

/// Opens an image in anything that can be read and has positions, such as a `std::io::Cursor`. All
/// of it counts, wherever it stands; threads wait for each other. A file is better opened by its
/// path, or as [`crate::FileImage`].
///
/// Errors: as [`open`].
pub fn open_reader(reader: impl Read + Seek + Send + 'static) -> Result<Opened> {
    OpenOptions::new().open_reader(reader)
}

impl OpenOptions {
    /// Opens a file or block device.
    ///
    /// Errors: as [`open`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Opened> {
        let place = Place::of(path.as_ref());
        #[cfg(feature = "integrity")]
        if let Some(hash) = self.trust.signed_hash(place.path(), &|place| self.bytes_at(place))? {
            return self.clone().root_hash(hash).open(place.path());
        }
        #[cfg(feature = "oci")]
        if let Some(opened) = self.open_oci(place)? {
            return Ok(opened);
        }
        let (image, warnings) = self.plain_bytes(place)?;
        Ok(self.open_image(image)?.within(warnings))
    }

    /// Opens an image that is in memory.
    ///
    /// Errors: as [`open`].
    pub fn open_bytes(&self, bytes: impl Into<MemoryImage>) -> Result<Opened> {
        self.open_image(Arc::new(bytes.into()))
    }

    /// Opens an image in anything that can be read and has positions; see [`open_reader`].
    ///
    /// Errors: as [`open`].
    pub fn open_reader(&self, reader: impl Read + Seek + Send + 'static) -> Result<Opened> {
        self.open_image(Arc::new(ReaderImage::new("image in a reader", reader)?))
    }

    /// Opens an image that is already there as bytes at offsets, such as [`crate::MemoryImage`].
    ///
    /// Errors: as [`open`].
    pub fn open_image(&self, image: Arc<dyn Image>) -> Result<Opened> {
        let may_search = self.offset == 0 && self.magic.is_none() && self.which != Which::Outermost;
        let image = self.image_in(image)?;
        let (image, behind) = if may_search { behind(image)? } else { (image, None) };
        let (around, notices): (Vec<Layer>, Vec<String>) = behind.into_iter().unzip();
        let (image, layers) = self.decompressed(image)?;
        let outermost = self.open_layer(image, [around, layers].concat())?.within(notices);
        let opened = nested::descend(outermost, &self.which, self)?;
        self.check_taken(&opened)?;
        Ok(opened)
    }

    /// Returns true if the image in a file or block device is compressed as a whole, by its first
    /// bytes. Opening it writes to a temporary file in [`crate::temporary_folder`].
    #[cfg(feature = "pack")]
    pub fn is_compressed(&self, path: impl AsRef<Path>) -> bool {
        let has_bytes = |found: std::fs::Metadata| {
            found.is_file() || std::os::unix::fs::FileTypeExt::is_block_device(&found.file_type())
        };
        let is_one = std::fs::metadata(path.as_ref()).is_ok_and(has_bytes);
        let image = if is_one { packfs_core::FileImage::open(path.as_ref()).ok() } else { None };
        let image = image.and_then(|image| self.image_in(Arc::new(image)).ok());
        image.is_some_and(|image| crate::compressed::magic(&*image).is_some())
    }
}
