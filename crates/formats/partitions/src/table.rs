//! Partition tables of either kind.

use crate::corruption::Corruption;
use packfs_format::units::*;
use std::ops::Range;

/// A partition as stored; it need not be within the disk until it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    /// Number as in Linux: rows of the table, and logical partitions from 5 on.
    pub(crate) number: u32,
    pub(crate) start: u64,
    pub(crate) len: u64,
    pub(crate) kind: Kind,
    /// Name in a GPT; may be empty.
    pub(crate) label: String,
    pub(crate) boots: bool,
}

impl Partition {
    pub(crate) fn file_name(&self) -> String {
        format!("p{}", self.number)
    }

    /// End on the disk; `u64::MAX` on overflow.
    pub(crate) fn end(&self) -> u64 {
        end_of(self.start, self.len)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Type byte of an MBR.
    Mbr(u8),
    /// Type and unique GUID of a row of a GPT.
    Gpt { kind: [u8; 16], guid: [u8; 16] },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableKind {
    Mbr { disk_id: u32 },
    Gpt { disk_guid: [u8; 16], alternate_lba: u64, is_backup: bool },
}

#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) kind: TableKind,
    /// Length of a sector, the unit of the table.
    pub(crate) sector_len: u64,
    pub(crate) partitions: Vec<Partition>,
    /// Ranges of the table itself, with their names.
    pub(crate) structures: Vec<(Range<u64>, &'static str)>,
    /// Faults that reading worked around.
    pub(crate) faults: Vec<Corruption>,
    /// Set for an MBR with a valid but ignored GPT.
    pub(crate) ignores_gpt: bool,
}
