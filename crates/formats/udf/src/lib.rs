//! UDF, the filesystem of DVDs, Blu-ray discs and installation media, revisions 1.02 to 2.60:
//! opened, walked and checked.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! Structures have checksums, which are verified as they are read. Sources: ECMA-167 (3rd edition),
//! OSTA UDF 2.60, and `fs/udf/` of Linux for what it shows of an image.
#![forbid(unsafe_code)]
// Every number is read from an image: casts are checked and access by index is avoided.
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::cast_possible_truncation, clippy::arithmetic_side_effects)
)]

mod blocks;
mod check;
mod corruption;
mod crc;
mod cs0;
mod descriptors;
mod dir;
mod disk;
mod entry;
mod extents;
mod facts;
mod maps;
mod open;
mod recognition;
mod space;
mod symlink;
#[cfg(test)]
mod tests;
mod vat;
mod volume;

use packfs_core::{Error, Image, Result};
use packfs_format::{Format, FormatInfo, LinuxDriver, Magic, PackFormat, PackSettings, Volume};
use std::sync::Arc;

/// The UDF format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Udf;

static INFO: FormatInfo = FormatInfo {
    name: "udf",
    extensions: &["udf"],
    magics: &[Magic { bytes: &disk::BEA01, at: disk::RECOGNITION_AT + 1 }],
    driver: Some(LinuxDriver { name: "udf", mounts_files: false }),
    ..FormatInfo::EMPTY
};

impl Format for Udf {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, image: &dyn Image) -> Result<bool> {
        recognition::is_udf(image)
    }

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        let name = image.name();
        Ok(Box::new(open::open(image).map_err(|error| error.at(name))?))
    }

    fn packer(&self, _settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
        Err(Error::unsupported("format", "udf is read, not written")
            .hint("squashfs and erofs hold the same trees compressed; iso9660 is for discs; genisoimage -udf makes udf"))
    }
}
