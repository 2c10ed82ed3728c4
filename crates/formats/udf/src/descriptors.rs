//! Anchors, and the sequences of volume descriptors that they refer to.

use crate::blocks::Blocks;
use crate::corruption::{Corruption, Place};
use crate::disk::*;
use packfs_core::{Error, ErrorKind, Image, Result, len_of, range_at};
use packfs_format::{structure, units::*};
use std::ops::Range;
use std::sync::Arc;

const DESCRIPTORS_MAX: u64 = 1024;
const INTEGRITY_MAX: u64 = 1024;

pub(crate) type Anchor = (u64, AnchorVolDescPtr);

/// Detects the block length: the first at which an anchor is found.
pub(crate) fn find_anchors(image: &Arc<dyn Image>) -> Result<(Blocks, Vec<Anchor>)> {
    for block_len in BLOCK_LENS {
        let blocks = Blocks::new(Arc::clone(image), block_len);
        let anchors = anchors(&blocks)?;
        if !anchors.is_empty() {
            return Ok((blocks, anchors));
        }
    }
    Err(Corruption::Anchor.into())
}

/// Possible blocks of anchors, in search order.
pub(crate) fn anchor_blocks(blocks: &Blocks) -> Vec<u64> {
    let last = left(blocks.count(), 1);
    let mut found = ANCHORS.to_vec();
    for block in [last, left(last, 256)] {
        if !found.contains(&block) {
            found.push(block);
        }
    }
    found
}

fn anchors(blocks: &Blocks) -> Result<Vec<Anchor>> {
    let mut found = Vec::new();
    for block in anchor_blocks(blocks) {
        let place = Place::at("anchor", blocks.at(block));
        let location = u32::try_from(block);
        let Ok(location) = location else { continue };
        match blocks.tagged(place, location, &[AVDP]) {
            Ok(bytes) => found.extend(structure(&bytes, 0).map(|anchor| (place.at, anchor))),
            Err(error) if error.kind() == ErrorKind::Corrupt => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Logical {
    pub(crate) place: Place,
    pub(crate) descriptor: LogicalVolDesc,
    pub(crate) maps: Vec<u8>,
}

/// Prevailing descriptors of a sequence: those with the highest number.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    pub(crate) primary: Option<PrimaryVolDesc>,
    pub(crate) logical: Option<Logical>,
    pub(crate) partitions: Vec<PartitionDesc>,
    pub(crate) extents: Vec<Range<u64>>,
    /// Reason for which reading ended early.
    pub(crate) fault: Option<Error>,
}

impl Sequence {
    /// Reads a sequence, and follows pointers to its continuation.
    pub(crate) fn read(blocks: &Blocks, extent: ExtentAd) -> Result<Sequence> {
        let mut found = Sequence::default();
        let (mut at, mut left) = found.begin(blocks, extent);
        for _ in 0..DESCRIPTORS_MAX {
            if left == 0 {
                return Ok(found);
            }
            let place = Place::at("volume descriptor", blocks.at(at));
            let bytes = match blocks.tagged(place, packfs_core::u32_of(at), &[]) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    found.fault = Some(error);
                    return Ok(found);
                }
                Err(error) => return Err(error),
            };
            (at, left) = (at.plus(1), left.minus(1));
            match structure::<Tag>(&bytes, 0).map(|tag| tag.tag_ident.get()) {
                Some(TD) => return Ok(found),
                Some(VDP) => {
                    let next: Option<VolDescPtr> = structure(&bytes, 0);
                    let Some(next) = next else { return Ok(found) };
                    (at, left) = found.begin(blocks, next.next_vol_desc_seq_ext);
                }
                Some(ident) => found.take(place, ident, &bytes),
                None => {}
            }
        }
        found.fault = Some(Corruption::SequenceLength { max: DESCRIPTORS_MAX }.into());
        Ok(found)
    }

    fn begin(&mut self, blocks: &Blocks, extent: ExtentAd) -> (u64, u64) {
        let start = u64::from(extent.ext_location.get());
        let len = u64::from(extent.ext_length.get());
        self.extents.push(range_at(blocks.at(start), len));
        (start, len.quotient(blocks.block_len.into()))
    }

    fn take(&mut self, place: Place, ident: u16, bytes: &[u8]) {
        match ident {
            PVD => {
                let next: Option<PrimaryVolDesc> = structure(bytes, 0);
                let number = |descriptor: &PrimaryVolDesc| descriptor.vol_desc_seq_num.get();
                if next.as_ref().map(number) >= self.primary.as_ref().map(number) {
                    self.primary = next;
                }
            }
            LVD => {
                let Some(descriptor) = structure::<LogicalVolDesc>(bytes, 0) else { return };
                let maps = bytes.within(size_of::<LogicalVolDesc>()..).to_vec();
                let number = descriptor.vol_desc_seq_num;
                if self.logical.as_ref().is_none_or(|before| before.descriptor.vol_desc_seq_num <= number) {
                    self.logical = Some(Logical { place, descriptor, maps });
                }
            }
            PD => {
                let Some(next) = structure::<PartitionDesc>(bytes, 0) else { return };
                let same = |before: &&mut PartitionDesc| before.partition_number == next.partition_number;
                match self.partitions.iter_mut().find(same) {
                    Some(before) if before.vol_desc_seq_num > next.vol_desc_seq_num => {}
                    Some(before) => *before = next,
                    None => self.partitions.push(next),
                }
            }
            _ => {}
        }
    }

    /// Returns the descriptors of the volume, or the reason why they are missing.
    pub(crate) fn whole(&self) -> Result<(&PrimaryVolDesc, &Logical)> {
        let missing = |what| match &self.fault {
            Some(fault) => Error::corrupt("udf image", format!("volume descriptors: {}", text_of(fault))),
            None => Corruption::Missing { what }.into(),
        };
        let logical = self.logical.as_ref().ok_or_else(|| missing("logical volume descriptor"))?;
        if self.partitions.is_empty() {
            return Err(missing("partition descriptor"));
        }
        Ok((self.primary.as_ref().ok_or_else(|| missing("primary volume descriptor"))?, logical))
    }
}

pub(crate) fn text_of(error: &Error) -> String {
    let text = error.to_string();
    text.strip_prefix("corrupt udf image: ").unwrap_or(&text).to_owned()
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Integrity {
    pub(crate) newest: Option<LogicalVolIntegrityDesc>,
    pub(crate) counts: Option<LogicalVolIntegrityDescImpUse>,
    pub(crate) extents: Vec<Range<u64>>,
    /// Reason for which reading ended early.
    pub(crate) fault: Option<String>,
}

impl Integrity {
    /// Reads the descriptors in order: each replaces those before it.
    pub(crate) fn read(blocks: &Blocks, mut extent: ExtentAd) -> Result<Integrity> {
        let mut found = Integrity::default();
        let mut left = INTEGRITY_MAX;
        while extent.ext_length.get() > 0 && left > 0 {
            let start = u64::from(extent.ext_location.get());
            let range = range_at(blocks.at(start), extent.ext_length.get().into());
            let count = len_of(&range).quotient(blocks.block_len.into());
            found.extents.push(range);
            extent = ExtentAd { ext_length: 0.into(), ext_location: 0.into() };
            for block in start..range_at(start, count.min(left)).end {
                left = left.minus(1);
                let place = Place::at("integrity descriptor", blocks.at(block));
                let location = packfs_core::u32_of(block);
                match blocks.tagged(place, location, &[]) {
                    Ok(bytes) => match found.take(&bytes) {
                        Some(next) => extent = next,
                        None => break,
                    },
                    Err(error) if error.kind() == ErrorKind::Corrupt => {
                        if found.has_lost(blocks, place, location)? {
                            found.fault = Some(text_of(&error));
                        }
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(found)
    }

    /// True if a block without a valid descriptor had one. After the last descriptor a block may
    /// contain anything, but the first is one or blank; and the image may end before.
    fn has_lost(&self, blocks: &Blocks, place: Place, location: u32) -> Result<bool> {
        if blocks.check_range(place, blocks.block_len.into()).is_err() {
            return Ok(true);
        }
        let tag = blocks.tag(place)?;
        let is_first = self.newest.is_none() && tag != Tag::default();
        Ok(is_first || tag.has_left(&[LVID, TD], location))
    }

    /// Adds a descriptor; returns the extent of its continuation, `None` at the end.
    fn take(&mut self, bytes: &[u8]) -> Option<ExtentAd> {
        let head = structure::<LogicalVolIntegrityDesc>(bytes, 0);
        let head = head.filter(|head| head.desc_tag.tag_ident.get() == LVID)?;
        // Two tables with a number for each partition.
        let tables = u64::from(head.num_of_partitions.get()).times(8);
        let at = tables.plus(size_of::<LogicalVolIntegrityDesc>() as u64);
        self.counts = structure(bytes, packfs_core::usize_of(at));
        self.newest = Some(head);
        Some(head.next_integrity_ext)
    }
}
