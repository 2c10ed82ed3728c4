//! Tables of partitions, of either kind.

use crate::corruption::Corruption;
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
