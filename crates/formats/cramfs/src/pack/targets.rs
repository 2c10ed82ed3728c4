//! Targets of symbolic links, stored like files: pointers, then blocks. Equal targets are stored
//! once if the links are equal in all else; Linux treats links that share their target as one.

use super::OFFSET_UNIT;
use super::bounds::{CAPABILITIES, too_large};
use crate::disk::*;
use crate::options::Options;
use packfs_codec::Encoder;
use packfs_core::{Error, NodeId, NodeKind, Owner, Result, Tree};
use packfs_format::StoredBlock;
use std::collections::HashMap;

/// A target, and the attributes that links must have in common to share it.
type Kind<'t> = (&'t [u8], Option<(u16, Owner)>);

/// Encoded targets of a tree.
#[derive(Default)]
pub(super) struct Targets {
    pub bytes: Vec<u8>,
    /// Start of each link's target in the image.
    pub places: HashMap<NodeId, u64>,
    pub block_count: u32,
    /// True if any block is stored uncompressed.
    pub has_stored: bool,
}

impl Targets {
    /// Encodes them for positions from `start` on.
    pub(super) fn new(options: &Options, tree: &Tree, start: u64) -> Result<Self> {
        let mut targets = Targets::default();
        let mut encoder = match &options.codec {
            Some(settings) => Some(packfs_codec::encoder(settings).map_err(Error::usage)?),
            None => None,
        };
        let mut known: HashMap<Kind<'_>, u64> = HashMap::new();
        for (id, node) in tree.nodes() {
            let NodeKind::Symlink(target) = &node.kind else { continue };
            if target.is_empty() {
                return Err(Error::failed(format!(
                    "{:?} is a link to nowhere, cramfs has none",
                    tree.path(id)
                )));
            }
            let key = (&**target, CAPABILITIES.sharing_key(node));
            let place = match known.get(&key) {
                Some(&place) => place,
                None => {
                    let place = targets.add(options, encoder.as_deref_mut(), target, start)?;
                    known.insert(key, place);
                    place
                }
            };
            targets.places.insert(id, place);
        }
        Ok(targets)
    }

    fn add(
        &mut self,
        options: &Options,
        mut encoder: Option<&mut (dyn Encoder + '_)>,
        target: &[u8],
        start: u64,
    ) -> Result<u64> {
        let place = start + self.bytes.len() as u64;
        let (mut blocks, mut stored) = (Vec::new(), Vec::new());
        for page in target.chunks(PAGE_LEN as usize) {
            let before = stored.len();
            let compressed = match encoder.as_deref_mut() {
                Some(encoder) => encode(encoder, page, options.extended, &mut stored)?,
                None => false,
            };
            if !compressed {
                stored.extend_from_slice(page);
            }
            self.has_stored |= !compressed;
            blocks.push(StoredBlock { stored_len: (stored.len() - before) as u32, compressed });
        }
        self.block_count += blocks.len() as u32;
        self.bytes.extend_from_slice(&pointers(options.order, place, &blocks)?);
        self.bytes.extend_from_slice(&stored);
        self.bytes.resize(self.bytes.len().next_multiple_of(OFFSET_UNIT as usize), 0);
        Ok(place)
    }
}

/// Upper bound of the expansion of an incompressible page.
const GROWTH_MAX: usize = 512;

/// Appends a compressed page; false if it is better, and permitted, to store it uncompressed.
fn encode(encoder: &mut dyn Encoder, page: &[u8], may_store: bool, out: &mut Vec<u8>) -> Result<bool> {
    let start = out.len();
    let room = if may_store { page.len() - 1 } else { page.len() + GROWTH_MAX };
    out.resize(start + room, 0);
    let len = encoder.compress(page, &mut out[start..]).map_err(Error::failed)?;
    out.truncate(start + len.unwrap_or(0));
    match len {
        None if !may_store => Err(Error::failed(format!(
            "cannot compress a link target: deflate adds more than {GROWTH_MAX} bytes to it"
        ))),
        len => Ok(len.is_some()),
    }
}

/// Returns pointers to blocks that follow them; `start` is the position of the first pointer.
///
/// Errors: `Failed` if the blocks end above the range of pointers.
pub(super) fn pointers(order: ByteOrder, start: u64, blocks: &[StoredBlock]) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(blocks.len() * POINTER_LEN as usize);
    let mut end = start + blocks.len() as u64 * u64::from(POINTER_LEN);
    for block in blocks {
        end += u64::from(block.stored_len);
        let pointer = u32::try_from(end).ok().filter(|pointer| pointer & !POINTER_MASK == 0);
        let pointer = pointer.ok_or_else(too_large)?;
        let stored = block.stored_len > 0 && !block.compressed;
        let flag = if stored { CRAMFS_BLK_FLAG_UNCOMPRESSED } else { 0 };
        bytes.extend_from_slice(&order.word_bytes(pointer | flag));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_encode_block_ends_and_stored_blocks() {
        let block = |stored_len, compressed| StoredBlock { stored_len, compressed };
        let blocks = [block(10, true), block(0, false), block(4096, false)];
        let words = [1010_u32 + 12, 1010 + 12, (5106 + 12) | 1 << 31];
        let bytes = pointers(ByteOrder::Big, 1000, &blocks).unwrap();
        assert_eq!(bytes, words.map(u32::to_be_bytes).concat());
        assert!(pointers(ByteOrder::Big, (1 << 30) - 14, &blocks[..1]).is_err());
        assert!(pointers(ByteOrder::Big, (1 << 30) - 15, &blocks[..1]).is_ok());
    }
}
