//! Reference to a stored block, and how to decode it.

use crate::Algorithm;

/// Meaning of the `decoded_len` of a [`BlockRef`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DecodedLen {
    /// The block decodes to exactly this many bytes.
    Exactly,
    /// The block decodes to this many bytes or fewer.
    AtMost,
    /// Only a prefix of this length is requested; the block may decode to more, not to fewer.
    Prefix,
}

/// A block of stored bytes and how to decode it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockRef {
    /// Start of the stored bytes, in bytes from the start of the image, or of the first of several
    /// devices in a row.
    pub offset: u64,
    /// Number of stored bytes.
    pub stored_len: u32,
    /// Number of decoded, or requested, bytes.
    pub decoded_len: u32,
    /// Meaning of `decoded_len`.
    pub decodes_to: DecodedLen,
    /// Set if zeros before the stored bytes are padding, to be skipped before decoding. Only
    /// for blocks that are encoded.
    pub zero_padded: bool,
    /// The algorithm that encoded them; `None` if they are stored uncompressed.
    pub algorithm: Option<Algorithm>,
}

impl BlockRef {
    /// Returns an uncompressed block.
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

    /// True if both refer to the same bytes in the same encoding, whatever decoded length is
    /// requested.
    pub fn is_stored_as(&self, other: &BlockRef) -> bool {
        let stored = |block: &BlockRef| (block.offset, block.stored_len, block.zero_padded, block.algorithm);
        stored(self) == stored(other)
    }

    /// True if the block may decode to `len` bytes.
    pub fn allows_len(&self, len: usize) -> bool {
        let named = self.decoded_len as usize;
        match self.decodes_to {
            DecodedLen::Exactly => len == named,
            DecodedLen::AtMost => len <= named,
            DecodedLen::Prefix => len >= named,
        }
    }

    /// True if decoding this block also yields the bytes requested by `other`.
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
