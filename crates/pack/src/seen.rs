//! Tails that were seen before: by length and hash first, then byte by byte, because a hash alone proves nothing.
//!
//! Keeps no tail, only where to read it again, and a few that were just compared.

use crate::context::Context;
use packfs_core::{NodeId, Result};
use std::collections::HashMap;

/// Bytes of tails kept to compare later ones with.
const COMPARED_LEN: usize = 4 << 20;

/// The last part of a file, or all of it, that is to lie beside others.
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

/// A tail that was handed in, by number.
pub(crate) type TailId = u32;

/// A tail as it was first seen: where to read it again.
struct Origin {
    node: NodeId,
    offset: u64,
    len: u32,
}

/// See the module.
pub(crate) struct SeenTails<'a> {
    context: &'a Context<'a>,
    by_hash: HashMap<(u32, u128), TailId>,
    origins: Vec<Origin>,
    compared: HashMap<TailId, Box<[u8]>>,
    compared_len: usize,
}

impl<'a> SeenTails<'a> {
    pub(crate) fn new(context: &'a Context<'a>) -> Self {
        SeenTails {
            context,
            by_hash: HashMap::new(),
            origins: Vec::new(),
            compared: HashMap::new(),
            compared_len: 0,
        }
    }

    /// The earlier tail with the same bytes, if the plan shares them.
    pub(crate) fn find(&mut self, tail: &TailBytes) -> Result<Option<TailId>> {
        if !self.context.plan.dedupe {
            return Ok(None);
        }
        let earlier = self.by_hash.get(&(tail.bytes.len() as u32, tail.hash)).copied();
        match earlier {
            Some(earlier) if self.is_same(earlier, tail)? => Ok(Some(earlier)),
            _ => Ok(None),
        }
    }

    /// Remembers a tail that ends at `end` of a file; returns its number.
    pub(crate) fn add(&mut self, node: NodeId, end: u64, tail: &TailBytes) -> TailId {
        self.add_known(node, end, tail.bytes.len() as u32, tail.hash)
    }

    /// The same for a tail whose length and hash are known.
    pub(crate) fn add_known(&mut self, node: NodeId, end: u64, len: u32, hash: u128) -> TailId {
        let id = self.origins.len() as TailId;
        self.origins.push(Origin { node, offset: end - u64::from(len), len });
        if self.context.plan.dedupe {
            self.by_hash.entry((len, hash)).or_insert(id);
        }
        id
    }

    fn is_same(&mut self, earlier: TailId, tail: &TailBytes) -> Result<bool> {
        if let Some(bytes) = self.compared.get(&earlier) {
            return Ok(**bytes == *tail.bytes);
        }
        let Origin { node, offset, len } = self.origins[earlier as usize];
        let mut bytes = vec![0; len as usize].into_boxed_slice();
        self.context.open(node)?.read_exact_at(offset, &mut bytes)?;
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
