//! Losses: metadata of a tree that old Squashfs images cannot represent, reported before anything
//! is written.

use crate::legacy::disk::Version;
use packfs_core::{DeviceNumber, FileType, Loss, Losses, NodeKind, Tree};
use packfs_format::{Capabilities, Links, NO_XATTRS, Times};

/// Types without a time in images whose inodes have no numbers.
const TIMELESS: &[FileType] =
    &[FileType::Symlink, FileType::BlockDevice, FileType::CharDevice, FileType::Fifo, FileType::Socket];

/// Returns the metadata that images of a version store.
pub(super) fn capabilities(version: Version) -> Capabilities {
    let has_numbers = version.has_numbers();
    Capabilities {
        times: Times::UNSIGNED_32,
        timeless: if has_numbers { &[] } else { TIMELESS },
        device_bits: (8, 8),
        links: if has_numbers { Links::Held } else { Links::SplitIfAccepted },
        xattr_losses: NO_XATTRS,
        ..Capabilities::ALL
    }
}

/// Returns a device number in 16 bits, truncated if necessary.
pub(super) fn stored_device(number: DeviceNumber) -> u16 {
    ((number.major & 0xff) << 8 | number.minor & 0xff) as u16
}

/// Limit of the blocks of a file: each takes a word in its inode, even a hole.
pub(super) const BLOCKS_MAX: u64 = 1 << 25;
/// Longest file of version 2; kernels refuse longer ones.
const SHORT_FILE_LEN_MAX: u64 = (1 << 31) - 1;
/// Longest target of a symbolic link: its length has 16 bits.
const TARGET_LEN_MAX: usize = u16::MAX as usize;

/// Returns every kind of loss with its number of nodes.
pub(super) fn find(tree: &Tree, version: Version, block_len: u32) -> Vec<Loss> {
    let mut losses = Losses::new(tree);
    let blocks_len = BLOCKS_MAX * u64::from(block_len);
    let most = if version < Version::V3_0 { blocks_len.min(SHORT_FILE_LEN_MAX) } else { blocks_len };
    // Sparse files in hostile archives have arbitrary lengths.
    let what = format!(
        "files of more than the {most} bytes that version {version} allows with blocks of {block_len}"
    );
    losses.fatal(&what, |id| matches!(tree.node(id).kind, NodeKind::File { len, .. } if len > most));
    losses.fatal(
        &format!("link targets of more than {TARGET_LEN_MAX} bytes"),
        |id| matches!(&tree.node(id).kind, NodeKind::Symlink(target) if target.len() > TARGET_LEN_MAX),
    );
    capabilities(version).find_losses(tree, &mut losses);
    losses.finish()
}
