//! Tables of partitions, of either kind.

use crate::corruption::Corruption;
use std::ops::Range;

/// One partition, wherever it says to be; only what is requested has to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    /// Its number as Linux counts: rows of the table, and logical partitions from 5 on.
    pub(crate) number: u32,
    /// Its start on the disk, in bytes.
    pub(crate) start: u64,
    /// Its length in bytes.
    pub(crate) len: u64,
    pub(crate) kind: Kind,
    /// The name that a GPT gives it; empty if none.
    pub(crate) label: String,
    /// Set for the partition to boot from.
    pub(crate) boots: bool,
}

impl Partition {
    /// Returns the name of its file.
    pub(crate) fn file_name(&self) -> String {
        format!("p{}", self.number)
    }

    /// Returns its end on the disk; `u64::MAX` if that overflows.
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.len)
    }
}

/// Type of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A byte of an MBR.
    Mbr(u8),
    /// Kind and own GUID of a row of a GPT.
    Gpt { kind: [u8; 16], guid: [u8; 16] },
}

/// Type of a partition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableKind {
    Mbr { disk_id: u32 },
    Gpt { disk_guid: [u8; 16], alternate_lba: u64, is_backup: bool },
}

/// A table that was read.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) kind: TableKind,
    /// Bytes of a sector, in which the table counts.
    pub(crate) sector_len: u64,
    pub(crate) partitions: Vec<Partition>,
    /// Ranges of the table itself, and the name of each.
    pub(crate) structures: Vec<(Range<u64>, &'static str)>,
    /// Faults that reading worked around.
    pub(crate) faults: Vec<Corruption>,
    /// Set for an MBR with a sound GPT behind it, which does not count.
    pub(crate) ignores_gpt: bool,
}
