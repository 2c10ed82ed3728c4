//! VHD, the disks of Virtual PC, Hyper-V, and Azure: fixed ones are the disk with a footer, dynamic
//! ones a table of blocks, and differencing ones a table of blocks whose missing sectors the parent
//! contains.

mod chain;
mod corruption;
mod disk;

use crate::not_written;
use crate::table::{Table, each_block};
use crate::volume::{DiskVolume, Place, Visit};
use chain::Chain;
use corruption::Corruption;
use disk::*;
use packfs_core::{Image, Result, escaped, range_at, u32_of};
use packfs_format::{
    FactValue, Facts, Format, FormatInfo, Magic, OpenOption, Opening, PackFormat, PackSettings, Volume,
    filled, read_structure, units::*,
};
use std::mem::size_of;
use std::ops::Range;
use std::sync::Arc;
use zerocopy::{FromZeros, IntoBytes};

const FOOTER_LEN: u64 = size_of::<Footer>() as u64;
const SECTOR_LEN: u64 = 512;

/// Dynamic disks start with a copy of the footer. Fixed ones are only detected by their end.
static MAGICS: [Magic; 1] = [Magic { bytes: &COOKIE, at: 0 }];

/// Disks of Virtual PC and Hyper-V.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vhd;

static INFO: FormatInfo = FormatInfo {
    name: "vhd",
    extensions: &["vhd", "vpc"],
    magics: &MAGICS,
    opens_with: &[OpenOption::Backing],
    ..FormatInfo::EMPTY
};

impl Format for Vhd {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, image: &dyn Image) -> Result<bool> {
        Ok(footer(image, 0)?.is_some() || footer_at_end(image)?.is_some())
    }

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        self.open_with(image, Opening::default())
    }

    fn open_with(&self, image: Arc<dyn Image>, opening: Opening) -> Result<Box<dyn Volume>> {
        let name = image.name();
        let map = Chain::open(&image, opening.backing).map_err(|error| error.at(name))?;
        Ok(Box::new(DiskVolume::new(image, map)))
    }

    fn packer(&self, _settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
        not_written("vhd", "qemu-img convert -O vpc")
    }
}

/// Returns the footer or its copy at `at`; `None` without a cookie.
fn footer(image: &dyn Image, at: u64) -> Result<Option<Footer>> {
    // Old programs omitted the last byte of a footer, which is zero.
    if range_at(at, FOOTER_LEN - 1).end > image.len() {
        return Ok(None);
    }
    let footer: Footer = filled(|bytes| image.read_at(at, bytes).map(drop))?;
    Ok(Some(footer).filter(|footer| footer.cookie == COOKIE))
}

fn footer_at_end(image: &dyn Image) -> Result<Option<(u64, Footer)>> {
    for len in [FOOTER_LEN, FOOTER_LEN - 1] {
        let Some(at) = image.len().checked_sub(len) else { return Ok(None) };
        if let Some(footer) = footer(image, at)? {
            return Ok(Some((at, footer)));
        }
    }
    Ok(None)
}

/// Returns the checksum of a structure, with zeros in its own field.
fn checksum(bytes: &[u8], field: Range<usize>) -> u32 {
    let counted = bytes.iter().enumerate().filter(|(at, _)| !field.contains(at));
    !counted.fold(0_u32, |sum, (_, byte)| sum.wrapping_add(u32::from(*byte)))
}

fn is_sound(footer: &Footer) -> bool {
    footer.checksum.get() == checksum(footer.as_bytes(), FOOTER_CHECKSUM)
}

enum Storage {
    Fixed,
    Dynamic { header_at: u64, table: Table, bat: Range<u64>, block_len: u32, parent: Option<Parent> },
}

struct Parent {
    uuid: [u8; 16],
    name: String,
}

struct Blocks {
    storage: Storage,
    disk_len: u64,
    image_len: u64,
    uuid: [u8; 16],
    /// Positions of the footer and its copy, if they exist.
    footers: Vec<Range<u64>>,
    fault: Option<&'static str>,
    /// Set if the copy of the footer is damaged.
    copy_fault: bool,
}

impl Blocks {
    /// Reads and checks footer and header.
    ///
    /// Errors: `Corrupt`, `Io`.
    fn read(image: &Arc<dyn Image>) -> Result<Blocks> {
        let (at_end, at_start) = (footer_at_end(&**image)?, footer(&**image, 0)?);
        let at_end = at_end.filter(|(at, _)| *at > 0);
        let mut fault = None;
        let chosen = match (at_end, at_start) {
            (Some((_, end)), _) if is_sound(&end) => end,
            (end, Some(start)) if is_sound(&start) => {
                fault = Some(if end.is_some() { "its checksum is wrong" } else { "it is missing" });
                start
            }
            (Some((_, end)), _) if end.disk_type.get() == FIXED => {
                fault = Some("its checksum is wrong");
                end
            }
            (None, None) => return Err(Corruption::Signature.into()),
            (end, start) => {
                let footer = end.map(|(_, footer)| footer).or(start).unwrap_or(Footer::new_zeroed());
                let computed = checksum(footer.as_bytes(), FOOTER_CHECKSUM);
                return Err(Corruption::FooterChecksum { found: footer.checksum.get(), computed }.into());
            }
        };
        let mut footers = Vec::new();
        footers.extend(at_start.is_some().then_some(0..FOOTER_LEN));
        footers.extend(at_end.map(|(at, _)| at..image.len()));
        let disk_len = chosen.current_size.get();
        let image_len = image.len();
        let storage = match chosen.disk_type.get() {
            FIXED => {
                let room = at_end.map_or(image_len, |(at, _)| at);
                if disk_len > room {
                    return Err(Corruption::DiskLength { found: disk_len, room }.into());
                }
                Storage::Fixed
            }
            kind @ (DYNAMIC | DIFFERENCING) => {
                dynamic(image, chosen.data_offset.get(), disk_len, kind == DIFFERENCING)?
            }
            found => return Err(Corruption::DiskType { found }.into()),
        };
        let is_fixed = matches!(storage, Storage::Fixed);
        let copy_fault = !is_fixed && !at_start.is_some_and(|copy| is_sound(&copy));
        Ok(Blocks { storage, disk_len, image_len, uuid: chosen.uuid, footers, fault, copy_fault })
    }

    fn parent(&self) -> Option<&Parent> {
        let Storage::Dynamic { parent, .. } = &self.storage else { return None };
        parent.as_ref()
    }

    fn place(&self, table: &Table, bat: &Range<u64>, block_len: u32, block: u64) -> Result<Place> {
        let sector = u32::from_be_bytes(table.entry(bat.start.plus(block.times(4)))?);
        if sector == NO_BLOCK {
            return Ok(Place::Hole);
        }
        let at = u64::from(sector).times(SECTOR_LEN).plus(bitmap_len(block_len));
        let len = u64::from(block_len);
        let needed = len.min(left(self.disk_len, block.times(len)));
        Ok(if range_at(at, needed).end > self.image_len {
            Place::Fault(Corruption::BlockPlace { block, at, limit: self.image_len }.into())
        } else {
            Place::Stored(at)
        })
    }
}

/// Length of the bitmap before a block, with a bit for each written sector: the others are those of
/// the parent, or zeros in the block, too.
fn bitmap_len(block_len: u32) -> u64 {
    u64::from(block_len / 512).div_ceil(8).next_multiple_of(SECTOR_LEN)
}

fn dynamic(image: &Arc<dyn Image>, at: u64, disk_len: u64, has_parent: bool) -> Result<Storage> {
    let limit = image.len();
    if range_at(at, size_of::<DynamicHeader>() as u64).end > limit {
        return Err(Corruption::HeaderPlace { at, limit }.into());
    }
    let header: DynamicHeader = read_structure(&**image, at)?;
    if header.cookie != DYNAMIC_COOKIE {
        return Err(Corruption::HeaderSignature { at }.into());
    }
    let found = header.checksum.get();
    let computed = checksum(header.as_bytes(), HEADER_CHECKSUM);
    if found != computed {
        return Err(Corruption::HeaderChecksum { at, found, computed }.into());
    }
    let block_len = header.block_size.get();
    if !block_len.is_power_of_two() || !(512..=1 << 28).contains(&block_len) {
        return Err(Corruption::BlockSize { found: block_len }.into());
    }
    let rows = u64::from(header.max_table_entries.get());
    let room = rows.times(block_len.into());
    if disk_len > room {
        return Err(Corruption::DiskLength { found: disk_len, room }.into());
    }
    let bat = range_at(header.table_offset.get(), rows.times(4));
    if bat.end > limit {
        return Err(Corruption::TableEnd { at: bat.start, rows, limit }.into());
    }
    let units = header.parent_unicode_name.iter().map(|unit| unit.get()).take_while(|unit| *unit != 0);
    let name: String =
        char::decode_utf16(units).map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    let name = escaped(name.as_bytes()).to_string();
    let parent = has_parent.then_some(Parent { uuid: header.parent_unique_id, name });
    Ok(Storage::Dynamic { header_at: at, table: Table::new(Arc::clone(image)), bat, block_len, parent })
}

impl Blocks {
    /// Calls `visit` for the ranges stored in blocks, ignoring bitmaps.
    fn each_whole(&self, range: Range<u64>, visit: &mut Visit<'_>) -> Result<()> {
        match &self.storage {
            Storage::Fixed => {
                let at = range.start;
                visit(range, Place::Stored(at)).map(drop)
            }
            Storage::Dynamic { table, bat, block_len, .. } => {
                let mut place = |block| self.place(table, bat, *block_len, block);
                each_block(range, (*block_len).into(), &mut place, visit)
            }
        }
    }

    /// Calls `visit` for the ranges stored in blocks; sectors of the parent are holes.
    fn each(&self, range: Range<u64>, visit: &mut Visit<'_>) -> Result<()> {
        let Storage::Dynamic { table, block_len, parent: Some(_), .. } = &self.storage else {
            return self.each_whole(range, visit);
        };
        self.each_whole(range, &mut |part, place| match place {
            Place::Stored(at) => each_written(table, u64::from(*block_len), part, at, visit),
            place => visit(part, place),
        })
    }

    fn owned(&self, at: u64, len: u64) -> Range<u64> {
        match &self.storage {
            Storage::Fixed => range_at(at, len),
            // Blocks are whole sectors, including the last one, before the footer.
            Storage::Dynamic { block_len, .. } => {
                let end = self.footers.last().map_or(u64::MAX, |footer| footer.start);
                let whole = range_at(at, (*block_len).into());
                let end = if whole.start < end { whole.end.min(end) } else { whole.end };
                at.minus(bitmap_len(*block_len))..end
            }
        }
    }

    fn add_facts(&self, facts: &mut Facts) {
        let (kind, block_len) = match &self.storage {
            Storage::Fixed => ("fixed", None),
            Storage::Dynamic { block_len, parent: None, .. } => ("dynamic", Some(*block_len)),
            Storage::Dynamic { block_len, .. } => ("differencing", Some(*block_len)),
        };
        facts.push("version", "Kind", FactValue::Text(kind.into()));
        if let Some(len) = block_len {
            facts.push("block_len", "Block size", FactValue::Bytes(len.into()));
        }
        if let Some(parent) = self.parent() {
            facts.push("backing_file", "Backing file", FactValue::Text(parent.name.clone()));
        }
    }

    fn structures(&self) -> Vec<(Range<u64>, &'static str)> {
        let mut structures: Vec<_> = self.footers.iter().map(|range| (range.clone(), "footer")).collect();
        if let Storage::Dynamic { header_at, bat, .. } = &self.storage {
            structures.push((range_at(*header_at, size_of::<DynamicHeader>() as u64), "header"));
            // Ends with its last sector.
            let end = bat.end.checked_next_multiple_of(SECTOR_LEN).unwrap_or(bat.end);
            structures.push((bat.start..end, "block table"));
        }
        structures
    }
}

/// Calls `visit` for the sectors of a part of a block, which is stored at `at`: written ones, and
/// unwritten ones as holes.
fn each_written(
    table: &Table,
    block_len: u64,
    part: Range<u64>,
    at: u64,
    visit: &mut Visit<'_>,
) -> Result<bool> {
    let within = |position: u64| position.remainder(block_len);
    let bitmap_len = bitmap_len(u32_of(block_len));
    let bitmap_at = at.minus(within(part.start)).minus(bitmap_len);
    let is_written = |position: u64| -> Result<bool> {
        let sector = within(position) / SECTOR_LEN;
        let [byte] = table.entry(bitmap_at.plus(sector / 8))?;
        Ok(byte & (0x80 >> (sector % 8)) != 0)
    };
    let mut start = part.start;
    while start < part.end {
        let (own, mut end) = (is_written(start)?, start);
        while end < part.end && is_written(end)? == own {
            end = (end / SECTOR_LEN).plus(1).times(SECTOR_LEN).min(part.end);
        }
        let stored = Place::Stored(at.plus(start.minus(part.start)));
        if !visit(start..end, if own { stored } else { Place::Hole })? {
            return Ok(false);
        }
        start = end;
    }
    Ok(true)
}
