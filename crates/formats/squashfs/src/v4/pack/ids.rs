//! The table of user and group ids.

use packfs_core::{Error, Result, Tree};
use std::collections::HashMap;

/// The count of ids has 16 bits, and 65,536 would wrap to 0.
const ID_COUNT_MAX: usize = 65_535;

/// Ids of a tree, in order of first use.
pub(super) struct Ids {
    pub ids: Vec<u32>,
    index_of: HashMap<u32, u16>,
}

impl Ids {
    /// Errors: `Failed` if the tree has more.
    pub(super) fn new(tree: &Tree) -> Result<Self> {
        let mut ids = Ids { ids: Vec::new(), index_of: HashMap::new() };
        for (_, node) in tree.nodes() {
            ids.add(node.meta.owner.uid)?;
            ids.add(node.meta.owner.gid)?;
        }
        Ok(ids)
    }

    fn add(&mut self, id: u32) -> Result<()> {
        if self.index_of.contains_key(&id) {
            return Ok(());
        }
        if self.ids.len() == ID_COUNT_MAX {
            let message = format!(
                "squashfs holds at most {ID_COUNT_MAX} different user and group ids, this tree has more"
            );
            return Err(Error::failed(message).hint("map some of them together"));
        }
        self.index_of.insert(id, self.ids.len() as u16);
        self.ids.push(id);
        Ok(())
    }

    pub(super) fn index(&self, id: u32) -> u16 {
        self.index_of.get(&id).copied().unwrap_or_default()
    }
}
