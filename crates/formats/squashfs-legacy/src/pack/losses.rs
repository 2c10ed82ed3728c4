//! What old Squashfs images cannot hold of a tree, named before anything is written.

use crate::disk::Version;
use packfs_core::{DeviceNumber, FileType, Loss, Losses, NodeId, NodeKind, Timestamp, Tree, XattrsId};

/// The nearest time the format can hold: whole seconds from 1970 to 2106.
pub(super) fn stored_time(time: Timestamp) -> u32 {
    u32::try_from(time.seconds.max(0)).unwrap_or(u32::MAX)
}

/// Whether inodes of a type have a time of their own.
pub(super) fn has_time(version: Version, file_type: FileType) -> bool {
    version.has_numbers() || matches!(file_type, FileType::File | FileType::Directory)
}

/// The number of a device in 16 bits, cut if it is longer.
pub(super) fn stored_device(number: DeviceNumber) -> u16 {
    ((number.major & 0xff) << 8 | number.minor & 0xff) as u16
}

/// Most blocks of one file: each takes a word in its inode even where it is a hole.
pub(super) const BLOCKS_MAX: u64 = 1 << 25;
/// Longest file of version 2; kernels refuse longer ones.
const SHORT_FILE_LEN_MAX: u64 = (1 << 31) - 1;
/// Longest target of a symbolic link: its length has 16 bits.
const TARGET_LEN_MAX: usize = u16::MAX as usize;

/// Every kind of loss, with how many nodes it concerns.
pub(super) fn find(tree: &Tree, version: Version, block_len: u32) -> Vec<Loss> {
    let mut losses = Losses::new(tree);
    let blocks_len = BLOCKS_MAX * u64::from(block_len);
    let most = if version < Version::V3_0 { blocks_len.min(SHORT_FILE_LEN_MAX) } else { blocks_len };
    // Sparse files in hostile archives claim any length.
    let what = format!(
        "files of more than the {most} bytes that version {version} allows with blocks of {block_len}"
    );
    losses.fatal(&what, |id| matches!(tree.node(id).kind, NodeKind::File { len, .. } if len > most));
    losses.fatal(
        &format!("link targets of more than {TARGET_LEN_MAX} bytes"),
        |id| matches!(&tree.node(id).kind, NodeKind::Symlink(target) if target.len() > TARGET_LEN_MAX),
    );
    let file_type = |id: NodeId| tree.node(id).kind.file_type();
    let mtime = |id: NodeId| tree.node(id).meta.mtime;
    losses.refused("times before 1970 become 1970", |id| mtime(id).seconds < 0);
    losses.refused("times after 2106 become 2106-02-07", |id| mtime(id).seconds > i64::from(u32::MAX));
    losses.told("times lose their fractions of a second", |id| mtime(id).nanos != 0);
    losses.told("times of links, devices, fifos and sockets become that of the image", |id| {
        !has_time(version, file_type(id))
    });
    losses.refused("extended attributes are left out", |id| tree.node(id).xattrs != XattrsId::NONE);
    losses.refused("hard links become files of their own, which share their data", |id| {
        let node = tree.node(id);
        !version.has_numbers() && !node.is_dir() && node.links > 1
    });
    losses.refused("device numbers above 255 are cut to 8 bits", |id| match tree.node(id).kind {
        NodeKind::BlockDevice(number) | NodeKind::CharDevice(number) => {
            number.major > 255 || number.minor > 255
        }
        _ => false,
    });
    losses.finish()
}
