//! Logical addresses: tree blocks that are verified, and data in all of its copies.

use crate::checksum::SUM_ROOM;
use crate::chunks::{Chunk, Chunks};
use crate::corruption::Corruption;
use crate::devices::Devices;
use crate::disk::{RootPlace, SuperBlock, tree};
use crate::key::{Key, Uuid};
use crate::node::Node;
use packfs_core::{Error, ErrorKind, Result, usize_of};
use packfs_format::BlockCache;
use std::sync::Arc;

/// Tree blocks that are kept, in bytes.
const CACHE_LEN: usize = 32 << 20;

/// Claims of a parent about a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pointer {
    pub(crate) at: u64,
    pub(crate) level: u8,
    pub(crate) generation: u64,
    /// Number of the tree.
    pub(crate) tree: u64,
    /// First key.
    pub(crate) first: Option<Key>,
    /// Key of the next block.
    pub(crate) end: Option<Key>,
}

/// Takes a part of a range: its chunk, its logical offset, and its place in the range.
type VisitPart<'a> = dyn FnMut(&Chunk, u64, std::ops::Range<usize>) -> Result<()> + 'a;

impl Pointer {
    /// Returns the pointer to the root of a tree.
    pub(crate) fn root(tree: u64, place: RootPlace) -> Pointer {
        let RootPlace { at, level, generation } = place;
        Pointer { at, level, generation, tree, first: None, end: None }
    }
}

/// Devices and chunks of a filesystem, and its tree blocks.
pub(crate) struct Store {
    pub(crate) devices: Devices,
    pub(crate) chunks: Chunks,
    uuids: Vec<Uuid>,
    nodes: BlockCache<Node>,
}

impl Store {
    pub(crate) fn new(devices: Devices, chunks: Chunks) -> Store {
        Store { uuids: devices.uuids(), devices, chunks, nodes: BlockCache::new(CACHE_LEN) }
    }

    /// Replaces the chunks.
    pub(crate) fn with_chunks(self, chunks: Chunks) -> Store {
        Store { chunks, ..self }
    }

    pub(crate) fn super_block(&self) -> &SuperBlock {
        self.devices.super_block()
    }

    /// Calls `visit` for the parts of `len` bytes at `at` that lie in one spot of one chunk each,
    /// with the range of the part in those bytes.
    pub(crate) fn parts(&self, at: u64, len: usize, visit: &mut VisitPart<'_>) -> Result<()> {
        let mut done = 0_usize;
        while done < len {
            let part_at = at.saturating_add(done as u64);
            let chunk = self.chunks.of(part_at)?;
            let room = chunk.spot(part_at.saturating_sub(chunk.at), 0).room;
            let end = done.saturating_add(usize_of(room)).min(len);
            if end <= done {
                return Err(Corruption::Unmapped { at: part_at }.into());
            }
            visit(chunk, part_at, done..end)?;
            done = end;
        }
        Ok(())
    }

    /// Reads one copy of the bytes at a logical address.
    pub(crate) fn read_copy(&self, at: u64, copy: usize, buf: &mut [u8]) -> Result<()> {
        let len = buf.len();
        self.parts(at, len, &mut |chunk, part_at, range| {
            let part = buf.get_mut(range).unwrap_or_default();
            self.devices.read_copy(chunk, part_at, copy.min(chunk.copies().saturating_sub(1)), part)
        })
    }

    /// Returns the tree block that a pointer leads to.
    pub(crate) fn node(&self, pointer: &Pointer) -> Result<Arc<Node>> {
        let at = pointer.at;
        let node = self.any_node(at, Some(pointer.generation))?;
        let figure = |figure, found: u64, wanted: u64| {
            Err(Error::from(Corruption::NodeFigure { at, figure, found, wanted }))
        };
        if node.level != pointer.level {
            return figure("level", node.level.into(), pointer.level.into());
        }
        if node.generation != pointer.generation {
            return figure("generation", node.generation, pointer.generation);
        }
        let is_of_tree = node.owner == pointer.tree
            || node.owner == tree::RELOC
            || tree::is_subvolume(pointer.tree) && tree::is_subvolume(node.owner);
        if !is_of_tree {
            return figure("tree", node.owner, pointer.tree);
        }
        let last = node.count.checked_sub(1).map(|slot| node.key(slot));
        let is_first = pointer.first.is_none_or(|first| node.count > 0 && node.key(0) == first);
        if !is_first || pointer.end.is_some_and(|end| last >= Some(end)) {
            return Err(Corruption::NodeBounds { at }.into());
        }
        Ok(node)
    }

    /// Returns the tree block at an address, of a generation if one is wanted and a copy has it.
    pub(crate) fn any_node(&self, at: u64, generation: Option<u64>) -> Result<Arc<Node>> {
        self.nodes.get_or(at, || {
            let node = self.load(at, generation)?;
            let weight = node.weight();
            Ok((node, weight))
        })
    }

    fn load(&self, at: u64, generation: Option<u64>) -> Result<Node> {
        let copies = self.chunks.of(at)?.copies();
        let mut outdated = None;
        let mut failure: Option<Error> = None;
        for copy in 0..copies {
            match self.load_copy(at, copy) {
                Ok(node) if generation.is_none_or(|wanted| wanted == node.generation) => return Ok(node),
                Ok(node) => outdated = Some(node),
                // A damaged copy says more than a missing one.
                Err(error) if failure.is_none() || error.kind() == ErrorKind::Corrupt => {
                    failure = Some(error);
                }
                Err(_) => {}
            }
        }
        match (outdated, failure) {
            (Some(node), _) => Ok(node),
            (None, Some(error)) => Err(error),
            (None, None) => Err(Corruption::NodeSum { at }.into()),
        }
    }

    /// Reads and checks one copy of a tree block.
    pub(crate) fn load_copy(&self, at: u64, copy: usize) -> Result<Node> {
        let block = self.super_block();
        let mut bytes = vec![0; block.node_len as usize];
        self.read_copy(at, copy, &mut bytes)?;
        if !block.checksum.agrees(&bytes, bytes.get(SUM_ROOM..).unwrap_or_default()) {
            return Err(Corruption::NodeSum { at }.into());
        }
        Node::parse(bytes.into(), at, &self.uuids, block.sector_len)
    }
}
