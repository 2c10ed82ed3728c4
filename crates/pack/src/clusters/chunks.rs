//! Chunks that were stored before: by hash first, then byte by byte.
//!
//! Remembers a bounded number of them, the ones stored or found again last, so memory does not grow
//! with the data.

use crate::context::Context;
use crate::same::Earlier;
use packfs_core::NodeId;
use packfs_format::Clusters;
use std::collections::HashMap;

/// Chunks in each of two generations.
const GENERATION_COUNT: usize = 400_000;

#[derive(Clone, Copy)]
struct Origin {
    /// Where it is stored in the image.
    place: u64,
    node: NodeId,
    /// Where it is in that file.
    offset: u64,
}

/// See the module.
pub(super) struct SeenChunks<'a> {
    earlier: Earlier<'a, Clusters>,
    generation_count: usize,
    young: HashMap<(u32, u128), Origin>,
    old: HashMap<(u32, u128), Origin>,
}

impl<'a> SeenChunks<'a> {
    pub(super) fn new(context: &'a Context<'a, Clusters>) -> Self {
        SeenChunks {
            earlier: Earlier::new(context),
            generation_count: GENERATION_COUNT,
            young: HashMap::new(),
            old: HashMap::new(),
        }
    }

    /// Where these bytes are stored already.
    pub(super) fn find(&mut self, bytes: &[u8], hash: u128) -> Option<u64> {
        let key = (bytes.len() as u32, hash);
        let origin = *self.young.get(&key).or_else(|| self.old.get(&key))?;
        // An origin that can no longer be read cannot be shared; nothing else follows from that.
        let same = self.earlier.holds(origin.node, origin.offset, bytes).unwrap_or(false);
        if same {
            self.insert(key, origin);
        }
        same.then_some(origin.place)
    }

    /// Remembers that a chunk of a file is stored at `place`.
    pub(super) fn add(&mut self, bytes: &[u8], hash: u128, place: u64, node: NodeId, offset: u64) {
        self.insert((bytes.len() as u32, hash), Origin { place, node, offset });
    }

    fn insert(&mut self, key: (u32, u128), origin: Origin) {
        if self.young.len() >= self.generation_count {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, origin);
    }
}
