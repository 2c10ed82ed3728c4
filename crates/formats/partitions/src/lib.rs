//! Partition tables: MBR with logical partitions, and GPT. A container whose files are the
//! partitions of a disk.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! Owns everything that is specific to such tables. Read only; independent of the contents of
//! partitions, except for boot sectors of file systems, which must not be detected as tables.
#![forbid(unsafe_code)]
// Every number is read from an image: casts are checked and access by index is avoided.
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::cast_possible_truncation, clippy::arithmetic_side_effects)
)]

mod check;
mod corruption;
mod disk;
mod facts;
mod gpt;
mod kinds;
mod mbr;
mod open;
mod space;
mod table;
#[cfg(test)]
mod tests;
mod volume;

use packfs_core::{Error, Image, Result};
use packfs_format::{Format, FormatInfo, Magic, OpenOption, Opening, PackFormat, PackSettings, Volume};
use std::sync::Arc;

/// Signatures of a GPT for both sector lengths. The two bytes of an MBR are too common to scan for.
static MAGICS: [Magic; 2] = [Magic { bytes: b"EFI PART", at: 512 }, Magic { bytes: b"EFI PART", at: 4096 }];

/// Partition tables.
#[derive(Clone, Copy, Debug, Default)]
pub struct Partitions;

static INFO: FormatInfo = FormatInfo {
    name: "partitions",
    magics: &MAGICS,
    opens_with: &[OpenOption::PartitionTable],
    ..FormatInfo::EMPTY
};

impl Format for Partitions {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, image: &dyn Image) -> Result<bool> {
        open::looks_like_table(image)
    }

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        self.open_with(image, Opening::default())
    }

    fn open_with(&self, image: Arc<dyn Image>, opening: Opening) -> Result<Box<dyn Volume>> {
        let (name, wanted) = (image.name(), opening.partition_table);
        Ok(Box::new(volume::PartitionsVolume::open(image, wanted).map_err(|error| error.at(name))?))
    }

    fn packer(&self, _settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
        Err(Error::unsupported("format", "partition tables are read, not written")
            .hint("sfdisk makes a disk, and its partitions are images that packfs packs"))
    }
}
