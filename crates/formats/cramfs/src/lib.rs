//! cramfs, versions 1 and 2, of either byte order: raw structures on disk, and their conversion to
//! the types of packfs.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! Owns everything that is specific to cramfs images. The read side opens, walks, and checks an
//! image; the pack side plans an image and lays out everything except the data. Decodes and encodes
//! targets of symbolic links, never file data; starts no thread and opens no host file.
#![forbid(unsafe_code)]
// Every number is read from an image: casts are checked and access by index is avoided.
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
