//! Contradictions in an otherwise readable image: inode numbers, and unused tables.

use crate::data::check_fragment;
use crate::place::Place;
use crate::raw::RawInode;
use crate::records::Records;
use crate::table::Table;
use packfs_core::{Error, ErrorKind, Result};

/// Reports an invalid inode number. See [`packfs_format::Inode::doubt`].
pub(crate) fn number_doubt<R: Records>(records: &R, raw: &RawInode) -> Option<&'static str> {
    let is_wrong = records.shape().has_numbers && !(1..=records.layout().inode_count).contains(&raw.number);
    is_wrong.then_some("an inode number of 0, or above the number of inodes in the superblock")
}

/// Reads all tables, including `others` that only some versions have. See
/// [`packfs_format::Health::whole_fault`].
///
/// # Errors
///
/// `Io`.
pub(crate) fn tables_fault<R: Records>(records: &R, others: &[&Table]) -> Result<Option<Error>> {
    match read_tables(records, others) {
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(Some(error)),
        read => read.map(|()| None),
    }
}

fn read_tables<R: Records>(records: &R, others: &[&Table]) -> Result<()> {
    records.each_fragment_row(|_, row| {
        check_fragment(records, row, Place::at("fragment", row.start_block)).map(drop)
    })?;
    for table in records.layout().export.iter().chain(others.iter().copied()) {
        table.each_row(records.metadata(), |_, _: u8| Ok(()))?;
    }
    Ok(())
}
