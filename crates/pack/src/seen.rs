//! Deduplication of tails: by length and hash first, then byte by byte, because equal hashes are no
//! proof.
//!
//! Tails are not kept; each is read again to be compared, except for a few recent ones.

use crate::context::Context;
use hashbrown::HashTable;
use packfs_core::{NodeId, Result};
use packfs_format::DataKind;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Bytes of tails kept for comparisons.
const COMPARED_LEN: usize = 4 << 20;

/// The tail of a file, or a whole file, that shares a block with others.
pub(crate) struct TailBytes {
    pub bytes: Box<[u8]>,
    pub hash: u128,
}

impl TailBytes {
    pub(crate) fn new(bytes: Box<[u8]>) -> Self {
        let hash = xxhash_rust::xxh3::xxh3_128(&bytes);
        TailBytes { bytes, hash }
    }
}

pub(crate) type TailId = u32;

/// The first occurrence of a tail, which ends where its file ends. There may be millions.
#[derive(Clone, Copy)]
struct Origin {
    node: NodeId,
    len: u32,
    /// A part of the hash, enough to select candidates.
    hash: u32,
}

impl Origin {
    fn new(node: NodeId, len: u32, hash: u128) -> Self {
        Origin { node, len, hash: hash as u32 }
    }

    fn may_be(&self, tail: Origin) -> bool {
        (self.len, self.hash) == (tail.len, tail.hash)
    }
}

pub(crate) struct SeenTails<'a, K: DataKind> {
    context: &'a Context<'a, K>,
    firsts: HashTable<TailId>,
    hashing: RandomState,
    origins: Vec<Origin>,
    compared: HashMap<TailId, Box<[u8]>>,
    compared_len: usize,
}

impl<'a, K: DataKind> SeenTails<'a, K> {
    pub(crate) fn new(context: &'a Context<'a, K>) -> Self {
        SeenTails {
            context,
            firsts: HashTable::new(),
            hashing: RandomState::new(),
            origins: Vec::new(),
            compared: HashMap::new(),
            compared_len: 0,
        }
    }

    /// `None` if the plan does not deduplicate.
    pub(crate) fn find(&mut self, tail: &TailBytes) -> Result<Option<TailId>> {
        if !self.context.plan.dedupe {
            return Ok(None);
        }
        let wanted = Origin::new(NodeId::ROOT, tail.bytes.len() as u32, tail.hash);
        let may_be = |id: &TailId| self.origins[*id as usize].may_be(wanted);
        match self.firsts.find(self.hash(wanted), may_be).copied() {
            Some(earlier) if self.is_same(earlier, tail)? => Ok(Some(earlier)),
            _ => Ok(None),
        }
    }

    pub(crate) fn node(&self, id: TailId) -> NodeId {
        self.origins[id as usize].node
    }

    /// Bytes.
    pub(crate) fn len(&self, id: TailId) -> u32 {
        self.origins[id as usize].len
    }

    pub(crate) fn add(&mut self, node: NodeId, tail: &TailBytes) -> TailId {
        self.add_known(node, tail.bytes.len() as u32, tail.hash)
    }

    /// Later tails are not compared with it.
    pub(crate) fn add_apart(&mut self, node: NodeId, tail: &TailBytes) -> TailId {
        self.origins.push(Origin::new(node, tail.bytes.len() as u32, tail.hash));
        self.origins.len() as TailId - 1
    }

    pub(crate) fn add_known(&mut self, node: NodeId, len: u32, hash: u128) -> TailId {
        let id = self.origins.len() as TailId;
        let tail = Origin::new(node, len, hash);
        self.origins.push(tail);
        if self.context.plan.dedupe {
            let hash = self.hash(tail);
            let SeenTails { origins, firsts, hashing, .. } = self;
            let origin = |id: &TailId| origins[*id as usize];
            firsts
                .entry(
                    hash,
                    |id| origin(id).may_be(tail),
                    |id| hashing.hash_one((origin(id).len, origin(id).hash)),
                )
                .or_insert(id);
        }
        id
    }

    fn hash(&self, tail: Origin) -> u64 {
        self.hashing.hash_one((tail.len, tail.hash))
    }

    fn is_same(&mut self, earlier: TailId, tail: &TailBytes) -> Result<bool> {
        if let Some(bytes) = self.compared.get(&earlier) {
            return Ok(**bytes == *tail.bytes);
        }
        let Origin { node, len, .. } = self.origins[earlier as usize];
        let mut bytes = vec![0; len as usize].into_boxed_slice();
        let start = self.context.len(node) - u64::from(len);
        self.context.open(node)?.read_exact_at(start, &mut bytes)?;
        let same = bytes == tail.bytes;
        if self.compared_len + bytes.len() > COMPARED_LEN {
            self.compared.clear();
            self.compared_len = 0;
        }
        self.compared_len += bytes.len();
        self.compared.insert(earlier, bytes);
        Ok(same)
    }
}
