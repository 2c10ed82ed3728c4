//! Intents: multi-step changes, finished after the replay. Three kinds concern names and data:
//! mappings (`BUI`), attributes (`ATTRI`), and exchanged files (`XMI`).

use super::transaction::Item;
use crate::corruption::Corruption;
use crate::disk::log::{AttriLogFormat, IntentHead, MapExtent, XmiLogFormat};
use packfs_core::{Result, usize_of};
use packfs_format::{structures, units::*};
use std::collections::HashMap;

/// Types of intents; the type of the done item is one higher.
const MAPPING: u16 = 0x1244;
const ATTR: u16 = 0x1246;
const EXCHANGE: u16 = 0x1248;
const COUNT_MAX: usize = 4096;

/// Change of a file's mapping: `count` blocks from `offset` on.
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

/// Exchange of mappings of two files, with a start block in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) inos: [u64; 2],
    pub(crate) offsets: [u64; 2],
    pub(crate) count: u64,
    pub(crate) flags: u64,
    pub(crate) sizes: [u64; 2],
}

/// A change that was started and not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    Mapping(Vec<Remap>),
    Exchange(Exchange),
    Attr { ino: u64 },
}

/// Intents without a done item.
#[derive(Default)]
pub(super) struct Intents {
    open: HashMap<(u16, u64), (u64, Intent)>,
    count: u64,
    /// Number of intents beyond the limit.
    pub(super) left_out: u64,
}

impl Intents {
    /// Records an intent, or removes a finished one; false for other types.
    pub(super) fn take(&mut self, kind: u16, item: &Item) -> Result<bool> {
        if !(MAPPING..=EXCHANGE | 1).contains(&kind) {
            return Ok(false);
        }
        let head: IntentHead = item.head("intent")?;
        let id = head.id.get();
        let intent = match kind {
            MAPPING => Some(Intent::Mapping(remaps(item, &head)?)),
            EXCHANGE => Some(Intent::Exchange(exchange(item)?)),
            ATTR => {
                let raw: AttriLogFormat = item.head("attribute")?;
                // Pointers to parents are hidden.
                let is_shown = !(4..=6).contains(&(raw.alfi_op_flags.get() & 0xff));
                is_shown.then_some(Intent::Attr { ino: raw.alfi_ino.get() })
            }
            end => {
                self.open.remove(&(end & !1, id));
                None
            }
        };
        if let Some(intent) = intent {
            if self.open.len() < COUNT_MAX {
                self.count = self.count.plus(1);
                self.open.insert((kind, id), (self.count, intent));
            } else {
                self.left_out = self.left_out.plus(1)
            }
        }
        Ok(true)
    }

    pub(super) fn unfinished(self) -> Vec<Intent> {
        let mut open: Vec<_> = self.open.into_values().collect();
        open.sort_unstable_by_key(|(number, _)| *number);
        open.into_iter().map(|(_, intent)| intent).collect()
    }
}

fn remaps(item: &Item, head: &IntentHead) -> Result<Vec<Remap>, Corruption> {
    let (id, count) = (head.id.get(), usize_of(head.nextents.get().into()));
    let extents = item.region(0).within(size_of::<IntentHead>()..);
    let extents = structures::<MapExtent>(extents).take(count).map(|extent| {
        let flags = extent.me_flags.get();
        Remap {
            ino: extent.me_owner.get(),
            start: extent.me_startblock.get(),
            offset: extent.me_startoff.get(),
            count: extent.me_len.get().into(),
            is_mapped: flags & 0xff == 1,
            is_unwritten: flags >> 30 & 1 == 1,
            is_attr: flags >> 31 == 1,
        }
    });
    let extents: Vec<Remap> = extents.collect();
    if extents.len() < count {
        return Err(Corruption::log_item("mappings", id, "fewer mappings than it counts"));
    }
    Ok(extents)
}

fn exchange(item: &Item) -> Result<Exchange, Corruption> {
    let raw: XmiLogFormat = item.head("exchange")?;
    Ok(Exchange {
        inos: [raw.xmi_inode1, raw.xmi_inode2].map(|ino| ino.get()),
        offsets: [raw.xmi_startoff1, raw.xmi_startoff2].map(|offset| offset.get()),
        count: raw.xmi_blockcount.get(),
        flags: raw.xmi_flags.get(),
        sizes: [raw.xmi_isize1, raw.xmi_isize2].map(|size| size.get()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    /// Missing mappings and figures were taken for none and for 0.
    #[test]
    fn an_intent_that_ends_early_is_refused() {
        let (item_type, item_size) = (MAPPING.into(), 1.into());
        let head = IntentHead { item_type, item_size, nextents: 2.into(), id: 7.into() };
        let bytes = [head.as_bytes(), MapExtent::default().as_bytes()].concat();
        let taken = |len: usize| {
            let mut item = Item::default();
            item.regions.push(bytes[..len].to_vec());
            Intents::default().take(MAPPING, &item).unwrap_err().to_string()
        };
        assert!(taken(48).contains("change of mappings 7: fewer mappings than it counts"), "{}", taken(48));
        assert!(taken(12).contains("cut off"), "{}", taken(12));
    }
}
