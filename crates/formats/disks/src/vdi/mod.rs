//! VDI, the disks of VirtualBox: a map with a number for each block.

mod corruption;
mod disk;

use crate::table::{Table, each_block};
use crate::volume::{DiskVolume, Map, Place, Visit};
use crate::{not_written, unsupported};
use corruption::Corruption;
use disk::*;
use packfs_core::{Image, Result, len_of, range_at};
use packfs_format::check::Report;
use packfs_format::{
    FactValue, Facts, Format, FormatInfo, Magic, PackFormat, PackSettings, Volume, read_structure, units::*,
};
use std::mem::size_of;
use std::ops::Range;
use std::sync::Arc;

static MAGICS: [Magic; 1] = [Magic { bytes: &SIGNATURE, at: 64 }];

/// Disks of VirtualBox.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vdi;

static INFO: FormatInfo =
    FormatInfo { name: "vdi", extensions: &["vdi"], magics: &MAGICS, ..FormatInfo::EMPTY };

impl Format for Vdi {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        let name = image.name();
        let map = Blocks::read(&image).map_err(|error| error.at(name))?;
        Ok(Box::new(DiskVolume::new(image, map)))
    }

    fn packer(&self, _settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
        not_written("vdi", "qemu-img convert -O vdi")
    }
}

struct Blocks {
    table: Table,
    map: Range<u64>,
    data_at: u64,
    block_len: u32,
    kind: u32,
    disk_len: u64,
    image_len: u64,
    /// Number of stored blocks in the header.
    stored: u64,
}

impl Blocks {
    /// Reads and checks the header.
    ///
    /// Errors: `Corrupt`, `Unsupported` for differencing disks, `Io`.
    fn read(image: &Arc<dyn Image>) -> Result<Blocks> {
        let len = image.len();
        if len < size_of::<Header>() as u64 {
            return Err(Corruption::Short { len }.into());
        }
        let header: Header = read_structure(&**image, 0)?;
        if header.signature != SIGNATURE {
            return Err(Corruption::Signature.into());
        }
        let version = header.version.get() >> 16;
        if version != 1 {
            return Err(unsupported("vdi image", format!("version {version}, 1 is supported")));
        }
        let kind = header.image_type.get();
        if !matches!(kind, KIND_DYNAMIC | KIND_FIXED)
            || header.uuid_link != [0; 16]
            || header.uuid_parent != [0; 16]
        {
            return Err(unsupported("vdi image", format!("the difference to another disk (type {kind})")));
        }
        let found = header.block_size.get();
        if !found.is_power_of_two() || !(512..=1 << 26).contains(&found) {
            return Err(Corruption::BlockSize { found }.into());
        }
        let extra = header.block_extra.get();
        if extra != 0 {
            return Err(unsupported("vdi image", format!("{extra} bytes before each block")));
        }
        let disk_len = header.disk_size.get();
        let rows = u64::from(header.blocks_in_image.get());
        let room = rows.times(found.into());
        if disk_len > room {
            return Err(Corruption::DiskLength { found: disk_len, room }.into());
        }
        let map = range_at(header.offset_blocks.get().into(), rows.times(4));
        if map.end > len {
            return Err(Corruption::MapEnd { at: map.start, rows, limit: len }.into());
        }
        let table = Table::new(Arc::clone(image));
        let data_at = header.offset_data.get().into();
        let stored = header.blocks_allocated.get().into();
        Ok(Blocks { table, map, data_at, block_len: found, kind, disk_len, image_len: len, stored })
    }

    /// Returns the number of a block in the file; `None` for one of zeros.
    fn number(&self, block: u64) -> Result<Option<u32>> {
        let entry = self.table.entry(self.map.start.plus(block.times(4)))?;
        Ok(Some(u32::from_le_bytes(entry)).filter(|number| *number < NO_BLOCK))
    }

    fn place(&self, block: u64) -> Result<Place> {
        let Some(number) = self.number(block)? else { return Ok(Place::Hole) };
        let len = u64::from(self.block_len);
        let at = self.data_at.plus(u64::from(number).times(len));
        // The last block of the disk may be truncated.
        let needed = len.min(left(self.disk_len, block.times(len)));
        Ok(if range_at(at, needed).end > self.image_len {
            Place::Fault(Corruption::BlockPlace { block, at, limit: self.image_len }.into())
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
        self.disk_len
    }

    fn each(&self, range: Range<u64>, visit: &mut Visit<'_>) -> Result<()> {
        each_block(range, self.block_len.into(), &mut |block| self.place(block), visit)
    }

    fn owned(&self, at: u64, _len: u64) -> Range<u64> {
        range_at(at, self.block_len.into())
    }

    fn add_facts(&self, facts: &mut Facts) {
        let kind = if self.kind == KIND_FIXED { "fixed" } else { "dynamic" };
        facts.push("version", "Kind", FactValue::Text(kind.into()));
        facts.push("block_len", "Block size", FactValue::Bytes(self.block_len.into()));
    }

    fn structures(&self) -> Vec<(Range<u64>, &'static str)> {
        vec![(0..size_of::<Header>() as u64, "header"), (self.map.clone(), "block map")]
    }

    fn check(&self, report: &mut Report<'_>) -> Result<()> {
        let (mut found, mut last) = (0_u64, None);
        for block in 0..len_of(&self.map) / 4 {
            let number = self.number(block)?;
            found = found.plus(number.is_some().into());
            last = last.max(number);
        }
        if found != self.stored {
            let fault = format_args!("{} blocks are stored, but the block map has {found}", self.stored);
            report.error("header", fault);
        }
        if let Some(last) = last.filter(|last| u64::from(*last) >= self.stored) {
            let fault = format_args!("names block {last}, numbers below {} allowed", self.stored);
            report.error("block map", fault);
        }
        Ok(())
    }
}
