//! What was seen of files while they were packed, for whoever verifies the image: the hash of the
//! very bytes that were compressed.

use packfs_core::{ContentHash, ContentHasher, NodeId, Witnessed};

/// Sees the bytes of one piece of a file, in order; or nothing, if nobody wants to know.
pub(crate) struct Witness {
    hasher: Option<ContentHasher>,
    /// What is known at most, by what was not seen.
    most: Witnessed,
}

impl Witness {
    /// Of a piece that starts at this byte.
    pub(crate) fn new(is_wanted: bool, start: u64) -> Self {
        let mut witness = Witness::nobody();
        witness.hasher = is_wanted.then(|| ContentHasher::new(start));
        if !start.is_multiple_of(ContentHash::UNIT) {
            witness.missed(Witnessed::Decodable);
        }
        witness
    }

    /// Sees nothing.
    pub(crate) fn nobody() -> Self {
        Witness { hasher: None, most: Witnessed::default() }
    }

    pub(crate) fn saw(&mut self, bytes: &[u8]) {
        if let Some(hasher) = &mut self.hasher {
            hasher.bytes(bytes);
        }
    }

    pub(crate) fn saw_zeros(&mut self, len: u64) {
        if let Some(hasher) = &mut self.hasher {
            hasher.zeros(len);
        }
    }

    /// A part was not seen; no more than this is known of the whole.
    pub(crate) fn missed(&mut self, known: Witnessed) {
        self.most = self.most.and(known);
    }

    pub(crate) fn finish(self) -> Witnessed {
        let hash = self.hasher.map_or_else(ContentHash::default, ContentHasher::finish);
        Witnessed::Hash(hash).and(self.most)
    }
}

/// What was seen of each file; nothing is kept if nobody wants to know.
pub(crate) struct Testimony(Vec<Witnessed>);

impl Testimony {
    /// Of no node anything yet.
    pub(crate) fn new(is_wanted: bool, node_count: u32) -> Self {
        Testimony(vec![Witnessed::default(); if is_wanted { node_count as usize } else { 0 }])
    }

    /// One more piece of a file was seen.
    pub(crate) fn add(&mut self, node: NodeId, seen: Witnessed) {
        if let Some(known) = self.0.get_mut(node.index()) {
            *known = known.and(seen);
        }
    }

    /// Of this file, what was seen of another.
    pub(crate) fn same(&mut self, node: NodeId, other: NodeId) {
        self.0[node.index()] = self.0[other.index()];
    }

    pub(crate) fn of(&self, node: NodeId) -> Witnessed {
        self.0[node.index()]
    }

    pub(crate) fn rows(&self) -> &[Witnessed] {
        &self.0
    }
}
