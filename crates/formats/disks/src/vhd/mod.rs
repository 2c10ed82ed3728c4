//! VHD, the disks of Virtual PC, Hyper-V, and Azure: fixed ones are the disk with a footer, dynamic
//! ones a table of blocks.

mod corruption;
mod disk;

use crate::table::{Table, each_block};
use crate::volume::{DiskVolume, Map, Place, Visit};
use crate::{not_written, unsupported};
use corruption::Corruption;
use disk::*;
use packfs_core::{Image, Result, range_at};
use packfs_format::check::Report;
use packfs_format::{FactValue, Facts, Format, FormatInfo, Magic, PackFormat, PackSettings, Volume};
use std::mem::size_of;
use std::ops::Range;
use std::sync::Arc;
use zerocopy::{FromZeros, IntoBytes};

const FOOTER_LEN: u64 = size_of::<Footer>() as u64;
const SECTOR_LEN: u64 = 512;

/// Dynamic disks begin with a copy of the footer. Fixed ones are found by their end alone.
static MAGICS: [Magic; 1] = [Magic { bytes: &COOKIE, at: 0 }];

/// Disks of Virtual PC and Hyper-V.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vhd;

static INFO: FormatInfo =
    FormatInfo { name: "vhd", extensions: &["vhd", "vpc"], magics: &MAGICS, ..FormatInfo::EMPTY };

impl Format for Vhd {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, image: &dyn Image) -> Result<bool> {
        Ok(footer(image, 0)?.is_some() || footer_at_end(image)?.is_some())
    }

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        let name = image.name();
        let map = Blocks::read(&image).map_err(|error| error.at(name))?;
        Ok(Box::new(DiskVolume::new(image, map)))
    }

    fn packer(&self, _settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
        not_written("vhd", "qemu-img convert -O vpc")
    }
}

/// The footer, or its copy, at `at`; `None` if none is there.
fn footer(image: &dyn Image, at: u64) -> Result<Option<Footer>> {
    let mut footer = Footer::new_zeroed();
    // Old programs left out the last byte of a footer, which is zero.
    if range_at(at, FOOTER_LEN - 1).end > image.len() {
        return Ok(None);
    }
    image.read_at(at, footer.as_mut_bytes())?;
    Ok(Some(footer).filter(|footer| footer.cookie == COOKIE))
}

/// The footer at the end, and its offset.
fn footer_at_end(image: &dyn Image) -> Result<Option<(u64, Footer)>> {
    for len in [FOOTER_LEN, FOOTER_LEN - 1] {
        let Some(at) = image.len().checked_sub(len) else { return Ok(None) };
        if let Some(footer) = footer(image, at)? {
            return Ok(Some((at, footer)));
        }
    }
    Ok(None)
}

/// The checksum of a structure, in which its own field counts as zeros.
fn checksum(bytes: &[u8], field: Range<usize>) -> u32 {
    let counted = bytes.iter().enumerate().filter(|(at, _)| !field.contains(at));
    !counted.fold(0_u32, |sum, (_, byte)| sum.wrapping_add(u32::from(*byte)))
}

fn is_sound(footer: &Footer) -> bool {
    footer.checksum.get() == checksum(footer.as_bytes(), FOOTER_CHECKSUM)
}

/// The way a disk is stored.
enum Storage {
    Fixed,
    Dynamic { header_at: u64, table: Table, bat: Range<u64>, block_len: u32 },
}

/// The map of an image.
struct Blocks {
    storage: Storage,
    disk_len: u64,
    image_len: u64,
    /// Places of the footer and its copy, as far as they are there.
    footers: Vec<Range<u64>>,
    fault: Option<&'static str>,
    /// The copy of the footer is damaged.
    copy_fault: bool,
}

impl Blocks {
    /// Reads and checks footer and header.
    ///
    /// Errors: `Corrupt`, `Unsupported` for differences to another disk, `Io`.
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
                let (found, computed) = (footer.checksum.get(), checksum(footer.as_bytes(), FOOTER_CHECKSUM));
                return Err(Corruption::FooterChecksum { found, computed }.into());
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
            DYNAMIC => dynamic(image, chosen.data_offset.get(), disk_len)?,
            DIFFERENCING => return Err(unsupported("vhd image", "the difference to another disk (type 4)")),
            found => return Err(Corruption::DiskType { found }.into()),
        };
        let copy_fault = match storage {
            Storage::Fixed => false,
            Storage::Dynamic { .. } => !at_start.is_some_and(|copy| is_sound(&copy)),
        };
        Ok(Blocks { storage, disk_len, image_len, footers, fault, copy_fault })
    }

    fn place(&self, table: &Table, bat: &Range<u64>, block_len: u32, block: u64) -> Result<Place> {
        let sector = u32::from_be_bytes(table.entry(bat.start.saturating_add(block.saturating_mul(4)))?);
        if sector == NO_BLOCK {
            return Ok(Place::Hole);
        }
        let at = u64::from(sector).saturating_mul(SECTOR_LEN).saturating_add(bitmap_len(block_len));
        let len = u64::from(block_len);
        let needed = len.min(self.disk_len.saturating_sub(block.saturating_mul(len)));
        Ok(match range_at(at, needed).end > self.image_len {
            true => Place::Fault(Corruption::BlockPlace { block, at, limit: self.image_len }.into()),
            false => Place::Stored(at),
        })
    }
}

/// Length of the bitmap before a block, which says which sectors were written; the others are zeros
/// in the block, too.
fn bitmap_len(block_len: u32) -> u64 {
    u64::from(block_len / 512).div_ceil(8).next_multiple_of(SECTOR_LEN)
}

fn dynamic(image: &Arc<dyn Image>, at: u64, disk_len: u64) -> Result<Storage> {
    let limit = image.len();
    let mut header = DynamicHeader::new_zeroed();
    if range_at(at, size_of::<DynamicHeader>() as u64).end > limit {
        return Err(Corruption::HeaderPlace { at, limit }.into());
    }
    image.read_exact_at(at, header.as_mut_bytes())?;
    if header.cookie != DYNAMIC_COOKIE {
        return Err(Corruption::HeaderSignature { at }.into());
    }
    let (found, computed) = (header.checksum.get(), checksum(header.as_bytes(), HEADER_CHECKSUM));
    if found != computed {
        return Err(Corruption::HeaderChecksum { at, found, computed }.into());
    }
    let block_len = header.block_size.get();
    if !block_len.is_power_of_two() || !(512..=1 << 28).contains(&block_len) {
        return Err(Corruption::BlockSize { found: block_len }.into());
    }
    let rows = u64::from(header.max_table_entries.get());
    let room = rows.saturating_mul(block_len.into());
    if disk_len > room {
        return Err(Corruption::DiskLength { found: disk_len, room }.into());
    }
    let bat = range_at(header.table_offset.get(), rows.saturating_mul(4));
    if bat.end > limit {
        return Err(Corruption::TableEnd { at: bat.start, rows, limit }.into());
    }
    Ok(Storage::Dynamic { header_at: at, table: Table::new(Arc::clone(image)), bat, block_len })
}

impl Map for Blocks {
    fn format(&self) -> &'static FormatInfo {
        &INFO
    }

    fn disk_len(&self) -> u64 {
        self.disk_len
    }

    fn each(&self, range: Range<u64>, visit: &mut Visit<'_>) -> Result<()> {
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

    fn owned(&self, at: u64, len: u64) -> Range<u64> {
        match &self.storage {
            Storage::Fixed => range_at(at, len),
            // Blocks are whole sectors, also the last one, before the footer.
            Storage::Dynamic { block_len, .. } => {
                let end = self.footers.last().map_or(u64::MAX, |footer| footer.start);
                let whole = range_at(at, (*block_len).into());
                let end = if whole.start < end { whole.end.min(end) } else { whole.end };
                at.saturating_sub(bitmap_len(*block_len))..end
            }
        }
    }

    fn add_facts(&self, facts: &mut Facts) {
        let (kind, block_len) = match &self.storage {
            Storage::Fixed => ("fixed", None),
            Storage::Dynamic { block_len, .. } => ("dynamic", Some(*block_len)),
        };
        facts.push("version", "Kind", FactValue::Text(kind.into()));
        if let Some(len) = block_len {
            facts.push("block_len", "Block size", FactValue::Bytes(len.into()));
        }
    }

    fn structures(&self) -> Vec<(Range<u64>, &'static str)> {
        let mut structures: Vec<_> = self.footers.iter().map(|range| (range.clone(), "footer")).collect();
        if let Storage::Dynamic { header_at, bat, .. } = &self.storage {
            structures.push((range_at(*header_at, size_of::<DynamicHeader>() as u64), "header"));
            // It ends with its last sector.
            let end = bat.end.checked_next_multiple_of(SECTOR_LEN).unwrap_or(bat.end);
            structures.push((bat.start..end, "block table"));
        }
        structures
    }

    fn warnings(&self) -> Vec<String> {
        self.fault.iter().map(|fault| format!("footer: {fault}")).collect()
    }

    fn check(&self, report: &mut Report<'_>) -> Result<()> {
        if let Some(fault) = self.fault {
            report.error("footer", fault);
        }
        if self.copy_fault {
            report.warn("copy of the footer", "it is damaged or missing");
        }
        Ok(())
    }
}
