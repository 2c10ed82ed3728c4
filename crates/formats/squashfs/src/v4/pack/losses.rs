//! Losses: metadata of a tree that SquashFS cannot represent, reported before anything is written.

use packfs_core::{Loss, Losses, NodeKind, Tree};
use packfs_format::{Capabilities, Times, XattrLoss};

/// Prefixes of extended attributes by number on disk.
pub(super) const XATTR_PREFIXES: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];

/// Splits a name into the number of its prefix and the rest; `None` if the format cannot represent
/// it.
pub(super) fn split_xattr_name(name: &[u8]) -> Option<(u16, &[u8])> {
    let (number, rest) = XATTR_PREFIXES
        .iter()
        .enumerate()
        .find_map(|(number, prefix)| Some((number, name.strip_prefix(*prefix)?)))?;
    (rest.len() <= usize::from(u16::MAX)).then_some((number as u16, rest))
}

pub(super) const CAPABILITIES: Capabilities = Capabilities {
    times: Times::UNSIGNED_32,
    xattr_losses: &[XattrLoss {
        what: "extended attributes other than user, trusted and security (such as ACLs) are left out",
        concerns: |name, _| split_xattr_name(name).is_none(),
    }],
    ..Capabilities::ALL
};

/// Limit of the blocks of a file: each takes a word in its inode, even a hole. 4 TiB at the default
/// block size.
pub(super) const BLOCKS_MAX: u64 = 1 << 25;

/// Returns every kind of loss with its number of nodes.
pub(super) fn find(tree: &Tree, block_len: u32) -> Vec<Loss> {
    let mut losses = Losses::new(tree);
    let most = BLOCKS_MAX * u64::from(block_len);
    // Sparse files in hostile archives have arbitrary lengths.
    losses.fatal(
        &format!("files of more than the {most} bytes that blocks of {block_len} allow"),
        |id| matches!(tree.node(id).kind, NodeKind::File { len, .. } if len > most),
    );
    CAPABILITIES.find_losses(tree, &mut losses);
    losses.finish()
}
