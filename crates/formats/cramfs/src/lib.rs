//! cramfs, versions 1 and 2, of either byte order: raw structures of the disk on one side, packfs's
//! plain facts on the other.
//!
//! Owns everything that knows how a cramfs image is built. The read side opens an image, walks and
//! checks it; the pack side plans an image and lays out what surrounds the data. Decodes and
//! encodes targets of symbolic links, never file data; starts no thread and touches no directory of
//! the host.
#![forbid(unsafe_code)]
// Every figure is read from an image: none is cut, and no place is taken for granted.
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::cast_possible_truncation, clippy::arithmetic_side_effects)
)]

mod check;
mod corruption;
mod data;
mod dir;
mod disk;
mod facts;
mod inode;
mod link;
mod open;
mod options;
#[allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::arithmetic_side_effects,
    reason = "what it indexes and counts is its own"
)]
mod pack;
mod space;
#[cfg(test)]
mod tests;
mod volume;
mod walk;

use packfs_core::{Image, Result};
use packfs_format::{Format, FormatInfo, LinuxDriver, Makes, PackFormat, PackSettings, Volume};
use std::sync::Arc;

/// The cramfs format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cramfs;

/// Identity of the format.
static INFO: FormatInfo = FormatInfo {
    name: "cramfs",
    is_dense: true,
    extensions: &["cramfs"],
    magics: &disk::MAGICS,
    driver: Some(LinuxDriver { name: "cramfs", mounts_files: false }),
    makes: Makes::Tree,
    options: options::Options::ROWS,
    ..FormatInfo::EMPTY
};

impl Format for Cramfs {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, image: &dyn Image) -> Result<bool> {
        Ok(open::find_super_block(image)?.is_some())
    }

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        let name = image.name();
        Ok(Box::new(volume::CramfsVolume::open(image).map_err(|error| error.at(name))?))
    }

    fn packer(&self, settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
        pack::packer(settings)
    }
}
