//! Losses: metadata of a tree that ISO 9660 with Rock Ridge and AAIP cannot represent, reported
//! before anything is written.

use super::{FILE_LEN_MAX, components, file_len};
use crate::options::Options;
use packfs_core::FileType;
use packfs_core::{Loss, Losses, NodeId, NodeKind, Timestamp, Tree, Xattrs};
use packfs_format::{Capabilities, Times, XattrLoss};

/// Limit of names and values of one file: readers limit continuation areas, and Linux refuses files
/// with more.
const XATTRS_LEN_MAX: usize = 48 << 10;

/// Years are a byte. Names in `isofs.` are reserved for writers.
pub(super) const CAPABILITIES: Capabilities = Capabilities {
    times: Times::Seconds {
        min: -2_208_988_800,
        max: 5_869_583_999,
        first_year: "1900",
        last_day: "2155-12-31",
    },
    xattr_losses: &[XattrLoss {
        what: "extended attributes of more than 12 KiB, or in isofs., are left out",
        concerns: |name, value| name.starts_with(b"isofs.") || name.len() + value.len() > XATTRS_LEN_MAX / 4,
    }],
    ..Capabilities::ALL
};

/// Returns the nearest time that images can store, in seconds since 1970.
pub(super) fn stored_seconds(time: Timestamp) -> i64 {
    CAPABILITIES.held_time(FileType::File, time).map_or(0, |time| time.seconds)
}

/// Returns the attributes of a set that are written.
pub(super) fn held_xattrs(xattrs: &Xattrs) -> impl Iterator<Item = (&Vec<u8>, &Vec<u8>)> {
    xattrs.iter().filter(|(name, value)| CAPABILITIES.holds_xattr(name, value))
}

/// True if the written attributes of a set fit.
pub(super) fn have_room(xattrs: &Xattrs) -> bool {
    held_xattrs(xattrs).map(|(name, value)| name.len() + value.len() + 16).sum::<usize>() <= XATTRS_LEN_MAX
}

/// Returns every kind of loss with its number of nodes.
pub(super) fn find(tree: &Tree, options: &Options) -> Vec<Loss> {
    let mut losses = Losses::new(tree);
    CAPABILITIES.find_losses(tree, &mut losses);
    losses.refused(
        "link targets lose the slash at their end",
        |id| matches!(&tree.node(id).kind, NodeKind::Symlink(target) if !components::holds_target(target)),
    );
    let full: Vec<bool> = tree.xattr_sets().iter().map(|set| !have_room(set)).collect();
    losses.fatal("more extended attributes than the 48 KiB that iso9660 holds of a file", |id| {
        full[tree.node(id).xattrs.0 as usize]
    });
    let what = format!("files of more than the {FILE_LEN_MAX} bytes that iso9660 holds");
    losses.fatal(&what, |id| file_len(&tree.node(id).kind) > FILE_LEN_MAX);
    if options.joliet.is_some() && options.codec.is_some() {
        losses
            .tolerable("Windows and others that show the Joliet tree do not decode compressed files", |id| {
                id == NodeId::ROOT
            });
    }
    losses.finish()
}
