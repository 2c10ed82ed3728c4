//! Contradictions in an image though all that is asked of it can be read: numbers of inodes, tables
//! that nothing uses.

use crate::data::check_fragment;
use crate::place::Place;
use crate::raw::RawInode;
use crate::records::Records;
use crate::table::Table;
use packfs_core::{Error, ErrorKind, Result};

/// Tells whether an inode has a number that none has. See [`packfs_format::Inode::doubt`].
pub(crate) fn number_doubt<R: Records>(records: &R, raw: &RawInode) -> Option<&'static str> {
    let is_wrong = records.shape().has_numbers && !(1..=records.layout().inode_count).contains(&raw.number);
    is_wrong.then_some("an inode number of 0, or above the number of inodes in the superblock")
}

/// Reads all tables, `others` besides those that all generations have. See
/// [`packfs_format::Volume::whole_fault`].
///
/// # Errors
/// `Io`.
pub(crate) fn tables_fault<R: Records>(records: &R, others: &[&Table]) -> Result<Option<Error>> {
    let fragments = records.each_fragment_row(|_, row| {
        check_fragment(records, row, Place::at("fragment", row.start_block)).map(drop)
    });
    let tables = records.layout().export.iter().chain(others.iter().copied());
    let read = tables.fold(fragments, |read, table| {
        read.and_then(|()| table.each_row(records.metadata(), |_, _: u8| Ok(())))
    });
    match read {
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(Some(error)),
        read => read.map(|()| None),
    }
}
