//! ISO 9660: raw structures on disk, and their conversion to the types of packfs; with Rock Ridge,
//! Joliet, El Torito, zisofs, and the extended attributes of AAIP.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! Owns everything that is specific to ISO 9660 images. The read side opens, walks, and checks an
//! image; the pack side plans an image and lays out everything except the data. Decodes metadata,
//! never file data; starts no thread and opens no host file.
#![forbid(unsafe_code)]
// Every number is read from an image: casts are checked and access by index is avoided.
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

/// From fast to small.
const LADDER: [Rung; 2] = [
    Rung { codec: "gzip", block_size: 32 << 10, optimize: None },
    Rung { codec: "gzip", block_size: 128 << 10, optimize: Some(Goal::Size) },
];

/// The ISO 9660 format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Iso9660;

/// Signature `CD001` at the second byte of the first volume descriptor.
const MAGIC: Magic = Magic { bytes: &disk::STANDARD_ID, at: disk::DESCRIPTORS_AT + 1 };

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

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        let name = image.name();
        Ok(Box::new(volume::Iso9660Volume::open(image).map_err(|error| error.at(name))?))
    }

    fn packer(&self, settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
        pack::packer(settings)
    }
}
