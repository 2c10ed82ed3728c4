//! From the first sectors of a disk, or its last ones, to a checked [`Table`].
//!
//! Owns the choice between the two kinds, and what is not taken for a table: boot sectors of file systems look like one.

use crate::corruption::Corruption;
use crate::{gpt, mbr};
use packfs_core::{Image, Result};
use std::ops::Range;

/// One partition, wherever it says to be; only what is asked for has to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    /// As Linux counts: rows of the table, and logical ones from 5 on.
    pub(crate) number: u32,
    /// Where it starts on the disk, in bytes.
    pub(crate) start: u64,
    /// Its length in bytes.
    pub(crate) len: u64,
    pub(crate) kind: Kind,
    /// The name that a GPT gives it; empty if none.
    pub(crate) label: String,
    /// Whether it is the one to boot from.
    pub(crate) boots: bool,
}

impl Partition {
    /// What its file is called.
    pub(crate) fn file_name(&self) -> String {
        format!("p{}", self.number)
    }

    /// Where it ends on the disk; what cannot be is behind everything.
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.len)
    }
}

/// What a partition is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A byte of an MBR.
    Mbr(u8),
    /// Kind and own GUID of a row of a GPT.
    Gpt { kind: [u8; 16], guid: [u8; 16] },
}

/// Which kind of table there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableKind {
    Mbr { disk_id: u32 },
    Gpt { disk_guid: [u8; 16], backup_at: u64, is_backup: bool },
}

/// A table that was read.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) kind: TableKind,
    /// Bytes of a sector, in which the table counts.
    pub(crate) sector_len: u64,
    pub(crate) partitions: Vec<Partition>,
    /// Where the table itself lies, and what each part of it is.
    pub(crate) structures: Vec<(Range<u64>, &'static str)>,
    /// What was wrong, and was got around.
    pub(crate) faults: Vec<Corruption>,
}

impl Table {
    /// Reads and checks.
    ///
    /// Errors: `Corrupt` if there is none, or both headers of a GPT are damaged; `Io`.
    pub(crate) fn read(image: &dyn Image) -> Result<Table> {
        if let Some(table) = gpt::read(image)? {
            return Ok(table);
        }
        match mbr::read(image)? {
            Some(table) => Ok(table),
            None => Err(Corruption::Signature.into()),
        }
    }
}

/// See [`packfs_format::Format::probe`].
pub(crate) fn looks_like_table(image: &dyn Image) -> Result<bool> {
    Ok(gpt::is_there(image)? || mbr::is_there(image)?)
}
