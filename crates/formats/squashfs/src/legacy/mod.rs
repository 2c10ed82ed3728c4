//! Squashfs 1.0, 2.0, 2.1, 3.0, and 3.1, of both byte orders, with zlib or vendors' LZMA.
//!
//! Owns everything that is specific to such images. The read side opens, walks, and checks an
//! image; the pack side plans an image of version 2.0 to 3.1 and lays out everything except the
//! data. Decodes and encodes metadata, never file data; starts no thread and opens no host file.
//! Version 4.0 is another format, whatever its magic.

mod bits;
mod check;
mod codec;
mod coding;
mod corruption;
pub(crate) mod disk;
mod facts;
mod inode;
mod open;
mod options;
#[allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::arithmetic_side_effects,
    reason = "what it indexes and counts is its own"
)]
mod pack;
mod records;
mod space;
#[cfg(test)]
mod tests;
mod volume;

use packfs_core::{Goal, Image, Result};
use packfs_format::{Format, FormatInfo, Magic, Makes, PackFormat, PackSettings, Rung, Volume};
use std::sync::Arc;

static MAGICS: [Magic; 6] = [
    Magic { bytes: b"hsqs", at: 0 },
    Magic { bytes: b"sqsh", at: 0 },
    Magic { bytes: b"shsq", at: 0 },
    Magic { bytes: b"qshs", at: 0 },
    Magic { bytes: b"hsqt", at: 0 },
    Magic { bytes: b"tqsh", at: 0 },
];

/// From fast to small.
const LADDER: [Rung; 2] = [
    Rung { codec: "gzip", block_size: 64 << 10, optimize: Some(Goal::Size) },
    Rung { codec: "gzip", block_size: 1 << 20, optimize: Some(Goal::Size) },
];

/// The formats of Squashfs before 4.0.
#[derive(Clone, Copy, Debug, Default)]
pub struct SquashfsLegacy;

static INFO: FormatInfo = FormatInfo {
    name: "squashfs-legacy",
    is_dense: true,
    magics: &MAGICS,
    makes: Makes::Tree,
    options: options::Options::ROWS,
    ladder: &LADDER,
    ..FormatInfo::EMPTY
};

impl Format for SquashfsLegacy {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, image: &dyn Image) -> Result<bool> {
        Ok(open::identify(image)?.is_some_and(|(_, (major, _))| (1..=3).contains(&major)))
    }

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        let name = image.name();
        Ok(Box::new(volume::LegacyVolume::open(image).map_err(|error| error.at(name))?))
    }

    fn packer(&self, settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
        pack::packer(settings)
    }
}
