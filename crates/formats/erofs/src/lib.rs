//! EROFS: raw structures on disk, and their conversion to the types of packfs.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! Owns everything that is specific to EROFS images. Decodes and encodes metadata, never file data;
//! starts no thread and opens no host file.
#![forbid(unsafe_code)]
// Every number is read from an image: casts are checked and access by index is avoided.
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::cast_possible_truncation, clippy::arithmetic_side_effects)
)]

mod address;
mod announce;
mod check;
mod codec;
mod coding;
pub mod composefs;
mod corruption;
mod data;
mod decoded;
mod dir;
mod disk;
mod facts;
mod figures;
mod globs;
mod inode;
mod kernel;
mod kernel_reads;
mod metadata;
mod open;
mod options;
#[allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::arithmetic_side_effects,
    reason = "what it indexes and counts is its own"
)]
mod pack;
mod raw;
mod reader;
mod rules;
mod sizes;
mod space;
mod space_map;
#[cfg(test)]
mod tests;
mod volume;
mod walk;
mod windows;
mod xattr;

pub use pack::composefs::{Versions as ComposefsVersions, write as write_composefs};

use packfs_core::{Goal, Image, Result};
use packfs_format::{
    Format, FormatInfo, LinuxDriver, Magic, Makes, Merging, OpenOption, Opening, PackFormat, PackSettings,
    Rung, Volume,
};
use std::sync::Arc;

static MAGICS: [Magic; 1] = [Magic { bytes: &MAGIC, at: disk::EROFS_SUPER_OFFSET }];
const MAGIC: [u8; 4] = disk::EROFS_SUPER_MAGIC_V1.to_le_bytes();

/// From fast to small. Linux decodes LZMA since 5.16, below the default target.
const LADDER: [Rung; 4] = [
    Rung { codec: "lz4hc:12", block_size: 256 << 10, optimize: None },
    Rung { codec: "lzma", block_size: 64 << 10, optimize: None },
    Rung { codec: "lzma", block_size: 256 << 10, optimize: None },
    Rung { codec: "lzma", block_size: 1 << 20, optimize: Some(Goal::Size) },
];

/// The EROFS format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Erofs;

static INFO: FormatInfo = FormatInfo {
    name: "erofs",
    is_dense: true,
    extensions: &["erofs"],
    magics: &MAGICS,
    driver: Some(LinuxDriver { name: "erofs", mounts_files: true }),
    makes: Makes::Tree,
    opens_with: &[OpenOption::Devices],
    options: options::Typed::ROWS,
    ladder: &LADDER,
};

impl Format for Erofs {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        self.open_with(image, Opening::default())
    }

    fn open_with(&self, image: Arc<dyn Image>, opening: Opening) -> Result<Box<dyn Volume>> {
        let name = image.name();
        let volume = volume::ErofsVolume::open(image, opening.devices);
        Ok(Box::new(volume.map_err(|error| error.at(name))?))
    }

    fn packer(&self, settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
        pack::packer(settings)
    }

    fn merger(&self, merging: &Merging<'_>) -> Result<Box<dyn PackFormat>> {
        pack::merge::merger(merging)
    }
}
