//! Losses: metadata of a tree that EROFS cannot represent, reported before anything is written.

use super::xattr_names::{Names, split_name};
use crate::options::Options;
use packfs_core::{Loss, Losses, Tree, Xattrs};
use packfs_format::{Capabilities, Times, XattrLoss};

pub(super) const VALUE_LEN_MAX: usize = 65_535;

/// Returns the metadata that images store, with or without individual times.
pub(super) fn capabilities(times_kept: bool) -> Capabilities {
    let times = if times_kept { Times::Nanoseconds } else { Times::Unheld };
    Capabilities { times, xattr_losses: &XATTR_LOSSES, ..Capabilities::ALL }
}

static XATTR_LOSSES: [XattrLoss; 2] = [
    // Must be the first, as `find` replaces it.
    XattrLoss {
        what: "extended attributes other than user, trusted, security, lustre and ACLs are left out",
        concerns: |name, _| split_name(name).is_none(),
    },
    XattrLoss {
        what: "extended attributes of more than 65,535 bytes are left out",
        concerns: |_, value| value.len() > VALUE_LEN_MAX,
    },
];

/// Returns every kind of loss with its number of nodes.
pub(super) fn find(tree: &Tree, options: &Options) -> Vec<Loss> {
    let (mut losses, times_kept) = (Losses::new(tree), options.typed.times);
    let ([foreign, others @ ..], names) = (&XATTR_LOSSES, Names::new(options));
    let has_foreign = |set: &Xattrs| set.keys().any(|name| names.split(name).is_none());
    let sets: Vec<bool> = tree.xattr_sets().iter().map(has_foreign).collect();
    losses.refused(foreign.what, |id| sets[tree.node(id).xattrs.0 as usize]);
    let capabilities = Capabilities { xattr_losses: others, ..capabilities(times_kept) };
    capabilities.find_losses(tree, &mut losses);
    if !times_kept {
        losses.tolerable("times become the epoch, as times=epoch says", |_| true);
    }
    losses.finish()
}
