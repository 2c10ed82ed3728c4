//! VHDX, the disks of Hyper-V: a block table, located through region and metadata tables, all with
//! two copies or a checksum.
//!
//! Changes in the log of an image that was not closed are applied in memory before anything else is
//! read; the file is not written.

mod corruption;
mod disk;
mod log;
mod regions;

use crate::not_written;
use crate::table::{Table, each_block};
use crate::unsupported;
use crate::volume::{DiskVolume, Map, Place, Visit};
use corruption::Corruption;
use disk::*;
use packfs_core::{Image, Result, range_at};
use packfs_format::check::Report;
use packfs_format::{
    FactValue, Facts, Format, FormatInfo, Magic, PackFormat, PackSettings, Volume, units::*,
};
use regions::Regions;
use std::ops::Range;
use std::sync::Arc;

const MAGIC: Magic = Magic { bytes: &SIGNATURE, at: 0 };

/// Disks of Hyper-V.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vhdx;

static INFO: FormatInfo =
    FormatInfo { name: "vhdx", extensions: &["vhdx"], magics: &[MAGIC], ..FormatInfo::EMPTY };

impl Format for Vhdx {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        let name = image.name();
        let map = Blocks::read(&image).map_err(|error| error.at(name))?;
        Ok(Box::new(DiskVolume::new(image, map)))
    }

    fn packer(&self, _settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
        not_written("vhdx", "qemu-img convert -O vhdx")
    }
}

struct Blocks {
    /// The file with the changes of its log.
    image: Arc<dyn Image>,
    table: Table,
    regions: Regions,
    /// Number of changes in the log; `None` if it is not in use.
    replayed: Option<u64>,
}

impl Blocks {
    /// Reads headers, log, regions, and metadata.
    ///
    /// Errors: `Corrupt`, `Unsupported` for differencing disks, `Io`.
    fn read(file: &Arc<dyn Image>) -> Result<Blocks> {
        let (header, header_range) = regions::header(&**file)?;
        let (image, replayed) = log::replayed(file, &header)?;
        let regions = Regions::read(&*image, &header, header_range)?;
        let table = Table::new(Arc::clone(&image));
        Ok(Blocks { image, table, regions, replayed })
    }

    fn place(&self, block: u64) -> Result<Place> {
        let Regions { block_len, disk_len, ref bat, .. } = self.regions;
        // Each of these groups is followed by a bitmap of sectors, which only differencing disks
        // use.
        let bitmaps = block.quotient(self.regions.blocks_per_bitmap());
        let row = block.plus(bitmaps);
        let entry = u64::from_le_bytes(self.table.entry(bat.start.plus(row.times(8)))?);
        let (state, at) = (entry & STATE_MASK, entry & OFFSET_MASK);
        match state {
            BLOCK_PRESENT => {}
            BLOCK_NOT_PRESENT | BLOCK_UNDEFINED | BLOCK_ZERO | BLOCK_UNMAPPED => return Ok(Place::Hole),
            BLOCK_PARTIAL => {
                return Ok(Place::Fault(refused(format!(
                    "block {block}, a part of which is in another disk"
                ))));
            }
            found => return Ok(Place::Fault(Corruption::BlockState { block, found }.into())),
        }
        let needed = block_len.min(left(disk_len, block.times(block_len)));
        let limit = self.image.len();
        Ok(if at == 0 || range_at(at, needed).end > limit {
            Place::Fault(Corruption::BlockPlace { block, at, limit }.into())
        } else {
            Place::Stored(at)
        })
    }
}

impl Map for Blocks {
    fn format(&self) -> &'static FormatInfo {
        &INFO
    }

    fn disk_len(&self) -> u64 {
        self.regions.disk_len
    }

    fn each(&self, range: Range<u64>, visit: &mut Visit<'_>) -> Result<()> {
        each_block(range, self.regions.block_len, &mut |block| self.place(block), visit)
    }

    fn owned(&self, at: u64, _len: u64) -> Range<u64> {
        range_at(at, self.regions.block_len)
    }

    fn add_facts(&self, facts: &mut Facts) {
        facts.push("block_len", "Block size", FactValue::Bytes(self.regions.block_len));
        facts.push("sector_len", "Sector size", FactValue::Bytes(self.regions.sector_len));
        facts.push("log_changes", "Changes in the log", FactValue::Count(self.replayed.unwrap_or(0)));
    }

    fn structures(&self) -> Vec<(Range<u64>, &'static str)> {
        self.regions.structures.clone()
    }

    fn data_image(&self) -> Option<Arc<dyn Image>> {
        self.replayed.map(|_| Arc::clone(&self.image))
    }

    fn warnings(&self) -> Vec<String> {
        let name = self.image.name();
        let damaged =
            self.regions.damaged.iter().map(|what| format!("{name}: {what}: damaged; the other is used"));
        let replayed = self
            .replayed
            .map(|count| format!("{name} was not closed: {count} changes of its log are applied in memory"));
        damaged.chain(replayed).collect()
    }

    fn check(&self, report: &mut Report<'_>) -> Result<()> {
        for name in &self.regions.damaged {
            report.warn(name, "it is damaged; the other one is used");
        }
        if let Some(count) = self.replayed {
            report
                .warn("log", format_args!("the image was not closed: {count} changes are in its log alone"));
        }
        Ok(())
    }
}

fn refused(what: impl std::fmt::Display) -> packfs_core::Error {
    unsupported("vhdx image", what)
}
