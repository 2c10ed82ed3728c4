//! EROFS: raw structures of the disk on one side, packfs's plain facts on the other.
//!
//! Owns everything that knows how an EROFS image is built. Decodes and encodes metadata, never file
//! data; starts no thread and touches no directory of the host.
#![forbid(unsafe_code)]
// Every figure is read from an image: none is cut, and no place is taken for granted.
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
#[cfg(feature = "globs")]
mod globs;
#[cfg(not(feature = "globs"))]
#[path = "globs_absent.rs"]
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

/// From quick to small. Linux reads LZMA from 5.16 on, and so whatever reads what the default
/// makes.
const LADDER: [Rung; 4] = [
    Rung { codec: "lz4hc:12", block_size: 256 << 10, optimize: None },
    Rung { codec: "lzma", block_size: 64 << 10, optimize: None },
    Rung { codec: "lzma", block_size: 256 << 10, optimize: None },
    Rung { codec: "lzma", block_size: 1 << 20, optimize: Some(Goal::Size) },
];

/// The EROFS format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Erofs;

/// Identity of the format.
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

    fn probe(&self, image: &dyn Image) -> Result<bool> {
        let mut magic = [0; 4];
        let len = image.read_at(disk::EROFS_SUPER_OFFSET, &mut magic)?;
        Ok(len == magic.len() && u32::from_le_bytes(magic) == disk::EROFS_SUPER_MAGIC_V1)
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
