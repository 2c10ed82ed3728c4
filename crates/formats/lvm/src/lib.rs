//! LVM2: a container whose files are the logical volumes of a group.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! Owns labels and headers of physical volumes, and the text that describes a group. Linear volumes
//! are read; the others are listed and refused one by one. Read only.
#![forbid(unsafe_code)]
// Every number is read from an image: casts are checked and access by index is avoided.
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::cast_possible_truncation, clippy::arithmetic_side_effects)
)]

mod corruption;
mod disk;
mod given;
mod group;
mod label;
#[cfg(test)]
mod tests;
mod text;
mod volume;

use packfs_core::{Error, Image, Result};
use packfs_format::{Format, FormatInfo, Magic, OpenOption, Opening, PackFormat, PackSettings, Volume};
use std::sync::Arc;

/// The label is usually in the second sector; [`Format::probe`] examines four.
static MAGICS: [Magic; 1] = [Magic { bytes: &disk::LABEL, at: 512 }];

/// The LVM2 format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lvm;

static INFO: FormatInfo =
    FormatInfo { name: "lvm", magics: &MAGICS, opens_with: &[OpenOption::Devices], ..FormatInfo::EMPTY };

impl Format for Lvm {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, image: &dyn Image) -> Result<bool> {
        Ok(label::find(image)?.is_some())
    }

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        self.open_with(image, Opening::default())
    }

    fn open_with(&self, image: Arc<dyn Image>, opening: Opening) -> Result<Box<dyn Volume>> {
        let name = image.name();
        Ok(Box::new(volume::LvmVolume::open(image, opening.devices).map_err(|error| error.at(name))?))
    }

    fn packer(&self, _settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
        Err(Error::unsupported("format", "LVM is read, not written")
            .hint("lvcreate makes a volume of a group"))
    }
}
