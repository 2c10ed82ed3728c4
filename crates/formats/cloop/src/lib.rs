//! cloop, the compressed loopback device of Knoppix and related distributions: one disk, split into
//! separately compressed blocks.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! Owns everything that is specific to cloop files, of every version from 0.68 to 4.0. It is a
//! container: its one file is the disk, which is another image. Decodes no block; starts no thread
//! and opens no host file.
#![forbid(unsafe_code)]
// Every number is read from an image: casts are checked and access by index is avoided.
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::cast_possible_truncation, clippy::arithmetic_side_effects)
)]

mod check;
mod corruption;
mod data;
mod disk;
mod facts;
mod index;
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

use packfs_core::{Goal, Image, Result};
use packfs_format::{Format, FormatInfo, Magic, Makes, PackFormat, PackSettings, Rung, Volume};
use std::sync::Arc;

/// From fast to small.
const LADDER: [Rung; 1] = [Rung { codec: "gzip", block_size: 128 << 10, optimize: Some(Goal::Size) }];

/// The only file of a cloop: the disk.
pub(crate) const DISK_NAME: &str = "disk.img";

/// Magics of files with a header; files with only a footer are not found by scanning.
static MAGICS: [Magic; 5] = [
    Magic { bytes: b"#!/bin/sh\n#V1.0 Format\n", at: 0 },
    Magic { bytes: b"#!/bin/sh\n#V2.0 Format\n", at: 0 },
    Magic { bytes: b"#!/bin/sh\n#V3.0 Format\n", at: 0 },
    Magic { bytes: b"#!/bin/sh\n#V4.0 Format\n", at: 0 },
    Magic { bytes: b"#!/bin/sh\ninsmod cloop.o file=$0", at: 0 },
];

/// The cloop format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cloop;

static INFO: FormatInfo = FormatInfo {
    name: "cloop",
    is_dense: true,
    extensions: &["cloop"],
    magics: &MAGICS,
    makes: Makes::Image,
    options: options::Options::ROWS,
    ladder: &LADDER,
    ..FormatInfo::EMPTY
};

impl Format for Cloop {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, image: &dyn Image) -> Result<bool> {
        open::looks_like_cloop(image)
    }

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        let name = image.name();
        Ok(Box::new(volume::CloopVolume::open(image).map_err(|error| error.at(name))?))
    }

    fn packer(&self, settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
        pack::packer(settings)
    }
}
