//! Headers, regions, and metadata: position of the block table, and length of blocks.

use super::corruption::Corruption;
use super::disk::*;
use super::refused;
use packfs_core::{Image, Result, len_of, range_at, usize_of};
use packfs_format::{crc32c, split_structure, structure, structures, units::*};
use std::ops::Range;

const ROWS_MAX: u16 = 2047;
/// Longest disk of the specification: 64 TiB.
const DISK_LEN_MAX: u64 = 64 << 40;

/// Reads a structure and verifies its checksum; `None` if it is damaged or missing.
pub(super) fn summed(image: &dyn Image, at: u64, len: usize, signature: [u8; 4]) -> Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; len];
    if range_at(at, len as u64).end > image.len() {
        return Ok(None);
    }
    image.read_exact_at(at, &mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.starts_with(&signature) && is_sound(bytes)))
}

pub(super) fn is_sound(bytes: &[u8]) -> bool {
    let (Some((head, rest)), Some(field)) = (bytes.split_at_checked(CHECKSUM.end), bytes.get(CHECKSUM))
    else {
        return false;
    };
    let found = u32::from_le_bytes(<[u8; 4]>::try_from(field).unwrap_or_default());
    // With zeros in its own field.
    let sum = crc32c(!0, head.within(..CHECKSUM.start));
    found == !crc32c(crc32c(sum, &[0; 4]), rest)
}

/// Returns the newer of the valid headers, and its position.
///
/// Errors: `Corrupt` if none is valid, `Io`.
pub(super) fn header(image: &dyn Image) -> Result<(Header, Range<u64>)> {
    if !super::MAGIC.is_in(image)? {
        return Err(Corruption::Signature.into());
    }
    let mut newest: Option<(Header, Range<u64>)> = None;
    for at in HEADERS {
        let Some(bytes) = summed(image, at, HEADER_LEN, *b"head")? else { continue };
        let Some(header) = structure::<Header>(&bytes, 0) else { continue };
        if newest.as_ref().is_none_or(|(newest, _)| newest.sequence.get() < header.sequence.get()) {
            newest = Some((header, range_at(at, HEADER_LEN as u64)));
        }
    }
    let (header, range) = newest.ok_or(Corruption::Headers)?;
    if header.version.get() != 1 {
        return Err(refused(format!("version {}, 1 is supported", header.version.get())));
    }
    Ok((header, range))
}

/// Description of an image, without its blocks.
pub(super) struct Regions {
    pub(super) bat: Range<u64>,
    pub(super) block_len: u64,
    pub(super) sector_len: u64,
    pub(super) disk_len: u64,
    pub(super) structures: Vec<(Range<u64>, &'static str)>,
    /// Names of damaged or missing copies.
    pub(super) damaged: Vec<&'static str>,
}

impl Regions {
    /// Reads the regions and the metadata.
    ///
    /// Errors: `Corrupt`, `Unsupported` for unknown required items, `Io`.
    pub(super) fn read(image: &dyn Image, header: &Header, header_range: Range<u64>) -> Result<Regions> {
        let mut structures = vec![(0..TABLE_LEN as u64, "header"), (header_range, "header")];
        structures.extend(HEADERS.map(|at| (range_at(at, HEADER_LEN as u64), "header")));
        structures.extend(REGION_TABLES.map(|at| (range_at(at, TABLE_LEN as u64), "regions")));
        structures.push((range_at(header.log_at.get(), header.log_len.get().into()), "log"));
        let (bat, metadata) = regions(image)?;
        structures.push((bat.clone(), "block table"));
        structures.push((metadata.clone(), "metadata"));
        let metadata = Metadata::read(image, metadata)?;
        let (flags, block_len) = metadata.file()?;
        if flags & HAS_PARENT != 0 {
            return Err(refused("the difference to another disk"));
        }
        let found = metadata.number::<4>(ITEM_SECTOR_LEN, "sector size")?;
        let sector_len = u32::from_le_bytes(found);
        if sector_len != 512 && sector_len != 4096 {
            return Err(Corruption::SectorSize { found: sector_len }.into());
        }
        let disk_len = u64::from_le_bytes(metadata.number::<8>(ITEM_DISK_LEN, "disk length")?);
        if disk_len > DISK_LEN_MAX {
            return Err(Corruption::DiskLength { found: disk_len, max: DISK_LEN_MAX }.into());
        }
        let (block_len, sector_len) = (u64::from(block_len), u64::from(sector_len));
        let mut damaged = Vec::new();
        for (at, name) in HEADERS.into_iter().zip(["first header", "second header"]) {
            damaged.extend(summed(image, at, HEADER_LEN, *b"head")?.is_none().then_some(name));
        }
        for (at, name) in REGION_TABLES.into_iter().zip(["first table of regions", "second table of regions"])
        {
            damaged.extend(summed(image, at, TABLE_LEN, *b"regi")?.is_none().then_some(name));
        }
        let regions = Regions { bat, block_len, sector_len, disk_len, structures, damaged };
        let blocks = disk_len.div_ceil(block_len);
        let last = left(blocks, 1).quotient(regions.blocks_per_bitmap());
        let rows = blocks.plus(last);
        if rows.times(8) > len_of(&regions.bat) {
            return Err(Corruption::TableEnd { at: regions.bat.start, rows, limit: regions.bat.end }.into());
        }
        Ok(regions)
    }

    /// Number of blocks between two bitmaps in the table.
    pub(super) fn blocks_per_bitmap(&self) -> u64 {
        self.sector_len.times(1 << 23).checked_div(self.block_len).unwrap_or(1)
    }
}

/// Returns the ranges of the block table and of the metadata.
fn regions(image: &dyn Image) -> Result<(Range<u64>, Range<u64>)> {
    let mut table = None;
    for at in REGION_TABLES {
        table = match table {
            None => summed(image, at, TABLE_LEN, *b"regi")?,
            found => found,
        };
    }
    let bytes = table.ok_or(Corruption::RegionTables)?;
    let Some((table, rows)) = split_structure::<RegionTable>(&bytes) else {
        return Err(Corruption::RegionTables.into());
    };
    let count = table.count.get();
    if count > ROWS_MAX.into() {
        return Err(Corruption::RegionCount { found: count }.into());
    }
    let (mut bat, mut metadata) = (None, None);
    for region in structures::<Region>(rows).take(usize_of(count.into())) {
        let (place, what) = match region.guid {
            REGION_BAT => (&mut bat, "block table"),
            REGION_METADATA => (&mut metadata, "metadata"),
            _ if region.required.get() & 1 != 0 => return Err(refused("a region that readers have to know")),
            _ => continue,
        };
        let range = range_at(region.at.get(), region.len.get().into());
        if range.end > image.len() {
            let len = len_of(&range);
            return Err(Corruption::RegionEnd { what, at: range.start, len, limit: image.len() }.into());
        }
        *place = Some(range);
    }
    let bat = bat.ok_or(Corruption::RegionMissing { what: "block table" })?;
    Ok((bat, metadata.ok_or(Corruption::RegionMissing { what: "metadata" })?))
}

struct Metadata<'a> {
    image: &'a dyn Image,
    region: Range<u64>,
    items: Vec<Item>,
}

impl<'a> Metadata<'a> {
    fn read(image: &'a dyn Image, region: Range<u64>) -> Result<Self> {
        let at = region.start;
        let mut bytes = vec![0; TABLE_LEN.min(usize_of(len_of(&region)))];
        image.read_exact_at(at, &mut bytes)?;
        let table = split_structure::<MetadataTable>(&bytes);
        let Some((table, rows)) = table else { return Err(Corruption::MetadataSignature { at }.into()) };
        if table.signature != *b"metadata" {
            return Err(Corruption::MetadataSignature { at }.into());
        }
        let found = table.count.get();
        if found > ROWS_MAX {
            return Err(Corruption::MetadataCount { found }.into());
        }
        let items: Vec<Item> = structures(rows).take(found.into()).collect();
        let known = [ITEM_FILE, ITEM_DISK_LEN, ITEM_SECTOR_LEN, ITEM_PHYSICAL, ITEM_PAGE_83, ITEM_PARENT];
        let is_unknown = |item: &Item| item.flags.get() & ITEM_REQUIRED != 0 && !known.contains(&item.guid);
        if items.iter().any(is_unknown) {
            Err(refused("metadata that readers have to know"))
        } else {
            Ok(Metadata { image, region, items })
        }
    }

    fn number<const N: usize>(&self, guid: [u8; 16], what: &'static str) -> Result<[u8; N]> {
        let item = self.items.iter().find(|item| item.guid == guid);
        let item = item.ok_or(Corruption::ItemMissing { what })?;
        let at = self.region.start.plus(item.at.get().into());
        let len = item.len.get();
        let limit = self.region.end;
        if usize_of(len.into()) < N || range_at(at, len.into()).end > limit {
            return Err(Corruption::ItemPlace { what, at, len, limit }.into());
        }
        let mut bytes = [0; N];
        self.image.read_exact_at(at, &mut bytes)?;
        Ok(bytes)
    }

    fn file(&self) -> Result<(u32, u32)> {
        let [a, b, c, d, e, f, g, h] = self.number(ITEM_FILE, "file parameters")?;
        let found = u32::from_le_bytes([a, b, c, d]);
        let flags = u32::from_le_bytes([e, f, g, h]);
        if !found.is_power_of_two() || !(1 << 20..=256 << 20).contains(&found) {
            return Err(Corruption::BlockSize { found }.into());
        }
        Ok((flags, found))
    }
}
