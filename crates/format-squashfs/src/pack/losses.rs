//! What SquashFS cannot hold of a tree, named before anything is written.

use packfs_core::{Loss, NodeId, Timestamp, Tree};

/// Prefixes of extended attributes that have a number on disk.
pub(super) const XATTR_PREFIXES: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];

/// The number of an attribute's prefix and the rest of its name; `None` if the format cannot hold it.
pub(super) fn split_xattr_name(name: &[u8]) -> Option<(u16, &[u8])> {
    let (number, rest) = XATTR_PREFIXES
        .iter()
        .enumerate()
        .find_map(|(number, prefix)| Some((number, name.strip_prefix(*prefix)?)))?;
    (rest.len() <= usize::from(u16::MAX)).then_some((number as u16, rest))
}

/// The nearest time the format can hold: whole seconds from 1970 to 2106.
pub(super) fn stored_time(time: Timestamp) -> u32 {
    u32::try_from(time.seconds.max(0)).unwrap_or(u32::MAX)
}

/// Every kind of loss, with how many nodes it concerns.
pub(super) fn find(tree: &Tree) -> Vec<Loss> {
    let mut losses = Vec::new();
    let mut add = |what: &str, refused: bool, concerns: &dyn Fn(NodeId) -> bool| {
        let mut found = tree.nodes().map(|(id, _)| id).filter(|&id| concerns(id));
        if let Some(first) = found.next() {
            let (count, example) = (1 + found.count() as u64, tree.path(first));
            losses.push(Loss { what: what.into(), count, example, refused });
        }
    };
    let mtime = |id: NodeId| tree.node(id).meta.mtime;
    add("times before 1970 become 1970", true, &|id| mtime(id).seconds < 0);
    add("times after 2106 become 2106-02-07", true, &|id| mtime(id).seconds > i64::from(u32::MAX));
    add("times lose their fractions of a second", false, &|id| mtime(id).nanos != 0);
    let unheld: Vec<bool> =
        tree.xattr_sets().iter().map(|set| set.keys().any(|name| split_xattr_name(name).is_none())).collect();
    add(
        "extended attributes other than user, trusted and security (such as ACLs) are left out",
        true,
        &|id| unheld[tree.node(id).xattrs.0 as usize],
    );
    losses
}
