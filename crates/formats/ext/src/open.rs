//! Opening: superblock, journal, root directory, and what the user is to be told.

use crate::bytes::{le16, le32};
use crate::disk::{ROOT, STATE_ERRORS, SuperBlock};
use crate::features::{Features, HAS_JOURNAL, JOURNAL_DEV, RECOVER};
use crate::journal;
use crate::reader::Reader;
use crate::volume::ExtVolume;
use packfs_core::{Error, Image, Result};
use packfs_format::Opening;
use packfs_format::check::Tally;
use std::sync::Arc;

/// Sequence number of a filesystem that no host has mounted, under multiple mount protection.
const MMP_CLEAN: u32 = 0xff4d_4d50;
const MMP_MAGIC: u32 = 0x004d_4d50;

/// Opens an image.
pub(crate) fn open(image: Arc<dyn Image>, opening: &Opening) -> Result<ExtVolume> {
    let raw = crate::disk::read_raw(&*image)?;
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
    /// Returns warnings about the filesystem as a whole.
    fn doubts(&self) -> Result<Vec<String>> {
        let super_block = &self.super_block;
        let mut found = Vec::new();
        if le16(&super_block.raw, 0x3a) & STATE_ERRORS != 0 {
            found.push("Linux found errors in the filesystem; e2fsck repairs them".into());
        }
        let (len, wanted) = (self.image.len(), super_block.offset(super_block.block_count));
        if len < wanted {
            found.push(format!("the image has {len} bytes of {wanted}: files at its end are missing"));
        }
        found.extend(self.wrong_descriptors());
        if let Some(bytes) = super_block.mmp_block().and_then(|block| self.block(block).ok())
            && le32(&bytes, 0) == MMP_MAGIC
            && le32(&bytes, 4) != MMP_CLEAN
        {
            found.push("a host has the filesystem mounted, or did not unmount it".into());
        }
        Ok(found)
    }

    /// Returns a warning about the descriptors whose checksum is wrong.
    fn wrong_descriptors(&self) -> Option<String> {
        let mut wrong = Tally::default();
        for group in 0..self.super_block.group_count {
            // Descriptors behind the end of the image cannot be read, nor can those after them.
            let Ok(fault) = self.group_fault(group) else { break };
            if let Some(fault) = fault {
                wrong.add(|| fault.to_string());
            }
        }
        wrong.one_line("group descriptors with a wrong checksum, used as Linux does")
    }
}
