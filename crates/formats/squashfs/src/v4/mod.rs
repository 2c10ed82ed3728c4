//! SquashFS 4.0: raw structures on disk, and their conversion to the types of packfs.
//!
//! Owns everything that is specific to SquashFS 4.0 images. The read side opens, walks, and checks
//! an image; the pack side plans an image and lays out everything except the data. Decodes and
//! encodes metadata, never file data; starts no thread and opens no host file.

mod check;
#[allow(clippy::cast_possible_truncation, reason = "the options of a codec are a few bytes of our own")]
mod codec_options;
mod codec_words;
mod coding;
mod corruption;
pub(crate) mod disk;
mod facts;
mod inode;
mod kernel;
mod kernel_reads;
mod merge;
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
mod stored;
#[cfg(test)]
mod tests;
mod vendor;
mod volume;
mod xattr;

use packfs_core::{Goal, Image, Result};
use packfs_format::{
    Format, FormatInfo, LinuxDriver, Magic, Makes, Merging, PackFormat, PackSettings, Rung, Volume,
};
use std::sync::Arc;

static MAGICS: [Magic; 2] = [Magic { bytes: b"hsqs", at: 0 }, Magic { bytes: b"shsq", at: 0 }];

/// From fast to small. Linux decodes zstd since 4.14, xz since 2.6.38.
const LADDER: [Rung; 5] = [
    Rung { codec: "gzip", block_size: 1 << 20, optimize: None },
    Rung { codec: "zstd:19", block_size: 512 << 10, optimize: None },
    Rung { codec: "zstd:22", block_size: 1 << 20, optimize: None },
    Rung { codec: "xz", block_size: 1 << 20, optimize: None },
    Rung { codec: "xz", block_size: 1 << 20, optimize: Some(Goal::Size) },
];

/// The SquashFS 4.0 format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Squashfs;

static INFO: FormatInfo = FormatInfo {
    name: "squashfs",
    is_dense: true,
    extensions: &["squashfs", "sqfs", "sqsh", "squash", "sfs", "snap", "xzm", "sb", "tcz"],
    magics: &MAGICS,
    driver: Some(LinuxDriver { name: "squashfs", mounts_files: false }),
    makes: Makes::Tree,
    options: options::Options::ROWS,
    ladder: &LADDER,
    ..FormatInfo::EMPTY
};

impl Format for Squashfs {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, image: &dyn Image) -> Result<bool> {
        let (mut magic, mut major) = ([0; 4], [0; 2]);
        if image.read_at(0, &mut magic)? < magic.len() {
            return Ok(false);
        }
        let magic = u32::from_le_bytes(magic);
        let major = match image.read_at(disk::MAJOR_AT, &mut major)? {
            2 if magic == disk::SQUASHFS_MAGIC_SWAP => u16::from_be_bytes(major),
            2 => u16::from_le_bytes(major),
            _ => disk::SQUASHFS_MAJOR,
        };
        Ok(disk::MAGICS.contains(&magic) && !disk::OLD_MAJORS.contains(&major))
    }

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        let name = image.name();
        Ok(Box::new(volume::SquashfsVolume::open(image).map_err(|error| error.at(name))?))
    }

    fn packer(&self, settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
        pack::packer(settings)
    }

    fn merger(&self, merging: &Merging<'_>) -> Result<Box<dyn PackFormat>> {
        merge::merger(merging)
    }
}
