//! Files that could not be read and are stored empty, if the caller allows that.

use packfs_core::{Error, NodeId, Progress};

/// Failures so far.
#[derive(Default)]
pub(crate) struct Failures {
    /// The nodes, in plan order.
    pub nodes: Vec<NodeId>,
    /// Their error messages.
    pub messages: Vec<String>,
}

impl Failures {
    /// Records a file that cannot be read, once.
    pub(crate) fn add(&mut self, node: NodeId, error: &Error, progress: &dyn Progress) {
        if !self.is_last(node) {
            self.nodes.push(node);
            self.messages.push(error.to_string());
            progress.warn(&format!("stored empty: {error}"));
        }
    }

    /// Returns true if this file was recorded last.
    pub(crate) fn is_last(&self, node: NodeId) -> bool {
        self.nodes.last() == Some(&node)
    }
}
