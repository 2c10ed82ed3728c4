//! Purposes of an image, and the files that stand for them.

use crate::words;
use crate::workload::Random;
use packfs::{NodeId, NodeKind, Tree};
use serde::{Deserialize, Serialize};

/// Share of all files that a start of a system or program reads, without a list of them.
const BOOT_SHARE: f64 = 0.2;
/// Files that the founding documents read at random.
const RANDOM_FILES: usize = 500;
/// Most bytes that a workload reads: more of the same tells nothing new, and a slow device takes
/// minutes for it.
const BYTES_MAX: u64 = 192 << 20;

/// Purpose of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Want {
    /// The fewest bytes that are read in acceptable time.
    Size,
    /// Files read soon after one another in the order of the tree, as by a system that starts.
    Boot,
    /// Files read here and there.
    Random,
    /// An image that is made soon.
    Build,
}

impl Want {
    /// Every want.
    pub const ALL: [Want; 4] = [Want::Size, Want::Boot, Want::Random, Want::Build];

    /// The name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Want::Size => "size",
            Want::Boot => "boot",
            Want::Random => "random",
            Want::Build => "build",
        }
    }

    /// The want of a name.
    pub fn named(name: &str) -> Option<Want> {
        words::named(name)
    }

    /// True if a trace says what is read.
    pub fn reads_trace(self) -> bool {
        self != Want::Random
    }

    /// The files that are read, in their order: `traced` where there are any. The same for the same
    /// tree and seed.
    pub fn files(self, tree: &Tree, traced: &[NodeId], seed: u64) -> Vec<NodeId> {
        let with_bytes = |id: &NodeId| len_of(tree, *id) > 0;
        if !traced.is_empty() && self.reads_trace() {
            return within_bytes(tree, traced.iter().copied().filter(with_bytes));
        }
        let all: Vec<NodeId> = tree.nodes().map(|(id, _)| id).filter(with_bytes).collect();
        let mut random = Random(seed ^ 0x00f1_1e50);
        if self == Want::Random {
            let mut drawn: Vec<(u64, NodeId)> = all.into_iter().map(|id| (random.next(), id)).collect();
            drawn.sort_unstable();
            drawn.truncate(RANDOM_FILES);
            return within_bytes(tree, drawn.into_iter().map(|(_, id)| id));
        }
        let bytes: u64 = all.iter().map(|&id| len_of(tree, id)).sum();
        let share = BOOT_SHARE.min(BYTES_MAX as f64 / bytes.max(1) as f64);
        let picked: Vec<NodeId> = all.iter().copied().filter(|_| random.fraction() < share).collect();
        // Of very few files none may have been picked.
        let picked = if picked.is_empty() { all.into_iter().take(1).collect() } else { picked };
        within_bytes(tree, picked.into_iter())
    }

    /// Returns the workload in words.
    pub fn workload_words(self, files: usize, traced: bool) -> String {
        let count = if files == 1 { "1 file".to_string() } else { format!("{files} files") };
        match (self, traced) {
            (Want::Random, _) => format!("{count} in random order"),
            (_, true) => format!("the {count} of the trace in its order"),
            _ => format!("{count}, picked at random, in the order of the tree"),
        }
    }
}

/// Files up to [`BYTES_MAX`] together, but always one.
fn within_bytes(tree: &Tree, files: impl Iterator<Item = NodeId>) -> Vec<NodeId> {
    let mut bytes = 0_u64;
    let mut kept = Vec::new();
    for id in files {
        let len = len_of(tree, id);
        if kept.is_empty() || bytes.saturating_add(len) <= BYTES_MAX {
            bytes = bytes.saturating_add(len);
            kept.push(id);
        }
    }
    kept
}

/// The length of a file; 0 for anything else.
pub(super) fn len_of(tree: &Tree, id: NodeId) -> u64 {
    match tree.node(id).kind {
        NodeKind::File { len, .. } => len,
        _ => 0,
    }
}
