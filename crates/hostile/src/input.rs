//! Kinds of inputs that properties are tried on.

/// Kind of the valid inputs of a property, which mutations begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// An image of either format.
    Image,
    /// An archive, compressed or not: tar, cpio, or zip.
    Tar,
    /// A manifest.
    Manifest,
    /// A byte that picks an algorithm, two for the length wanted, then a block.
    Block,
    /// Bytes that pick an image and what is done to it, then requests.
    Requests,
    /// A recovery file, then bytes that pick an image and what is done to it.
    Recovery,
    /// Data with a dm-verity hash tree after them.
    Verity,
    /// A public key, a zero byte, a signature.
    Signature,
    /// The measurement of a file, then the file.
    Measured,
    /// A plan, and list, sidecar, and image of each shard.
    Shards,
}

impl Input {
    /// Returns true if the offsets of its fields and checksums are known.
    pub fn has_figures(self) -> bool {
        matches!(self, Input::Image | Input::Recovery | Input::Verity)
    }
}
