//! Reads by logical address: verified tree blocks, and data in all of its copies.

use crate::checksum::SUM_ROOM;
use crate::chunks::{Chunk, Chunks};
use crate::corruption::Corruption;
use crate::devices::Devices;
use crate::disk::tree;
use crate::key::{Key, Uuid};
use crate::node::Node;
use crate::super_block::{RootPlace, SuperBlock};
use packfs_core::{Error, ErrorKind, Result, usize_of};
use packfs_format::{BlockCache, units::*};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

const CACHE_LEN: usize = 8 << 20;
/// Limit of blocks with inline data whose generation is remembered; for others all copies are
/// compared.
const INLINE_MAX: usize = 1 << 18;

/// Expected fields of a block, from its parent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pointer {
    pub(crate) at: u64,
    pub(crate) level: u8,
    pub(crate) generation: u64,
    pub(crate) tree: u64,
    pub(crate) first: Option<Key>,
    pub(crate) end: Option<Key>,
}

/// Arguments: chunk, logical address of the part, and its range in the buffer.
type VisitPart<'a> = dyn FnMut(&Chunk, u64, std::ops::Range<usize>) -> Result<()> + 'a;

impl Pointer {
    pub(crate) fn root(tree: u64, place: RootPlace) -> Pointer {
        let RootPlace { at, level, generation } = place;
        Pointer { at, level, generation, tree, first: None, end: None }
    }

    /// Refuses a block that the pointer does not mean, such as an outdated copy.
    fn check(&self, node: &Node) -> Result<(), Corruption> {
        let at = self.at;
        let figure =
            |figure, found: u64, wanted: u64| Err(Corruption::NodeFigure { at, figure, found, wanted });
        if node.level != self.level {
            return figure("level", node.level.into(), self.level.into());
        }
        if node.generation != self.generation {
            return figure("generation", node.generation, self.generation);
        }
        if !tree::may_own(node.owner, self.tree) {
            return figure("tree", node.owner, self.tree);
        }
        let last = node.count.checked_sub(1).map(|slot| node.key(slot));
        let is_first = self.first.is_none_or(|first| node.count > 0 && node.key(0) == first);
        if !is_first || self.end.is_some_and(|end| last >= Some(end)) {
            return Err(Corruption::NodeBounds { at });
        }
        Ok(())
    }
}

pub(crate) struct Store {
    pub(crate) devices: Devices,
    pub(crate) chunks: Chunks,
    uuids: Vec<Uuid>,
    nodes: BlockCache<Node>,
    /// Generations of the blocks in which inline data was located, by address.
    inline: Mutex<HashMap<u64, u64>>,
}

impl Store {
    pub(crate) fn new(devices: Devices, chunks: Chunks) -> Store {
        let (uuids, nodes) = (devices.uuids(), BlockCache::new(CACHE_LEN));
        Store { uuids, devices, chunks, nodes, inline: Mutex::default() }
    }

    pub(crate) fn with_chunks(self, chunks: Chunks) -> Store {
        Store { chunks, ..self }
    }

    pub(crate) fn super_block(&self) -> &SuperBlock {
        self.devices.super_block()
    }

    /// Splits `len` bytes at `at` into parts that are contiguous in one chunk, and calls `visit`
    /// for each.
    pub(crate) fn parts(&self, at: u64, len: usize, visit: &mut VisitPart<'_>) -> Result<()> {
        let mut done = 0_usize;
        while done < len {
            let part_at = at.plus(done as u64);
            let chunk = self.chunks.of(part_at)?;
            let room = chunk.spot(part_at.minus(chunk.at), 0).room;
            let end = done.plus(usize_of(room)).min(len);
            if end <= done {
                return Err(Corruption::Unmapped { at: part_at }.into());
            }
            visit(chunk, part_at, done..end)?;
            done = end;
        }
        Ok(())
    }

    pub(crate) fn read_copy(&self, at: u64, copy: usize, buf: &mut [u8]) -> Result<()> {
        let len = buf.len();
        self.parts(at, len, &mut |chunk, part_at, range| {
            let part = buf.within_mut(range);
            self.devices.read_copy(chunk, part_at, copy.min(chunk.copies().minus(1)), part)
        })
    }

    /// Returns the tree block of a pointer, from the first copy that matches it.
    pub(crate) fn node(&self, pointer: &Pointer) -> Result<Arc<Node>> {
        let is_meant = |node: &Node| pointer.check(node).is_ok();
        self.nodes.get_or_if(pointer.at, is_meant, || self.load(pointer.at, &|node| pointer.check(node)))
    }

    /// Registers a block whose inline data is read later by address.
    pub(crate) fn expect_inline(&self, at: u64, generation: u64) {
        let mut inline = self.inline.lock().unwrap_or_else(PoisonError::into_inner);
        if inline.len() < INLINE_MAX || inline.contains_key(&at) {
            inline.insert(at, generation);
        }
    }

    pub(crate) fn has_inline(&self, at: u64) -> bool {
        self.inline.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&at)
    }

    /// Returns the tree block at an address in the registered generation, or else its newest copy.
    pub(crate) fn block(&self, at: u64) -> Result<Arc<Node>> {
        let inline = self.inline.lock().unwrap_or_else(PoisonError::into_inner).get(&at).copied();
        let Some(wanted) = inline else { return self.nodes.get_or(at, || self.load_newest(at)) };
        let check = |node: &Node| match node.generation {
            found if found == wanted => Ok(()),
            found => Err(Corruption::NodeFigure { at, figure: "generation", found, wanted }),
        };
        self.nodes.get_or_if(at, |node| check(node).is_ok(), || self.load(at, &check))
    }

    /// Reads the first intact copy that passes `check`.
    fn load(&self, at: u64, check: &dyn Fn(&Node) -> Result<(), Corruption>) -> Result<(Node, usize)> {
        let (mut failure, mut rank) = (Error::from(Corruption::NodeSum { at }), 0);
        for copy in self.devices.order(self.chunks.of(at)?, at) {
            let error = match self.load_copy(at, copy) {
                Ok(node) => match check(&node) {
                    Ok(()) => {
                        if rank > 1 {
                            self.devices.healed.fetch_add(1, Ordering::Relaxed);
                        }
                        let weight = node.weight();
                        return Ok((node, weight));
                    }
                    Err(fault) => (Error::from(fault), 3),
                },
                // A damaged copy is reported rather than a missing one, and an outdated one rather
                // than both.
                Err(error) if error.kind() == ErrorKind::Corrupt => (error, 2),
                Err(error) => (error, 1),
            };
            if error.1 > rank {
                (failure, rank) = error;
            }
        }
        Err(failure)
    }

    fn load_newest(&self, at: u64) -> Result<(Node, usize)> {
        let copies = self.chunks.of(at)?.copies();
        let found = (0..copies).filter_map(|copy| self.load_copy(at, copy).ok());
        match found.max_by_key(|node| node.generation) {
            Some(node) => {
                let weight = node.weight();
                Ok((node, weight))
            }
            None => self.load(at, &|_| Ok(())),
        }
    }

    pub(crate) fn load_copy(&self, at: u64, copy: usize) -> Result<Node> {
        let block = self.super_block();
        let mut bytes = vec![0; block.node_len as usize];
        self.read_copy(at, copy, &mut bytes)?;
        if !block.checksum.agrees(&bytes, bytes.within(SUM_ROOM..)) {
            return Err(Corruption::NodeSum { at }.into());
        }
        Node::parse(bytes.into(), at, &self.uuids, block.sector_len)
    }
}
