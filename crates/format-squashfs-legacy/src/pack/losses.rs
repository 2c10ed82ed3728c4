//! What old Squashfs images cannot hold of a tree, named before anything is written.

use crate::disk::Version;
use packfs_core::{DeviceNumber, FileType, Loss, NodeId, NodeKind, Timestamp, Tree, XattrsId};

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

/// Every kind of loss, with how many nodes it concerns.
pub(super) fn find(tree: &Tree, version: Version) -> Vec<Loss> {
    let mut losses = Vec::new();
    let mut add = |what: &str, refused: bool, concerns: &dyn Fn(NodeId) -> bool| {
        let mut found = tree.nodes().map(|(id, _)| id).filter(|&id| concerns(id));
        if let Some(first) = found.next() {
            let (count, example) = (1 + found.count() as u64, tree.path(first));
            losses.push(Loss { what: what.into(), count, example, refused });
        }
    };
    let file_type = |id: NodeId| tree.node(id).kind.file_type();
    let mtime = |id: NodeId| tree.node(id).meta.mtime;
    add("times before 1970 become 1970", true, &|id| mtime(id).seconds < 0);
    add("times after 2106 become 2106-02-07", true, &|id| mtime(id).seconds > i64::from(u32::MAX));
    add("times lose their fractions of a second", false, &|id| mtime(id).nanos != 0);
    add("times of links, devices, fifos and sockets become that of the image", false, &|id| {
        !has_time(version, file_type(id))
    });
    add("extended attributes are left out", true, &|id| tree.node(id).xattrs != XattrsId::NONE);
    add("hard links become files of their own, which share their data", true, &|id| {
        let node = tree.node(id);
        !version.has_numbers() && !node.is_dir() && node.links > 1
    });
    add("device numbers above 255 are cut to 8 bits", true, &|id| match tree.node(id).kind {
        NodeKind::BlockDevice(number) | NodeKind::CharDevice(number) => {
            number.major > 255 || number.minor > 255
        }
        _ => false,
    });
    losses
}
