//! Opening: superblock, journal, root directory, and warnings.

use crate::disk::MmpStruct;
use crate::features::{Features, HAS_JOURNAL, JOURNAL_DEV, RECOVER};
use crate::journal;
use crate::reader::Reader;
use crate::super_block::{ROOT, STATE_ERRORS, SuperBlock};
use crate::volume::ExtVolume;
use packfs_core::{Error, Image, Result};
use packfs_format::check::Tally;
use packfs_format::{Opening, structure};
use std::sync::Arc;

/// `mmp_seq` of a filesystem that is not mounted (`EXT4_MMP_SEQ_CLEAN`).
const MMP_CLEAN: u32 = 0xff4d_4d50;
const MMP_MAGIC: u32 = 0x004d_4d50;

pub(crate) fn open(image: Arc<dyn Image>, opening: &Opening) -> Result<ExtVolume> {
    let raw = crate::super_block::read_raw(&*image)?;
    if Features::of(&raw).needs(JOURNAL_DEV) {
        let error = Error::unsupported("ext4 image", "the journal of another filesystem, which has no files");
        return Err(error.hint("name it with --device when the filesystem itself is opened"));
    }
    let super_block = SuperBlock::read(&*image)?;
    let mut warnings = Vec::new();
    let mut reader = Reader::new(Arc::clone(&image), super_block);
    let mut replayed = None;
    if reader.super_block.features.needs(RECOVER) && reader.super_block.features.has(HAS_JOURNAL) {
        if opening.no_journal {
            warnings.push("the journal was not replayed: recent changes may be missing or half done".into());
        } else if let Some(found) = journal::replay(&reader, &opening.devices)? {
            warnings.extend(found.warnings());
            reader = Reader::new(Arc::clone(&found.image), found.super_block);
            reader.patches = found.patches;
            replayed = Some(found.image);
        }
    }
    reader.dir(u64::from(ROOT))?;
    warnings.extend(reader.doubts()?);
    Ok(ExtVolume::new(reader, replayed, warnings))
}

impl Reader {
    /// Returns warnings about the whole filesystem.
    fn doubts(&self) -> Result<Vec<String>> {
        let super_block = &self.super_block;
        let mut found = Vec::new();
        if super_block.raw.s_state.get() & STATE_ERRORS != 0 {
            found.push("Linux found errors in the filesystem; e2fsck repairs them".into());
        }
        let len = self.image.len();
        let wanted = super_block.offset(super_block.block_count);
        if len < wanted {
            found.push(format!("the image has {len} bytes of {wanted}: files at its end are missing"));
        }
        found.extend(self.wrong_descriptors());
        if let Some(bytes) = super_block.mmp_block().and_then(|block| self.block(block).ok())
            && structure(&bytes, 0).is_some_and(|mmp: MmpStruct| {
                mmp.mmp_magic.get() == MMP_MAGIC && mmp.mmp_seq.get() != MMP_CLEAN
            })
        {
            found.push("a host has the filesystem mounted, or did not unmount it".into());
        }
        Ok(found)
    }

    fn wrong_descriptors(&self) -> Option<String> {
        let mut wrong = Tally::default();
        for group in 0..self.super_block.group_count {
            // Descriptors after the end of the image cannot be read.
            let Ok(fault) = self.group_fault(group) else { break };
            if let Some(fault) = fault {
                wrong.add(|| fault.to_string());
            }
        }
        wrong.one_line("group descriptors with a wrong checksum, used as Linux does")
    }
}
