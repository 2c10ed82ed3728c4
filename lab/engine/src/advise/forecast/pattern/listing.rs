//! The list of a SquashFS directory as packfs writes it, entry by entry: which metadata blocks Linux reads to find a name
//! (`squashfs_lookup`).
//!
//! Entries stand in runs, each behind a header; a run ends where the inodes' block ends, after 256 entries, and where an entry would
//! begin in another block than the header. A list that goes on in another block has an index, which leads to the first header there.

use packfs::InodeId;

/// What a metadata block holds, decoded.
pub(super) const BLOCK_LEN: u64 = 8192;
/// Length of a header, and of an entry without its name.
const HEADER_LEN: u64 = 12;
const ENTRY_LEN: u64 = 8;
/// Most entries behind a header.
const RUN_MAX: u32 = 256;

/// A list, as far as it was written.
#[derive(Clone, Debug)]
pub(super) struct Listing {
    /// Where in the table the next entry begins, decoded.
    at: u64,
    run: Option<Run>,
    /// The block in which reading begins.
    from: u64,
    /// Whether the directory has an index.
    pub(super) indexed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    block: u64,
    inodes: u64,
    count: u32,
}

impl Listing {
    /// A list that begins at this byte of the table, decoded.
    pub(super) fn at(start: u64) -> Listing {
        Listing { at: start, run: None, from: start / BLOCK_LEN, indexed: false }
    }

    /// Adds an entry; the first and the last block that are read to find it.
    pub(super) fn add(&mut self, id: InodeId, name: &[u8]) -> (u64, u64) {
        let inodes = inode_block(id);
        let goes_on = self
            .run
            .filter(|run| run.inodes == inodes && run.count < RUN_MAX && run.block == self.at / BLOCK_LEN);
        let count = goes_on.map_or(0, |run| run.count);
        let block = self.at / BLOCK_LEN;
        if goes_on.is_none() {
            if block != self.from {
                (self.from, self.indexed) = (block, true);
            }
            self.at += HEADER_LEN;
        }
        self.run = Some(Run { block, inodes, count: count + 1 });
        self.at += ENTRY_LEN + name.len() as u64;
        (self.from, (self.at - 1) / BLOCK_LEN)
    }

    /// Where it ends.
    pub(super) fn end(&self) -> u64 {
        self.at
    }
}

/// Where an inode's metadata block begins in the table of inodes.
pub(super) fn inode_block(id: InodeId) -> u64 {
    id.0 >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_stands_before_each_run() {
        let mut listing = Listing::at(0);
        for n in 0..257 {
            listing.add(InodeId(n), b"name");
        }
        assert_eq!(listing.end(), 2 * 12 + 257 * 12);
        listing.add(InodeId(1 << 16), b"name");
        assert_eq!(listing.end(), 3 * 12 + 258 * 12);
        assert!(!listing.indexed);
    }

    #[test]
    fn the_index_leads_to_the_block_of_a_name() {
        let mut listing = Listing::at(BLOCK_LEN - 100);
        let found: Vec<_> = (0..1000).map(|n| listing.add(InodeId(n), b"eight ch")).collect();
        assert_eq!(found[0], (0, 0));
        // Begins before the end of the block, ends behind it.
        assert_eq!(found[5], (0, 1));
        assert_eq!(found[6], (1, 1));
        assert_eq!(found[999].0, (listing.end() - 1) / BLOCK_LEN);
        assert!(listing.indexed);
    }
}
