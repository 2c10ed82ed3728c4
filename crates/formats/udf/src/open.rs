//! Opening: from the anchors and volume descriptors to the root directory.

use crate::blocks::Blocks;
use crate::corruption::Corruption;
use crate::descriptors::{Anchor, Integrity, Logical, Sequence, find_anchors, text_of};
use crate::disk::*;
use crate::entry::{FileEntry, extent_addr};
use crate::maps::{Addr, Map, RawMap, Reader, Run, read_maps};
use crate::recognition::Recognition;
use crate::volume::UdfVolume;
use packfs_core::{Error, FileType, Image, Result};
use packfs_format::structure;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Newest supported revision.
const REVISION_MAX: u16 = 0x260;
/// Hint for an image of two formats that cannot be opened as UDF.
const BRIDGE: &str =
    "the image also has an ISO 9660 filesystem, maybe of other files: --part iso9660 opens it";

pub(crate) fn open(image: Arc<dyn Image>) -> Result<UdfVolume> {
    let recognition = Recognition::read(&*image)?;
    let is_bridge = recognition.has(CD001);
    opened(image, recognition).map_err(|error| if is_bridge { error.hint(BRIDGE) } else { error })
}

fn opened(image: Arc<dyn Image>, recognition: Recognition) -> Result<UdfVolume> {
    let (blocks, anchors) = find_anchors(&image)?;
    let (sequence, mut warnings) = choose_sequence(&blocks, &anchors)?;
    let (primary, logical) = sequence.whole()?;
    let (primary, logical) = (*primary, logical.clone());
    let block_len = logical.descriptor.logical_block_size.get();
    if block_len != blocks.block_len {
        let (place, wanted) = (logical.place, blocks.block_len);
        return Err(Corruption::BlockLength { place, found: block_len, wanted }.into());
    }
    let integrity = Integrity::read(&blocks, logical.descriptor.integrity_seq_ext)?;
    check_revision(&logical, &integrity)?;
    let raw = read_maps(&blocks, &logical, &sequence.partitions)?;
    let mut reader = Reader { blocks, maps: Vec::new(), has_used_mirror: AtomicBool::new(false) };
    for raw in raw {
        let map = reader.map(raw, &mut warnings)?;
        reader.maps.push(map);
    }
    let (file_set_at, file_set) = file_set(&reader, &logical)?;
    let root: Addr = file_set.root_directory_icb.ext_location.into();
    reader.entry(root)?.wanted(FileType::Directory)?;
    Ok(UdfVolume {
        reader,
        recognition,
        anchors,
        primary,
        logical,
        partitions: sequence.partitions,
        integrity,
        file_set,
        file_set_at,
        root,
        warnings,
        seen: crate::volume::Seen::default(),
        names: packfs_format::NameIndex::default(),
    })
}

/// Returns the main sequence of an anchor, or the reserve if that is damaged.
fn choose_sequence(blocks: &Blocks, anchors: &[Anchor]) -> Result<(Sequence, Vec<String>)> {
    let mut first_fault = None;
    for (_, anchor) in anchors {
        for extent in [anchor.main_vol_desc_seq_ext, anchor.reserve_vol_desc_seq_ext] {
            let sequence = Sequence::read(blocks, extent)?;
            let fault = sequence.whole().err();
            let Some(fault) = fault else {
                let told = first_fault.as_ref().map(text_of);
                let warning = |fault| format!("{fault}; the reserve sequence is used");
                return Ok((sequence, told.into_iter().map(warning).collect()));
            };
            first_fault = first_fault.or(Some(fault));
        }
    }
    Err(first_fault.unwrap_or_else(|| Corruption::Anchor.into()))
}

fn check_revision(logical: &Logical, integrity: &Integrity) -> Result<()> {
    let needed = integrity.counts.map_or(0, |counts| counts.min_udf_read_rev.get());
    let known = logical.descriptor.domain_ident.is(ID_COMPLIANT);
    if needed <= REVISION_MAX && known {
        return Ok(());
    }
    let what = if known {
        format!("revision {needed:x} of UDF; those up to {REVISION_MAX:x} are read")
    } else {
        "a logical volume of another domain than \"*OSTA UDF Compliant\"".to_owned()
    };
    Err(Error::unsupported("udf image", what))
}

fn file_set(reader: &Reader, logical: &Logical) -> Result<(u64, FileSetDesc)> {
    let addr = extent_addr(logical.descriptor.logical_vol_contents_use);
    let addr = addr.ok_or(Corruption::Missing { what: "file set descriptor" })?;
    let (place, bytes) = reader.tagged("file set descriptor", addr, &[FSD])?;
    let file_set = structure(&bytes, 0).ok_or(Corruption::Missing { what: "file set descriptor" })?;
    Ok((place.at, file_set))
}

impl Reader {
    /// Reads the parts of a map that are in files of earlier partitions.
    fn map(&self, raw: RawMap, warnings: &mut Vec<String>) -> Result<Map> {
        match raw {
            RawMap::Whole(map) => Ok(map),
            RawMap::Virtual { of, is_old } => {
                let (table, places) = self.virtual_table(of, is_old)?;
                Ok(Map::Virtual { of, table, places })
            }
            RawMap::Metadata { of, files } => {
                let main = self.metadata_runs(of, files.metadata_file_loc.get());
                let mirror = self.metadata_runs(of, files.metadata_mirror_file_loc.get());
                if let (Err(fault), Ok(_)) = (&main, &mirror) {
                    warnings.push(format!("metadata file: {}; its mirror is used", text_of(fault)));
                }
                let (main, mirror) = match (main, mirror) {
                    (Err(fault), Err(_)) => return Err(fault),
                    (main, mirror) => (main.unwrap_or_default(), mirror.unwrap_or_default()),
                };
                Ok(Map::Metadata { of, main, mirror, files })
            }
        }
    }

    pub(crate) fn metadata_entry(&self, of: u16, block: u32) -> Result<FileEntry> {
        self.entry(Addr { partition: of, block })
    }

    fn metadata_runs(&self, of: u16, block: u32) -> Result<Vec<Run>> {
        let entry = self.metadata_entry(of, block)?;
        match entry.head.icb_tag.file_type {
            TYPE_MAIN | TYPE_MIRROR => self.runs(&entry),
            _ => Err(Corruption::Kind { place: entry.place, wanted: "metadata file" }.into()),
        }
    }
}
