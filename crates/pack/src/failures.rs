//! Files that could not be read and are stored empty, if the caller allows that.

use packfs_core::{Error, NodeId, Progress};

#[derive(Default)]
pub(crate) struct Failures {
    pub nodes: Vec<NodeId>,
    pub messages: Vec<String>,
}

impl Failures {
    /// Records each file only once.
    pub(crate) fn add(&mut self, node: NodeId, error: &Error, progress: &dyn Progress) {
        if !self.is_last(node) {
            self.nodes.push(node);
            self.messages.push(error.to_string());
            progress.warn(&format!("stored empty: {error}"));
        }
    }

    pub(crate) fn is_last(&self, node: NodeId) -> bool {
        self.nodes.last() == Some(&node)
    }
}
