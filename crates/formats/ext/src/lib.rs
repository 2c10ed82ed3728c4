//! ext2, ext3 and ext4: opened, walked and checked; their journals are replayed in memory.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! The three are one format: features of the superblock distinguish them. Structures are verified
//! as they are read, if the filesystem has checksums. Source: `fs/ext4/` and `fs/jbd2/` of Linux,
//! `Documentation/filesystems/ext4/`.
#![forbid(unsafe_code)]
// Every number is read from an image: casts are checked and access by index is avoided.
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::cast_possible_truncation, clippy::arithmetic_side_effects)
)]

mod block_use;
mod bytes;
mod check;
mod corruption;
mod dir;
mod disk;
mod facts;
mod features;
mod inode;
mod inodes;
mod journal;
mod map;
mod open;
mod patches;
mod reader;
mod run;
mod space;
mod sums;
mod super_block;
#[cfg(test)]
mod tests;
mod volume;
mod xattr;

use packfs_core::{Error, Image, Result};
use packfs_format::{
    Format, FormatInfo, LinuxDriver, Magic, OpenOption, Opening, PackFormat, PackSettings, Volume,
};
use std::sync::Arc;

/// The format of ext2, ext3 and ext4.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ext;

static INFO: FormatInfo = FormatInfo {
    name: "ext4",
    extensions: &["ext4", "ext3", "ext2"],
    magics: &[Magic { bytes: &super_block::MAGIC, at: super_block::MAGIC_AT }],
    driver: Some(LinuxDriver { name: "ext4", mounts_files: false }),
    opens_with: &[OpenOption::Devices, OpenOption::Journal],
    ..FormatInfo::EMPTY
};

impl Format for Ext {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, image: &dyn Image) -> Result<bool> {
        let mut raw = [0; super_block::SUPER_LEN];
        let len = image.read_at(super_block::SUPER_AT, &mut raw)?;
        let raw = packfs_format::structure(&raw, 0).filter(|_| len == raw.len());
        Ok(raw.is_some_and(|raw| super_block::looks_like_super_block(&raw)))
    }

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        self.open_with(image, Opening::default())
    }

    fn open_with(&self, image: Arc<dyn Image>, opening: Opening) -> Result<Box<dyn Volume>> {
        let name = image.name();
        Ok(Box::new(open::open(image, &opening).map_err(|error| error.at(name))?))
    }

    fn packer(&self, _settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
        Err(Error::unsupported("format", "ext4 is read, not written")
            .hint("squashfs and erofs hold the same trees compressed; mke2fs -d DIR makes ext4"))
    }
}
