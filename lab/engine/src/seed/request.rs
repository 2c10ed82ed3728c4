//! Extent of the reproduction of a document.

use super::Document;
use crate::results::Settings;
use crate::session::Plan;
use crate::trees::PlannedTree;

/// Trees of a document, and the part of it that is measured.
#[derive(Clone, Debug, Default)]
pub struct DocumentRequest {
    /// Bytes that trees are cut down to, if neither those of `quick` nor the document's will do.
    pub part: Option<u64>,
    /// Trees in the order of the document's own.
    pub roles: Roles,
    /// Devices instead of the document's own; empty for these.
    pub devices: Vec<String>,
    /// The settings; 0 runs for 1 if it is to be quick, or else the document's number.
    pub settings: Settings,
    /// True if file systems that are written are measured on LUKS, too.
    pub luks: bool,
}

/// Trees by what they stand for.
#[derive(Clone, Debug, Default)]
pub struct Roles(pub Vec<PlannedTree>);

impl Roles {
    /// The `id` of the tree that stands for the document's tree of this number; of the first where
    /// there are fewer.
    pub fn id(&self, number: usize) -> &str {
        self.0.get(number).or(self.0.first()).map_or("", |tree| &tree.facts.id)
    }
}

impl DocumentRequest {
    /// Bytes that trees are cut down to; none for all of them.
    pub(super) fn tree_bytes(&self, document: &Document) -> Option<u64> {
        let mib = if self.settings.quick { Some(document.quick_mib) } else { document.part_mib };
        self.part.or(mib.map(|mib| mib << 20))
    }

    /// A plan without a cell.
    pub(super) fn empty_plan(&self, document: &Document) -> Plan {
        let settings = self.settings.or_runs(if self.settings.quick { 1 } else { document.runs });
        let mut plan = Plan { title: document.name.clone(), settings, ..Plan::default() };
        for tree in &self.roles.0 {
            if plan.tree(&tree.facts.id).is_none() {
                plan.trees.push(tree.clone());
            }
        }
        plan
    }

    pub(super) fn devices<'a>(&'a self, own: &'a [String]) -> &'a [String] {
        if self.devices.is_empty() { own } else { &self.devices }
    }
}
