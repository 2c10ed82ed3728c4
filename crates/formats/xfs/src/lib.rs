//! XFS, versions 4 and 5: opened, walked, and checked.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! A filesystem is a row of allocation groups. Every number of a block or an inode contains the
//! number of its group, so no tree is needed to find an inode. All figures are big-endian, only
//! checksums are little-endian. Source: `fs/xfs/libxfs/xfs_format.h`, `xfs_da_format.h`, and
//! `xfs_log_format.h` of Linux. Decodes no file data, starts no thread, and opens no host file.
#![forbid(unsafe_code)]
// Every number is read from an image: casts are checked and access by index is avoided.
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::cast_possible_truncation, clippy::arithmetic_side_effects)
)]

mod acl;
mod attr;
mod block;
mod bmap;
mod check;
mod check_hash;
mod clusters;
mod corruption;
mod dir;
mod dir_block;
mod disk;
mod facts;
mod features;
mod finish;
mod group;
mod inode;
mod kept;
mod log;
mod mapping;
mod open;
mod patches;
mod realtime;
mod space;
mod super_block;
mod symlink;
#[cfg(test)]
mod tests;
mod volume;

use packfs_core::{Error, Image, Result};
use packfs_format::{
    Format, FormatInfo, LinuxDriver, Magic, OpenOption, Opening, PackFormat, PackSettings, Volume,
};
use std::sync::Arc;

/// The XFS format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Xfs;

static INFO: FormatInfo = FormatInfo {
    name: "xfs",
    extensions: &["xfs"],
    magics: &[Magic { bytes: &super_block::MAGIC, at: 0 }],
    driver: Some(LinuxDriver { name: "xfs", mounts_files: false }),
    opens_with: &[OpenOption::Devices, OpenOption::Journal],
    ..FormatInfo::EMPTY
};

impl Format for Xfs {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, image: &dyn Image) -> Result<bool> {
        super_block::probe(image)
    }

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        self.open_with(image, Opening::default())
    }

    fn open_with(&self, image: Arc<dyn Image>, opening: Opening) -> Result<Box<dyn Volume>> {
        let name = image.name();
        Ok(Box::new(open::open(image, opening).map_err(|error| error.at(name))?))
    }

    fn packer(&self, _settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
        Err(Error::unsupported("format", "xfs is read, not written")
            .hint("squashfs and erofs hold the same trees compressed; mkfs.xfs makes XFS"))
    }
}
