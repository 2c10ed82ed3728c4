//! ISO 9660: raw structures of the disk on one side, packfs's plain facts on the other; with Rock
//! Ridge, Joliet, El Torito and zisofs, and the extended attributes of AAIP.
//!
//! Owns everything that knows how an ISO 9660 image is built. The read side opens an image, walks
//! and checks it; the pack side plans an image and lays out what surrounds the data. Decodes
//! metadata, never file data; starts no thread and touches no directory of the host.
#![forbid(unsafe_code)]
// Every figure is read from an image: none is cut, and no place is taken for granted.
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::cast_possible_truncation, clippy::arithmetic_side_effects)
)]

mod boot;
mod check;
mod corruption;
mod data;
mod dates;
mod dir;
mod disk;
mod facts;
mod hard_links;
mod inode;
mod names;
mod open;
mod options;
#[allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::arithmetic_side_effects,
    reason = "what it indexes and counts is its own"
)]
mod pack;
mod record;
mod rock_ridge;
mod sections;
mod sectors;
mod space;
mod susp;
#[cfg(test)]
mod tests;
mod volume;
mod walk;
mod xattr;
mod zisofs;

use packfs_core::{Goal, Image, Result};
use packfs_format::{Format, FormatInfo, LinuxDriver, Magic, Makes, PackFormat, PackSettings, Rung, Volume};
use std::sync::Arc;

/// From quick to small.
const LADDER: [Rung; 2] = [
    Rung { codec: "gzip", block_size: 32 << 10, optimize: None },
    Rung { codec: "gzip", block_size: 128 << 10, optimize: Some(Goal::Size) },
];

/// The ISO 9660 format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Iso9660;

/// Signature `CD001` at the second byte of the first volume descriptor.
const MAGIC: Magic = Magic { bytes: &disk::STANDARD_ID, at: disk::DESCRIPTORS_AT + 1 };

/// Identity of the format.
static INFO: FormatInfo = FormatInfo {
    name: "iso9660",
    is_dense: true,
    extensions: &["iso"],
    magics: &[MAGIC],
    driver: Some(LinuxDriver { name: "iso9660", mounts_files: false }),
    makes: Makes::Tree,
    options: options::Options::ROWS,
    ladder: &LADDER,
    ..FormatInfo::EMPTY
};

impl Format for Iso9660 {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, image: &dyn Image) -> Result<bool> {
        let mut magic = [0; disk::STANDARD_ID.len()];
        let len = image.read_at(MAGIC.at, &mut magic)?;
        Ok(len == magic.len() && magic == disk::STANDARD_ID)
    }

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        let name = image.name();
        Ok(Box::new(volume::Iso9660Volume::open(image).map_err(|error| error.at(name))?))
    }

    fn packer(&self, settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
        pack::packer(settings)
    }
}
