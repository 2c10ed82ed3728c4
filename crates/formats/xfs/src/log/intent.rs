//! Intents: changes in several steps, whose remaining steps follow the replay. Only three kinds
//! concern names and data: mappings (`BUI`), attributes (`ATTRI`), and exchanged files (`XMI`).

use super::transaction::Item;
use crate::disk::{le16, le32, le64};
use std::collections::HashMap;

/// Types of intents; that of their end is the next one.
const MAPPING: u16 = 0x1244;
const ATTR: u16 = 0x1246;
const EXCHANGE: u16 = 0x1248;
/// Most intents that are kept.
const COUNT_MAX: usize = 4096;

/// Change of the mapping of a file: `count` blocks from `offset` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Remap {
    pub(crate) ino: u64,
    pub(crate) start: u64,
    pub(crate) offset: u64,
    pub(crate) count: u64,
    pub(crate) is_mapped: bool,
    pub(crate) is_unwritten: bool,
    pub(crate) is_attr: bool,
}

/// Exchange of mappings of two files, from a block of each on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) inos: [u64; 2],
    pub(crate) offsets: [u64; 2],
    pub(crate) count: u64,
    pub(crate) flags: u64,
    pub(crate) sizes: [u64; 2],
}

/// Change that was begun and not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    Mapping(Vec<Remap>),
    Exchange(Exchange),
    /// Attribute of an inode.
    Attr {
        ino: u64,
    },
}

/// Intents whose ends were not met.
#[derive(Default)]
pub(super) struct Intents {
    open: HashMap<(u16, u64), (u64, Intent)>,
    count: u64,
    /// Intents that were not kept.
    pub(super) left_out: u64,
}

impl Intents {
    /// Takes an intent, or the end of one. Returns false for other types.
    pub(super) fn take(&mut self, kind: u16, item: &Item) -> bool {
        let bytes = item.region(0);
        let id = le64(bytes, 8);
        let intent = match kind {
            MAPPING => Some(Intent::Mapping(remaps(bytes))),
            EXCHANGE => Some(Intent::Exchange(exchange(bytes))),
            // Pointers to parents are not shown.
            ATTR if !(4..=6).contains(&(le32(bytes, 24) & 0xff)) => {
                Some(Intent::Attr { ino: le64(bytes, 16) })
            }
            ATTR => None,
            end if [MAPPING, ATTR, EXCHANGE].contains(&(end & !1)) => {
                self.open.remove(&(end & !1, id));
                None
            }
            _ => return false,
        };
        if let Some(intent) = intent {
            match self.open.len() < COUNT_MAX {
                true => {
                    self.count = self.count.saturating_add(1);
                    self.open.insert((kind, id), (self.count, intent));
                }
                false => self.left_out = self.left_out.saturating_add(1),
            }
        }
        true
    }

    /// Returns the intents without an end, in their order.
    pub(super) fn unfinished(self) -> Vec<Intent> {
        let mut open: Vec<_> = self.open.into_values().collect();
        open.sort_unstable_by_key(|(number, _)| *number);
        open.into_iter().map(|(_, intent)| intent).collect()
    }
}

fn remaps(bytes: &[u8]) -> Vec<Remap> {
    let extents = bytes.get(16..).unwrap_or_default().chunks_exact(32);
    let count = usize::from(le16(bytes, 4));
    extents
        .take(count)
        .map(|extent| {
            let flags = le32(extent, 28);
            Remap {
                ino: le64(extent, 0),
                start: le64(extent, 8),
                offset: le64(extent, 16),
                count: le32(extent, 24).into(),
                is_mapped: flags & 0xff == 1,
                is_unwritten: flags >> 30 & 1 == 1,
                is_attr: flags >> 31 == 1,
            }
        })
        .collect()
}

fn exchange(bytes: &[u8]) -> Exchange {
    Exchange {
        inos: [le64(bytes, 16), le64(bytes, 24)],
        offsets: [le64(bytes, 40), le64(bytes, 48)],
        count: le64(bytes, 56),
        flags: le64(bytes, 64),
        sizes: [le64(bytes, 72), le64(bytes, 80)],
    }
}
