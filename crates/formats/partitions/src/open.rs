//! Conversion of the first or last sectors of a disk to a checked [`Table`].
//!
//! Owns the choice between the two kinds, and the exclusion of boot sectors of file systems, which
//! look like a table. A GPT counts as in Linux: only if the boot record protects it, because tools
//! that write an MBR leave an older GPT in its sectors.

use crate::corruption::Corruption;
use crate::table::Table;
use crate::{gpt, mbr};
use packfs_core::{Image, Result};
use packfs_format::PartitionTable;

/// Reads and checks the table of a disk, that of the `wanted` kind if given.
///
/// Errors: `Corrupt` without a table, or if both headers of a GPT are damaged; `Io`.
pub(crate) fn read(image: &dyn Image, wanted: Option<PartitionTable>) -> Result<Table> {
    match wanted {
        Some(PartitionTable::Gpt) => gpt::read(image),
        None if gpt::is_there(image)? => gpt::read(image),
        _ => mbr_of(image, wanted.is_some()),
    }
}

/// Returns the MBR, noting a GPT that does not count.
fn mbr_of(image: &dyn Image, sure: bool) -> Result<Table> {
    let header = gpt::sound_header(image)?;
    let fault = if header.is_some() { Corruption::Unprotected } else { Corruption::Signature };
    let mut table = mbr::read(image, sure)?.ok_or(fault)?;
    table.ignores_gpt = header.is_some();
    table.structures.extend(header.map(|range| (range, "GPT header")));
    Ok(table)
}

/// See [`packfs_format::Format::probe`].
pub(crate) fn looks_like_table(image: &dyn Image) -> Result<bool> {
    Ok(gpt::is_there(image)? || mbr::is_there(image)? || gpt::sound_header(image)?.is_some())
}
