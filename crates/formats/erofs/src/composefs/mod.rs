//! composefs: EROFS images of metadata, whose files are objects named by their digests.
//!
//! An image is made of a [`Tree`]; its bytes depend on the tree alone, because they are known by
//! their fs-verity digest. The layout is that of mkcomposefs 1.0, byte for byte. Linux reads the
//! image as EROFS below overlayfs, which takes contents from a directory of objects; the volume
//! here shows what that mount shows. docs/formats/erofs.md describes the format.

mod dump;
mod overlay;
mod tree;
mod volume;

pub use dump::{Escape, Line, Parser, escape};
pub use tree::{File, Inode, Tree};

pub(crate) use names::ACLS;
pub(crate) use overlay::{has_whiteouts, rewrite};

use crate::disk::{EROFS_SUPER_MAGIC_V1, EROFS_SUPER_OFFSET};
use packfs_core::{Error, Image, Result};
use packfs_format::{Format, FormatInfo, OpenOption, Opening, PackFormat, PackSettings, Volume};
use std::sync::Arc;

/// First bytes of an image, little-endian.
pub(crate) const MAGIC: u32 = 0xd078_629a;
/// Version of the header.
pub(crate) const HEADER_VERSION: u32 = 1;
/// Length of a SHA-256 digest, in bytes.
const SHA256_LEN: usize = 32;

/// The composefs format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Composefs;

/// Identity of the format.
static INFO: FormatInfo = FormatInfo {
    name: "composefs",
    is_dense: true,
    extensions: &["cfs"],
    opens_with: &[OpenOption::Objects],
    ..FormatInfo::EMPTY
};

/// Names of attributes by which overlayfs finds contents and knows special files.
mod names {
    /// Attributes that overlayfs reads.
    pub(super) const OVERLAY: &[u8] = b"trusted.overlay.";
    /// The form in which overlayfs shows an attribute of a file as its own, without reading it.
    pub(super) const ESCAPED: &[u8] = b"trusted.overlay.overlay.";
    pub(super) const METACOPY: &[u8] = b"trusted.overlay.metacopy";
    pub(super) const REDIRECT: &[u8] = b"trusted.overlay.redirect";
    pub(super) const OPAQUE: &[u8] = b"trusted.overlay.opaque";
    pub(super) const WHITEOUT: &[u8] = b"trusted.overlay.overlay.whiteout";
    pub(super) const WHITEOUTS: &[u8] = b"trusted.overlay.overlay.whiteouts";
    pub(super) const ESCAPED_OPAQUE: &[u8] = b"trusted.overlay.overlay.opaque";
    pub(super) const USER_WHITEOUT: &[u8] = b"user.overlay.whiteout";
    pub(super) const USER_WHITEOUTS: &[u8] = b"user.overlay.whiteouts";
    pub(super) const USER_OPAQUE: &[u8] = b"user.overlay.opaque";
    pub(super) const SELINUX: &[u8] = b"security.selinux";
    pub(crate) const ACLS: [&[u8]; 2] = [b"system.posix_acl_access", b"system.posix_acl_default"];
}

impl Format for Composefs {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, image: &dyn Image) -> Result<bool> {
        let has = |at, magic: u32| -> Result<bool> {
            let mut found = [0; 4];
            Ok(image.read_at(at, &mut found)? == found.len() && u32::from_le_bytes(found) == magic)
        };
        // Other images of EROFS begin with zeros or with boot code: one with the version of a
        // header is one with a damaged magic, whose files would be read as holes.
        let begins = has(0, MAGIC)? || has(4, HEADER_VERSION)? && (has(8, 0)? || has(8, 1)?);
        Ok(begins && has(EROFS_SUPER_OFFSET, EROFS_SUPER_MAGIC_V1)?)
    }

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        self.open_with(image, Opening::default())
    }

    fn open_with(&self, image: Arc<dyn Image>, opening: Opening) -> Result<Box<dyn Volume>> {
        let name = image.name();
        let volume = volume::ComposefsVolume::open(image, opening.objects);
        Ok(Box::new(volume.map_err(|error| error.at(name))?))
    }

    fn packer(&self, _: &PackSettings) -> Result<Box<dyn PackFormat>> {
        let error = Error::unsupported("request", "a composefs image holds no contents of files");
        Err(error.hint("packfs composefs pack SOURCE IMAGE --objects DIR writes one"))
    }
}
