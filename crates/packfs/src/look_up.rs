//! Files, directories, and links of an opened image by their paths, with the error numbers that
//! calls for files have.

use crate::Reader;
use crate::resolve::LastLink;
use packfs_core::{Errno, Error, IntoImagePath, Result};
use packfs_format::{InodeId, InodeKind};
use packfs_read::Wanted;

/// Look-ups by path.
impl Reader {
    /// Finds a regular file, following symbolic links.
    ///
    /// Errors: as [`Reader::resolve`]; `Failed` for anything but a file.
    pub fn file_at(&self, path: impl IntoImagePath) -> Result<Wanted> {
        let path = path.into_image_path()?;
        let (id, kind) = self.found(&path, LastLink::Follow)?;
        let InodeKind::File { len } = kind else {
            let word = kind.file_type().word();
            let errno = if kind == InodeKind::Directory { Errno::ISDIR } else { Errno::INVAL };
            let fault = format!("cannot read {path:?}: it is a {word}, not a file");
            return Err(Error::failed(fault).with_errno(errno));
        };
        Ok(Wanted { id, len })
    }

    /// Finds a directory, following symbolic links.
    ///
    /// Errors: as [`Reader::resolve`]; `Failed` for anything but a directory.
    pub fn dir_at(&self, path: impl IntoImagePath) -> Result<InodeId> {
        let path = path.into_image_path()?;
        match self.found(&path, LastLink::Follow)? {
            (id, InodeKind::Directory) => Ok(id),
            _ => Err(Error::failed(format!("{path:?} is not a directory")).with_errno(Errno::NOTDIR)),
        }
    }

    /// Returns the target of a symbolic link: bytes as stored.
    ///
    /// Errors: as [`Reader::find`]; `Failed` for anything but a link.
    pub fn link_at(&self, path: impl IntoImagePath) -> Result<Vec<u8>> {
        let path = path.into_image_path()?;
        match self.found(&path, LastLink::Keep)? {
            (id, InodeKind::Symlink) => self.volume().read_link(id),
            _ => Err(Error::failed(format!("{path:?} is not a symbolic link")).with_errno(Errno::INVAL)),
        }
    }
}
