//! Files that could not be read, when that does not end the work: they are stored empty.

use packfs_core::{Error, NodeId, Progress};

/// Those found so far.
#[derive(Default)]
pub(crate) struct Failures {
    /// The nodes, in the order of the plan.
    pub nodes: Vec<NodeId>,
    /// Why.
    pub messages: Vec<String>,
}

impl Failures {
    /// Notes that a file cannot be read, once.
    pub(crate) fn add(&mut self, node: NodeId, error: &Error, progress: &dyn Progress) {
        if !self.is_last(node) {
            self.nodes.push(node);
            self.messages.push(error.to_string());
            progress.warn(&format!("stored empty: {error}"));
        }
    }

    /// Whether the file noted last is this one.
    pub(crate) fn is_last(&self, node: NodeId) -> bool {
        self.nodes.last() == Some(&node)
    }
}
