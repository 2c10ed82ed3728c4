//! Digests of files as they were packed, for verification: hashes of the very bytes that were
//! compressed.

use packfs_core::{ContentDigest, ContentHash, ContentHasher, NodeId};

pub(crate) struct PieceDigest {
    hasher: Option<ContentHasher>,
    /// Upper bound of the proof, lowered by data that was not hashed.
    most: ContentDigest,
}

impl PieceDigest {
    pub(crate) fn new(is_wanted: bool, start: u64) -> Self {
        let mut digest = PieceDigest::disabled();
        digest.hasher = is_wanted.then(|| ContentHasher::new(start));
        if !start.is_multiple_of(ContentHash::UNIT) {
            digest.skip(ContentDigest::Decodable);
        }
        digest
    }

    pub(crate) fn disabled() -> Self {
        PieceDigest { hasher: None, most: ContentDigest::default() }
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        if let Some(hasher) = &mut self.hasher {
            hasher.bytes(bytes);
        }
    }

    pub(crate) fn add_zeros(&mut self, len: u64) {
        if let Some(hasher) = &mut self.hasher {
            hasher.zeros(len);
        }
    }

    /// Records data that was not hashed: the whole is proven at most as far as `known`.
    pub(crate) fn skip(&mut self, known: ContentDigest) {
        self.most = self.most.and(known);
    }

    pub(crate) fn finish(self) -> ContentDigest {
        let hash = self.hasher.map_or_else(ContentHash::default, ContentHasher::finish);
        ContentDigest::Hash(hash).and(self.most)
    }
}

pub(crate) struct DigestLog(Vec<ContentDigest>);

impl DigestLog {
    pub(crate) fn new(is_wanted: bool, node_count: u32) -> Self {
        DigestLog(vec![ContentDigest::default(); if is_wanted { node_count as usize } else { 0 }])
    }

    pub(crate) fn add(&mut self, node: NodeId, seen: ContentDigest) {
        if let Some(known) = self.0.get_mut(node.index()) {
            *known = known.and(seen);
        }
    }

    pub(crate) fn same(&mut self, node: NodeId, other: NodeId) {
        self.0[node.index()] = self.0[other.index()];
    }

    pub(crate) fn of(&self, node: NodeId) -> ContentDigest {
        self.0[node.index()]
    }

    pub(crate) fn rows(&self) -> &[ContentDigest] {
        &self.0
    }
}
