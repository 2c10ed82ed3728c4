//! Chunks stored earlier: found by hash, then compared byte by byte.
//!
//! Remembers a bounded number of chunks, those stored or found last, so memory does not grow with
//! the data.

use crate::context::Context;
use crate::file_comparer::FileComparer;
use packfs_core::NodeId;
use packfs_format::Clusters;
use std::collections::HashMap;

/// Chunks in each of two generations.
const GENERATION_COUNT: usize = 400_000;

#[derive(Clone, Copy)]
struct Origin {
    place: u64,
    node: NodeId,
    offset: u64,
}

pub(super) struct SeenChunks<'a> {
    earlier: FileComparer<'a, Clusters>,
    generation_count: usize,
    young: HashMap<(u32, u128), Origin>,
    old: HashMap<(u32, u128), Origin>,
}

impl<'a> SeenChunks<'a> {
    pub(super) fn new(context: &'a Context<'a, Clusters>) -> Self {
        SeenChunks {
            earlier: FileComparer::new(context),
            generation_count: GENERATION_COUNT,
            young: HashMap::new(),
            old: HashMap::new(),
        }
    }

    pub(super) fn find(&mut self, bytes: &[u8], hash: u128) -> Option<u64> {
        let key = (bytes.len() as u32, hash);
        let origin = *self.young.get(&key).or_else(|| self.old.get(&key))?;
        // A file that cannot be read again cannot be shared; that is no error.
        let same = self.earlier.holds(origin.node, origin.offset, bytes).unwrap_or(false);
        if same {
            self.insert(key, origin);
        }
        same.then_some(origin.place)
    }

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
