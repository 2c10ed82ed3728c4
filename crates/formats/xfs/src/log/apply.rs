//! Changes of committed transactions, applied in the order of `xlog_recover_commit_trans` of Linux.

use super::format::{CANCEL, Format, INODES};
use super::state::{BUFFER, Replay};
use super::transaction::Item;
use crate::corruption::Corruption;
use packfs_core::Result;
use packfs_format::units::*;

const INODE: u16 = 0x123b;
const NEW_INODES: u16 = 0x123f;
/// Types that do not affect names or data: freed extents, owners, shared blocks, quotas, and items
/// of old kernels.
const WITHOUT_EFFECT: [u16; 14] = [
    0x1236, 0x1237, 0x1238, 0x123d, 0x123e, 0x1240, 0x1241, 0x1242, 0x1243, 0x124a, 0x124b, 0x124c, 0x124d,
    0x124e,
];
const LAST_WITHOUT_EFFECT: u16 = 0x124f;

impl Replay<'_> {
    /// Applies a transaction: blocks first, then inodes, next pointers in inodes, and blocks freed.
    pub(super) fn transaction(&mut self, lsn: u64, items: &[Item]) -> Result<()> {
        let mut ranks = Vec::with_capacity(items.len());
        for item in items {
            ranks.push(rank(item)?);
        }
        for wanted in 0..=3 {
            for (item, _) in items.iter().zip(&ranks).filter(|(_, rank)| **rank == wanted) {
                self.item(item, lsn)?;
            }
        }
        self.transactions = self.transactions.plus(1);
        Ok(())
    }

    fn item(&mut self, item: &Item, lsn: u64) -> Result<()> {
        match item.kind()? {
            BUFFER => self.buffer(item, lsn),
            INODE => self.inode(item, lsn),
            NEW_INODES => self.new_inodes(item),
            kind if WITHOUT_EFFECT.contains(&kind) || kind == LAST_WITHOUT_EFFECT => Ok(()),
            kind => {
                if self.intents.take(kind, item)? {
                    Ok(())
                } else {
                    Err(Corruption::LogItemType { found: kind }.into())
                }
            }
        }
    }
}

/// Order of an item within its transaction.
fn rank(item: &Item) -> Result<u8> {
    Ok(match item.kind()? {
        BUFFER => match Format::parse(item)?.flags {
            flags if flags & CANCEL != 0 => 3,
            flags if flags & INODES != 0 => 2,
            _ => 0,
        },
        NEW_INODES => 0,
        _ => 1,
    })
}
