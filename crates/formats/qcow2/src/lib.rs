//! qcow2, the disk images of QEMU: a disk split into clusters, of which only those with contents
//! are stored, uncompressed or compressed.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! Owns everything that is specific to such images, of versions 2 and 3. It is a container: its one
//! file is the disk, in its current state or in that of an internal snapshot. Read only. Backing
//! files are read if the caller gives them; no path of an image is opened.
#![forbid(unsafe_code)]
// Every number is read from an image: casts are checked and access by index is avoided.
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::cast_possible_truncation, clippy::arithmetic_side_effects)
)]

mod check;
mod corruption;
mod disk;
mod extensions;
mod facts;
mod layers;
mod open;
mod snapshots;
mod space;
mod tables;
#[cfg(test)]
mod tests;
mod volume;

use packfs_core::{Error, Image, Result};
use packfs_format::{Format, FormatInfo, Magic, OpenOption, Opening, PackFormat, PackSettings, Volume};
use std::sync::Arc;

/// The only file of an image: the disk.
pub(crate) const DISK_NAME: &str = "disk.img";

const MAGIC: Magic = Magic { bytes: &disk::MAGIC, at: 0 };

/// The qcow2 format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Qcow2;

static INFO: FormatInfo = FormatInfo {
    name: "qcow2",
    extensions: &["qcow2"],
    magics: &[MAGIC],
    opens_with: &[OpenOption::Snapshot, OpenOption::Backing],
    ..FormatInfo::EMPTY
};

impl Format for Qcow2 {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        self.open_with(image, Opening::default())
    }

    fn open_with(&self, image: Arc<dyn Image>, opening: Opening) -> Result<Box<dyn Volume>> {
        let name = image.name();
        Ok(Box::new(volume::QcowVolume::open(image, opening).map_err(|error| error.at(name))?))
    }

    fn packer(&self, _settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
        Err(Error::unsupported("format", "qcow2 is read, not written")
            .hint("qemu-img convert -O qcow2 makes one of a raw disk"))
    }
}
