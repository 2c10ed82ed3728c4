//! btrfs: opened, walked and checked, on one device or several, with all profiles.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! Extents carry logical addresses; [`packfs_format::Volume::data_image`] maps them to devices,
//! verifies the checksum of each sector that is read, and takes another copy of a damaged one.
//! Source: `include/uapi/linux/btrfs_tree.h` and `fs/btrfs/` of Linux.
#![forbid(unsafe_code)]
// Every number is read from an image: casts are checked and access by index is avoided.
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::cast_possible_truncation, clippy::arithmetic_side_effects)
)]

mod check;
mod checksum;
mod chunks;
mod corruption;
mod devices;
mod dir;
mod disk;
mod entry;
mod extent;
mod extents;
mod facts;
mod fs;
mod inode;
mod key;
mod log;
mod log_extents;
mod logical;
mod node;
mod numbers;
mod parity;
mod space;
mod store;
mod subvolumes;
mod super_block;
#[cfg(test)]
mod tests;
mod tree;
mod volume;

use packfs_core::{Error, Image, Result};
use packfs_format::{
    Format, FormatInfo, LinuxDriver, Magic, OpenOption, Opening, PackFormat, PackSettings, Volume,
};
use std::sync::Arc;

/// The btrfs format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Btrfs;

static INFO: FormatInfo = FormatInfo {
    name: "btrfs",
    extensions: &["btrfs"],
    magics: &[Magic { bytes: &disk::MAGIC, at: disk::MAGIC_AT }],
    driver: Some(LinuxDriver { name: "btrfs", mounts_files: false }),
    opens_with: &[OpenOption::Devices, OpenOption::Subvolume, OpenOption::Journal],
    ..FormatInfo::EMPTY
};

impl Format for Btrfs {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, image: &dyn Image) -> Result<bool> {
        super_block::looks_like_btrfs(image)
    }

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        self.open_with(image, Opening::default())
    }

    fn open_with(&self, image: Arc<dyn Image>, opening: Opening) -> Result<Box<dyn Volume>> {
        let name = image.name();
        Ok(Box::new(volume::BtrfsVolume::open(image, &opening).map_err(|error| error.at(name))?))
    }

    fn packer(&self, _settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
        Err(Error::unsupported("format", "btrfs is read, not written")
            .hint("squashfs and erofs hold the same trees compressed; mkfs.btrfs makes btrfs"))
    }
}
