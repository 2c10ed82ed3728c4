//! What EROFS cannot hold of a tree, named before anything is written.

use super::xattrs::split_name;
use packfs_core::{Loss, NodeId, Tree, Xattrs};

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
    let mut losses = Vec::new();
    let mut add = |what: &str, refused: bool, concerns: &dyn Fn(NodeId) -> bool| {
        let mut found = tree.nodes().map(|(id, _)| id).filter(|&id| concerns(id));
        if let Some(first) = found.next() {
            let (count, example) = (1 + found.count() as u64, tree.path(first));
            losses.push(Loss { what: what.into(), count, example, refused });
        }
    };
    let sets = |any: &dyn Fn(&Xattrs) -> bool| tree.xattr_sets().iter().map(any).collect::<Vec<bool>>();
    let unknown = sets(&|set| set.keys().any(|name| split_name(name).is_none()));
    add(
        "extended attributes other than user, trusted, security, lustre and ACLs are left out",
        true,
        &|id| unknown[tree.node(id).xattrs.0 as usize],
    );
    let long = sets(&|set| set.values().any(|value| value.len() > VALUE_LEN_MAX));
    add("extended attributes of more than 65,535 bytes are left out", true, &|id| {
        long[tree.node(id).xattrs.0 as usize]
    });
    if !times_kept {
        add("times become the epoch, as times=epoch says", false, &|_| true);
    }
    losses
}
