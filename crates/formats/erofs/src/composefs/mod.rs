//! composefs: EROFS images of metadata, whose files are objects named by their digests.
//!
//! An image is written from a [`Tree`]; its bytes depend on the tree alone, because images are
//! identified by their fs-verity digest. The layout is that of mkcomposefs 1.0, byte for byte.
//! Linux mounts the image as EROFS below overlayfs, which takes contents from a directory of
//! objects; the volume here shows the files of that mount. docs/formats/erofs.md describes the
//! format.

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

/// Start of an image, little-endian.
pub(crate) const MAGIC: u32 = 0xd078_629a;
pub(crate) const HEADER_VERSION: u32 = 1;
const SHA256_LEN: usize = 32;

/// The composefs format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Composefs;

static INFO: FormatInfo = FormatInfo {
    name: "composefs",
    is_dense: true,
    extensions: &["cfs"],
    opens_with: &[OpenOption::Objects],
    ..FormatInfo::EMPTY
};

/// Attributes that overlayfs uses to find contents and to mark special files.
mod names {
    use packfs_core::overlay;
    pub(super) use packfs_core::overlay::{
        ESCAPED, ESCAPED_OPAQUE, ESCAPED_WHITEOUT as WHITEOUT, TRUSTED as OVERLAY,
    };

    pub(super) const OPAQUE: &[u8] = overlay::OPAQUE[0];
    pub(super) const USER_OPAQUE: &[u8] = overlay::OPAQUE[1];
    pub(super) const USER_WHITEOUT: &[u8] = overlay::WHITEOUT[1];
    pub(super) const WHITEOUTS: &[u8] = overlay::WHITEOUTS[0];
    pub(super) const USER_WHITEOUTS: &[u8] = overlay::WHITEOUTS[1];
    pub(super) const METACOPY: &[u8] = b"trusted.overlay.metacopy";
    pub(super) const REDIRECT: &[u8] = b"trusted.overlay.redirect";
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
        // Other EROFS images start with zeros or boot code: one with the version of a composefs
        // header has a damaged magic, and its files would be read as holes.
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
