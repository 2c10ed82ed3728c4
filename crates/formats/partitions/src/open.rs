//! From the first sectors of a disk, or its last ones, to a checked [`Table`].
//!
//! Owns the choice between the two kinds, and what is not taken for a table: boot sectors of file
//! systems look like one.

use crate::corruption::Corruption;
use crate::table::Table;
use crate::{gpt, mbr};
use packfs_core::{Image, Result};

/// Reads and checks the table of a disk.
///
/// Errors: `Corrupt` if there is none, or both headers of a GPT are damaged; `Io`.
pub(crate) fn read(image: &dyn Image) -> Result<Table> {
    match gpt::read(image)? {
        Some(table) => Ok(table),
        None => mbr::read(image)?.ok_or_else(|| Corruption::Signature.into()),
    }
}

/// See [`packfs_format::Format::probe`].
pub(crate) fn looks_like_table(image: &dyn Image) -> Result<bool> {
    Ok(gpt::is_there(image)? || mbr::is_there(image)?)
}
