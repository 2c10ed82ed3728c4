//! romfs, the read-only file system of small kernels and boot disks: opened, walked and checked.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! An image is a superblock and file headers of 16 bytes and a name, each before its data.
//! Nothing is compressed, and nothing has an owner or a time. Source:
//! `Documentation/filesystems/romfs.rst` and `fs/romfs/` of Linux.
#![forbid(unsafe_code)]
// Every number is read from an image: casts are checked and access by index is avoided.
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::cast_possible_truncation, clippy::arithmetic_side_effects)
)]

mod check;
mod corruption;
mod dir;
mod disk;
#[cfg(test)]
mod tests;
mod volume;

use packfs_core::{Error, Image, Result};
use packfs_format::{Format, FormatInfo, LinuxDriver, Magic, PackFormat, PackSettings, Volume};
use std::sync::Arc;

/// The romfs format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Romfs;

static INFO: FormatInfo = FormatInfo {
    name: "romfs",
    is_dense: true,
    extensions: &["romfs"],
    magics: &[Magic { bytes: &disk::MAGIC, at: 0 }],
    driver: Some(LinuxDriver { name: "romfs", mounts_files: false }),
    ..FormatInfo::EMPTY
};

impl Format for Romfs {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        let name = image.name();
        Ok(Box::new(volume::RomfsVolume::open(image).map_err(|error| error.at(name))?))
    }

    fn packer(&self, _settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
        Err(Error::unsupported("format", "romfs is read, not written")
            .hint("squashfs, erofs and cramfs hold the same trees compressed; genromfs makes romfs"))
    }
}
