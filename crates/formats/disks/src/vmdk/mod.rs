//! VMDK, the disks of VMware: one file with a map of grains (monolithic sparse, and
//! stream-optimized as in OVA), or a descriptor with the files of the disk.
//!
//! Two levels of tables locate grains. Those of stream-optimized disks are compressed, each with a
//! header that contains its length; the footer locates their directory.

mod corruption;
mod descriptor;
mod disk;
mod split;

use crate::table::{Table, each_block};
use crate::volume::{DiskVolume, Map, Place, Visit};
use crate::{not_written, unsupported};
use corruption::Corruption;
use descriptor::Descriptor;
use disk::*;
use packfs_codec::{Algorithm, BlockRef, DecodedLen};
use packfs_core::{Error, Image, Result, len_of, range_at, u32_of};
use packfs_format::check::Report;
use packfs_format::{
    FactValue, Facts, Format, FormatInfo, Magic, OpenOption, Opening, PackFormat, PackSettings, Volume,
    read_structure, units::*,
};
use split::Split;
use std::mem::size_of;
use std::ops::Range;
use std::sync::Arc;

const SECTOR_LEN: u64 = 512;
/// Longest grain: VMware writes 64 KiB.
const GRAIN_SECTORS_MAX: u64 = 2048;
/// Limit of entries of a table, as in QEMU.
const TABLE_ROWS_MAX: u32 = 512;
/// Limit of tables of a directory, as in QEMU.
const DIRECTORY_ROWS_MAX: u64 = 32 << 20;

const DESCRIPTOR: Magic = Magic { bytes: b"# Disk DescriptorFile", at: 0 };

const ONE_FILE: Magic = Magic { bytes: &MAGIC, at: 0 };

/// Disks of VMware.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vmdk;

static INFO: FormatInfo = FormatInfo {
    name: "vmdk",
    extensions: &["vmdk"],
    magics: &[ONE_FILE],
    opens_with: &[OpenOption::Devices, OpenOption::Backing],
    ..FormatInfo::EMPTY
};

impl Format for Vmdk {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, image: &dyn Image) -> Result<bool> {
        Ok(ONE_FILE.is_in(image)? || DESCRIPTOR.is_in(image)?)
    }

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        self.open_with(image, Opening::default())
    }

    fn open_with(&self, image: Arc<dyn Image>, opening: Opening) -> Result<Box<dyn Volume>> {
        let name = image.name();
        let files: Vec<_> = opening.devices.into_iter().chain(opening.backing).collect();
        if DESCRIPTOR.is_in(&*image)? {
            let map = Split::read(&image, files).map_err(|error| error.at(name))?;
            return Ok(Box::new(DiskVolume::new(image, map)));
        }
        if !files.is_empty() {
            return Err(Error::usage(format!("{name} is the whole disk, but further files are given")));
        }
        let map = Grains::read(&image).map_err(|error| error.at(name))?;
        Ok(Box::new(DiskVolume::new(image, map)))
    }

    fn packer(&self, _settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
        not_written("vmdk", "qemu-img convert -O vmdk")
    }
}

struct Grains {
    image: Arc<dyn Image>,
    tables: Table,
    header: Header,
    descriptor: Descriptor,
    directory: Range<u64>,
    grain_len: u64,
    disk_len: u64,
    has_footer: bool,
}

fn sector(number: u64) -> u64 {
    nth_at(0, number, SECTOR_LEN)
}

impl Grains {
    /// Reads and checks the header, or the footer instead of it.
    ///
    /// Errors: `Corrupt`, `Unsupported` for disks of several files, `Io`.
    fn read(image: &Arc<dyn Image>) -> Result<Grains> {
        let grains = Grains::read_part(image)?;
        grains.descriptor.refuse_others()?;
        Ok(grains)
    }

    /// Reads the header of a file that may be a part of the disk.
    ///
    /// Errors: as [`Grains::read`].
    fn read_part(image: &Arc<dyn Image>) -> Result<Grains> {
        let limit = image.len();
        let mut header = header_at(&**image, 0)?;
        let descriptor = Descriptor::read(&**image, &header)?;
        let has_footer = header.gd_offset.get() == GD_AT_END;
        if has_footer {
            let at = limit.checked_sub(2 * SECTOR_LEN).filter(|at| *at > 0);
            header = header_at(&**image, at.ok_or(Corruption::Short { len: limit })?)?;
        }
        let version = header.version.get();
        if !(1..=3).contains(&version) {
            return Err(unsupported("vmdk image", format!("version {version}, 1 to 3 are supported")));
        }
        let (compression, flags) = (header.compression.get(), header.flags.get());
        if compression > DEFLATE {
            return Err(unsupported("vmdk image", format!("compression {compression}, 1 is supported")));
        }
        if (flags & COMPRESSED != 0) != (compression == DEFLATE) {
            return Err(Corruption::Compression { flags, compression }.into());
        }
        if flags & COMPRESSED != 0 && flags & MARKERS == 0 {
            return Err(unsupported("vmdk image", "compressed grains without heads"));
        }
        let found = header.grain_size.get();
        if !found.is_power_of_two() || !(8..=GRAIN_SECTORS_MAX).contains(&found) {
            return Err(Corruption::GrainSize { found }.into());
        }
        let rows = header.rows_per_table.get();
        if rows == 0 || rows > TABLE_ROWS_MAX {
            return Err(Corruption::TableRows { found: rows }.into());
        }
        let (grain_len, capacity) = (sector(found), header.capacity.get());
        if capacity == 0 || capacity > i64::MAX as u64 / SECTOR_LEN {
            return Err(Corruption::Capacity { found: capacity }.into());
        }
        let grains = capacity.div_ceil(found);
        let directory_rows = grains.div_ceil(rows.into());
        if directory_rows > DIRECTORY_ROWS_MAX {
            return Err(Corruption::Capacity { found: capacity }.into());
        }
        let directory = range_at(sector(header.gd_offset.get()), directory_rows.times(4));
        if directory.end > limit {
            return Err(Corruption::DirectoryEnd { at: directory.start, rows: directory_rows, limit }.into());
        }
        let (image, tables, disk_len) = (Arc::clone(image), Table::new(Arc::clone(image)), sector(capacity));
        let grains = Grains { image, tables, header, descriptor, directory, grain_len, disk_len, has_footer };
        grains.check_tables(directory_rows)?;
        Ok(grains)
    }

    /// Checks that the file has space for all tables: those of a valid disk are distinct.
    fn check_tables(&self, directory_rows: u64) -> Result<()> {
        let mut found = 0_u64;
        for table in 0..directory_rows {
            found = found.plus(self.table_at(table)?.is_some().into());
        }
        let len = self.rows().times(4);
        let max = self.image.len().quotient(len);
        if found > max {
            return Err(Corruption::TableCount { found, max }.into());
        }
        Ok(())
    }

    /// Compares the second directory and its tables with the first.
    fn check_copy(&self, report: &mut Report<'_>) -> Result<()> {
        let copy_at = sector(self.header.rgd_offset.get());
        if self.header.flags.get() & HAS_COPY == 0 || copy_at == 0 {
            return Ok(());
        }
        let tables = len_of(&self.directory) / 4;
        for table in 0..tables {
            let entry = self.tables.entry(nth_at(copy_at, table, 4))?;
            let at = self.table_at(table)?;
            let copy = sector(u32::from_le_bytes(entry).into());
            let mut is_same = at.is_some() == (copy != 0);
            for row in (0..self.rows()).map(|row| row.times(4)) {
                let Some(at) = at.filter(|_| is_same) else { break };
                let own: [u8; 4] = self.tables.entry(at.plus(row))?;
                is_same = own == self.tables.entry(copy.plus(row))?;
            }
            if !is_same {
                report.warn("second grain directory", format_args!("table {table} is not that of the first"));
                break;
            }
        }
        Ok(())
    }

    fn rows(&self) -> u64 {
        self.header.rows_per_table.get().into()
    }

    /// Offset of a table; `None` if its grains are not stored.
    fn table_at(&self, table: u64) -> Result<Option<u64>> {
        let entry = self.tables.entry(self.directory.start.plus(table.times(4)))?;
        let at = sector(u32::from_le_bytes(entry).into());
        Ok(Some(at).filter(|at| *at != 0))
    }

    fn place(&self, grain: u64) -> Result<Place> {
        let table = grain.quotient(self.rows());
        let Some(table_at) = self.table_at(table)? else { return Ok(Place::Hole) };
        let limit = self.image.len();
        let row = grain.minus(table.times(self.rows()));
        let at = table_at.plus(row.times(4));
        if range_at(at, 4).end > limit {
            return Ok(Place::Fault(Corruption::TablePlace { table, at: table_at, limit }.into()));
        }
        let at = match u32::from_le_bytes(self.tables.entry(at)?) {
            0 => return Ok(Place::Hole),
            1 if self.header.flags.get() & ZERO_GRAINS != 0 => return Ok(Place::Hole),
            number => sector(number.into()),
        };
        let needed = self.grain_len.min(left(self.disk_len, grain.times(self.grain_len)));
        if self.header.flags.get() & COMPRESSED != 0 {
            return self.compressed(grain, at, needed);
        }
        // The last grain of a file may be truncated.
        Ok(if at >= limit || range_at(at, needed).end > limit {
            Place::Fault(Corruption::GrainPlace { grain, at, len: needed, limit }.into())
        } else {
            Place::Stored(at)
        })
    }

    /// Locates a grain after its header.
    fn compressed(&self, grain: u64, at: u64, needed: u64) -> Result<Place> {
        let (head_len, limit) = (size_of::<GrainHead>() as u64, self.image.len());
        let fault = |len| Corruption::GrainPlace { grain, at, len, limit };
        if range_at(at, head_len).end > limit {
            return Ok(Place::Fault(fault(head_len).into()));
        }
        let head: GrainHead = read_structure(&*self.image, at)?;
        let len = u64::from(head.len.get());
        let first = grain.times(self.header.grain_size.get());
        if head.first.get() != first || len > self.grain_len.times(2) {
            let (found, len) = (head.first.get(), head.len.get());
            return Ok(Place::Fault(Corruption::GrainHead { grain, at, found, first, len }.into()));
        }
        let offset = at.plus(head_len);
        if range_at(offset, len).end > limit {
            return Ok(Place::Fault(fault(len).into()));
        }
        let block = BlockRef {
            offset,
            stored_len: head.len.get(),
            decoded_len: u32_of(needed),
            decodes_to: if needed == self.grain_len { DecodedLen::Exactly } else { DecodedLen::Prefix },
            zero_padded: false,
            algorithm: Some(Algorithm::Zlib),
        };
        Ok(Place::Block { block, start: 0 })
    }
}

fn header_at(image: &dyn Image, at: u64) -> Result<Header> {
    if range_at(at, size_of::<Header>() as u64).end > image.len() {
        return Err(Corruption::Short { len: image.len() }.into());
    }
    let header: Header = read_structure(image, at)?;
    if header.magic != MAGIC {
        return Err(Corruption::Signature { at }.into());
    }
    Ok(header)
}

impl Map for Grains {
    fn format(&self) -> &'static FormatInfo {
        &INFO
    }

    fn disk_len(&self) -> u64 {
        self.disk_len
    }

    fn each(&self, range: Range<u64>, visit: &mut Visit<'_>) -> Result<()> {
        // Missing tables are skipped as a whole.
        let span = self.grain_len.times(self.rows());
        let mut goes_on = true;
        each_block(range, span, &mut |table| Ok(Place::Stored(table)), &mut |part, _| {
            let table = part.start.quotient(span);
            if self.table_at(table)?.is_none() {
                goes_on = visit(part, Place::Hole)?;
            } else {
                each_block(part, self.grain_len, &mut |grain| self.place(grain), &mut |part, place| {
                    goes_on = visit(part, place)?;
                    Ok(goes_on)
                })?;
            }
            Ok(goes_on)
        })
    }

    fn owned(&self, at: u64, len: u64) -> Range<u64> {
        if self.header.flags.get() & COMPRESSED == 0 {
            return range_at(at, self.grain_len);
        }
        // Includes its header, in whole sectors.
        let start = at.minus(size_of::<GrainHead>() as u64);
        let end = at.plus(len);
        start..end.checked_next_multiple_of(SECTOR_LEN).unwrap_or(end)
    }

    fn add_facts(&self, facts: &mut Facts) {
        let compressed = self.header.flags.get() & COMPRESSED != 0;
        let kind = self.descriptor.kind().map_or("unknown".into(), str::to_owned);
        facts.push("version", "Version", FactValue::Text(self.header.version.get().to_string()));
        facts.push("kind", "Kind", FactValue::Text(kind));
        facts.push("codecs", "Codec", FactValue::Text(if compressed { "gzip" } else { "none" }.into()));
        facts.push("block_len", "Grain size", FactValue::Bytes(self.grain_len));
    }

    fn structures(&self) -> Vec<(Range<u64>, &'static str)> {
        let limit = self.image.len();
        let mut structures = vec![(0..SECTOR_LEN, "header"), (self.descriptor.range(), "descriptor")];
        // Each is aligned to a sector.
        let table =
            |at: u64, rows: u64| (range_at(at, rows.times(4).next_multiple_of(SECTOR_LEN)), "grain tables");
        structures.push((table(self.directory.start, len_of(&self.directory) / 4).0, "grain directory"));
        if self.has_footer {
            structures.push((limit.minus(3 * SECTOR_LEN)..limit, "footer"));
        }
        let copy = sector(self.header.rgd_offset.get());
        let has_copy = self.header.flags.get() & HAS_COPY != 0;
        let rows = self.directory.end.minus(self.directory.start) / 4;
        let starts = [Some(self.directory.start), has_copy.then_some(copy)];
        if has_copy {
            structures.push((table(copy, rows).0, "grain directory"));
        }
        for start in starts.into_iter().flatten() {
            for row in 0..rows {
                // Unreadable tables own nothing.
                let entry = self.tables.entry(nth_at(start, row, 4)).unwrap_or_default();
                let at = sector(u32::from_le_bytes(entry).into());
                if at != 0 {
                    structures.push(table(at, self.rows()));
                }
            }
        }
        structures
    }

    fn check(&self, report: &mut Report<'_>) -> Result<()> {
        if self.header.unclean != 0 {
            report.warn("header", "not closed cleanly");
        }
        self.check_copy(report)?;
        if self.header.newlines != NEWLINES {
            report.error("header", "its line ends were changed, as by a transfer as text");
        }
        Ok(())
    }
}
