//! The digest of one file's bytes: a tree of digests, so that large files are hashed on all CPUs
//! and holes cost next to nothing.
//!
//! Chunks of [`CHUNK_LEN`] are hashed. While there is more than one digest, each run of [`FAN_OUT`]
//! digests is replaced by the digest of their concatenation. A file of one chunk has the digest of
//! its bytes.

use sha2::{Digest, Sha256};
use std::sync::OnceLock;

/// A SHA-256 digest.
pub(crate) type Hash = [u8; 32];

/// Bytes of a file that are hashed together.
pub(crate) const CHUNK_LEN: u64 = 1 << 20;
/// Digests that one digest replaces.
const FAN_OUT: u64 = 256;
/// Most rows of digests above a file's chunks.
const ROWS_MAX: usize = 6;

pub(crate) fn sha256(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// Holes are added as a number of chunks.
pub(crate) struct ContentFold {
    chunk_count: u64,
    taken: u64,
    last_len: u64,
    /// Row 0 contains digests of chunks, each further row those of runs of the row before.
    rows: Vec<Row>,
    top: Hash,
}

#[derive(Default)]
struct Row {
    hasher: Sha256,
    count: u64,
}

impl ContentFold {
    /// `len` is at least one.
    pub(crate) fn new(len: u64) -> Self {
        let chunk_count = len.div_ceil(CHUNK_LEN);
        let mut rows = Vec::new();
        let mut count = chunk_count;
        while count > 1 {
            rows.push(Row::default());
            count = count.div_ceil(FAN_OUT);
        }
        let last_len = len - (chunk_count.max(1) - 1) * CHUNK_LEN;
        ContentFold { chunk_count, taken: 0, last_len, rows, top: Hash::default() }
    }

    /// All chunks between it and the last one are holes.
    pub(crate) fn chunk(&mut self, index: u64, hash: &Hash) {
        self.holes_up_to(index);
        self.taken += 1;
        self.add(0, hash);
    }

    /// Remaining chunks are holes.
    pub(crate) fn finish(mut self) -> Hash {
        self.holes_up_to(self.chunk_count);
        for row in 0..self.rows.len() {
            if self.rows[row].count > 0 {
                let hash = self.rows[row].take();
                self.add(row + 1, &hash);
            }
        }
        self.top
    }

    fn add(&mut self, row: usize, hash: &Hash) {
        let mut hash = *hash;
        for row in row.. {
            let Some(row) = self.rows.get_mut(row) else {
                self.top = hash;
                return;
            };
            row.hasher.update(hash);
            row.count += 1;
            if row.count < FAN_OUT {
                return;
            }
            hash = row.take();
        }
    }

    fn holes_up_to(&mut self, index: u64) {
        // The last chunk may be shorter than those with known digests.
        let whole = if self.last_len == CHUNK_LEN { self.chunk_count } else { self.chunk_count - 1 };
        while self.taken < index.min(whole) {
            let left = index.min(whole) - self.taken;
            // Adds the largest run that is aligned in its row.
            let (mut row, mut span) = (0, 1);
            while row < self.rows.len().min(ROWS_MAX) && self.rows[row].count == 0 && left >= span * FAN_OUT {
                span *= FAN_OUT;
                row += 1;
            }
            self.taken += span;
            self.add(row, &zeros()[row]);
        }
        if self.taken < index {
            self.taken += 1;
            self.add(0, &sha256(&vec![0; self.last_len as usize]));
        }
    }
}

impl Row {
    fn take(&mut self) -> Hash {
        self.count = 0;
        self.hasher.finalize_reset().into()
    }
}

/// Row 0 is a chunk of zeros, each further row a full row of the one before.
fn zeros() -> &'static [Hash] {
    static ZEROS: OnceLock<Vec<Hash>> = OnceLock::new();
    ZEROS.get_or_init(|| {
        let mut zeros = vec![sha256(&vec![0; CHUNK_LEN as usize])];
        for row in 0..ROWS_MAX {
            zeros.push(sha256(&zeros[row].repeat(FAN_OUT as usize)));
        }
        zeros
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_testkit::Random;

    /// Implements the rule of the document directly.
    fn plainly(mut row: Vec<Hash>) -> Hash {
        while row.len() > 1 {
            row = row.chunks(FAN_OUT as usize).map(|run| sha256(&run.concat())).collect();
        }
        row[0]
    }

    fn hole_hash(len: u64) -> Hash {
        sha256(&vec![0; len as usize])
    }

    #[test]
    fn a_file_of_one_chunk_has_the_digest_of_its_bytes() {
        let mut fold = ContentFold::new(3);
        fold.chunk(0, &sha256(b"abc"));
        assert_eq!(fold.finish(), sha256(b"abc"));
        assert_eq!(ContentFold::new(7).finish(), hole_hash(7));
        assert_eq!(ContentFold::new(CHUNK_LEN).finish(), hole_hash(CHUNK_LEN));
    }

    #[test]
    fn agrees_with_the_plain_rule_wherever_holes_are() {
        let mut random = Random::new(7);
        for (count, last_len) in
            [(2, 5), (255, CHUNK_LEN), (256, 1), (257, CHUNK_LEN), (65_537, 9), (70_000, CHUNK_LEN)]
        {
            for share in [1, 50, 1000, 40_000] {
                let len = (count - 1) * CHUNK_LEN + last_len;
                let mut fold = ContentFold::new(len);
                let whole = hole_hash(CHUNK_LEN);
                let mut plain = vec![whole; count as usize];
                plain[count as usize - 1] = hole_hash(last_len);
                for index in 0..count {
                    if random.below(share) == 0 {
                        let hash = sha256(&index.to_le_bytes());
                        fold.chunk(index, &hash);
                        plain[index as usize] = hash;
                    }
                }
                assert_eq!(fold.finish(), plainly(plain), "{count} chunks, one in {share} is data");
            }
        }
    }

    #[test]
    fn the_longest_hole_there_is_takes_no_time() {
        let mut fold = ContentFold::new(i64::MAX as u64);
        fold.chunk(1 << 42, &hole_hash(CHUNK_LEN));
        assert_eq!(fold.finish(), ContentFold::new(i64::MAX as u64).finish());
        assert_ne!(ContentFold::new(u64::MAX).finish(), ContentFold::new(i64::MAX as u64).finish());
    }
}
