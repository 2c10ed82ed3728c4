//! A block of stored bytes, and how it is decoded.

use crate::Algorithm;

/// How the `decoded_len` of a [`BlockRef`] is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DecodedLen {
    /// The block decodes to so many bytes, neither more nor less.
    Exactly,
    /// The block decodes to so many bytes or fewer.
    AtMost,
    /// Only the first so many bytes are wanted; the block may decode to more, not to fewer.
    Prefix,
}

/// A block of stored bytes and how to decode it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockRef {
    /// Where the stored bytes start, in bytes from the start of the image; of several devices in a row, from the first one on.
    pub offset: u64,
    /// How many bytes are stored.
    pub stored_len: u32,
    /// How many bytes they decode to, or are wanted of them.
    pub decoded_len: u32,
    /// How `decoded_len` is meant.
    pub decodes_to: DecodedLen,
    /// Whether zeros in front of the stored bytes are padding, to be skipped before decoding. Only for blocks that
    /// are encoded.
    pub zero_padded: bool,
    /// How they are encoded; `None` means as they are.
    pub algorithm: Option<Algorithm>,
}

impl BlockRef {
    /// A block that is stored as it is.
    pub fn stored(offset: u64, len: u32) -> Self {
        BlockRef {
            offset,
            stored_len: len,
            decoded_len: len,
            decodes_to: DecodedLen::Exactly,
            zero_padded: false,
            algorithm: None,
        }
    }

    /// Whether the same bytes are stored in the same way, however many of them are wanted decoded.
    pub fn is_stored_as(&self, other: &BlockRef) -> bool {
        let stored = |block: &BlockRef| (block.offset, block.stored_len, block.zero_padded, block.algorithm);
        stored(self) == stored(other)
    }

    /// Whether the block may decode to `len` bytes.
    pub fn allows_len(&self, len: usize) -> bool {
        let named = self.decoded_len as usize;
        match self.decodes_to {
            DecodedLen::Exactly => len == named,
            DecodedLen::AtMost => len <= named,
            DecodedLen::Prefix => len >= named,
        }
    }

    /// Whether who decodes this block has all that `other` wants.
    pub fn covers(&self, other: &BlockRef) -> bool {
        self == other
            || self.is_stored_as(other)
                && other.decodes_to == DecodedLen::Prefix
                && self.decodes_to != DecodedLen::AtMost
                && self.decoded_len >= other.decoded_len
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockRef, DecodedLen};

    fn block(decoded_len: u32, decodes_to: DecodedLen) -> BlockRef {
        BlockRef { decoded_len, decodes_to, ..BlockRef::stored(4096, 100) }
    }

    #[test]
    fn a_longer_decode_covers_a_shorter_prefix_of_the_same_block_only() {
        use DecodedLen::{AtMost, Exactly, Prefix};
        let whole = block(1000, Exactly);
        assert!(whole.covers(&whole));
        assert!(whole.covers(&block(1000, Prefix)));
        assert!(whole.covers(&block(10, Prefix)));
        assert!(block(20, Prefix).covers(&block(10, Prefix)));
        assert!(!block(10, Prefix).covers(&block(20, Prefix)));
        assert!(!block(1000, Prefix).covers(&whole));
        assert!(!block(1000, AtMost).covers(&block(10, Prefix)));
        assert!(!whole.covers(&block(999, Exactly)));
        assert!(!whole.covers(&BlockRef { offset: 0, ..block(10, Prefix) }));
        assert!(!whole.covers(&BlockRef { zero_padded: true, ..block(10, Prefix) }));
    }
}
