//! What EROFS cannot hold of a tree, named before anything is written.

use super::xattrs::split_name;
use packfs_core::{Loss, Losses, Tree, Xattrs};

/// Longest value of an xattr.
pub(super) const VALUE_LEN_MAX: usize = 65_535;

/// Most bytes of xattrs that one inode may list beside itself; what it shares with others counts 4 bytes.
pub(super) const XATTRS_LEN_MAX: u64 = 12 + 4 * 65_534;

/// Whether the format can hold an attribute.
pub(super) fn can_hold(name: &[u8], value: &[u8]) -> bool {
    split_name(name).is_some() && value.len() <= VALUE_LEN_MAX
}

/// Every kind of loss, with how many nodes it concerns.
pub(super) fn find(tree: &Tree, times_kept: bool) -> Vec<Loss> {
    let mut losses = Losses::new(tree);
    let sets = |any: &dyn Fn(&Xattrs) -> bool| tree.xattr_sets().iter().map(any).collect::<Vec<bool>>();
    let unknown = sets(&|set| set.keys().any(|name| split_name(name).is_none()));
    losses.refused(
        "extended attributes other than user, trusted, security, lustre and ACLs are left out",
        |id| unknown[tree.node(id).xattrs.0 as usize],
    );
    let long = sets(&|set| set.values().any(|value| value.len() > VALUE_LEN_MAX));
    losses.refused("extended attributes of more than 65,535 bytes are left out", |id| {
        long[tree.node(id).xattrs.0 as usize]
    });
    if !times_kept {
        losses.told("times become the epoch, as times=epoch says", |_| true);
    }
    losses.finish()
}
