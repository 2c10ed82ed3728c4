//! The tables of users and groups, with indexes of one byte.

use packfs_core::{Error, Result, Tree};
use std::collections::HashMap;

const USER_COUNT_MAX: usize = 256;
/// One index less, as the last one means the number of the user.
const GROUP_COUNT_MAX: usize = 255;
/// Index of a group whose number equals that of the user.
const SAME_AS_USER: u8 = 255;

/// Users and groups of a tree, in order of first use.
pub(super) struct Owners {
    users: Ids,
    groups: Ids,
}

#[derive(Default)]
struct Ids {
    ids: Vec<u32>,
    index_of: HashMap<u32, u8>,
}

impl Ids {
    fn add(&mut self, id: u32, max: usize, what: &str) -> Result<()> {
        if self.index_of.contains_key(&id) {
            return Ok(());
        }
        if self.ids.len() == max {
            let message =
                format!("squashfs before 4.0 holds at most {max} different {what}, this tree has more");
            return Err(Error::failed(message).hint("map some of them together"));
        }
        self.index_of.insert(id, self.ids.len() as u8);
        self.ids.push(id);
        Ok(())
    }

    fn index(&self, id: u32) -> u8 {
        self.index_of.get(&id).copied().unwrap_or_default()
    }
}

impl Owners {
    /// Errors: `Failed` if more exist than indexes.
    pub(super) fn new(tree: &Tree) -> Result<Self> {
        let mut owners = Owners { users: Ids::default(), groups: Ids::default() };
        for (_, node) in tree.nodes() {
            let owner = node.meta.owner;
            owners.users.add(owner.uid, USER_COUNT_MAX, "users")?;
            if owner.gid != owner.uid {
                owners.groups.add(owner.gid, GROUP_COUNT_MAX, "groups")?;
            }
        }
        Ok(owners)
    }

    pub(super) fn indexes(&self, owner: packfs_core::Owner) -> (u8, u8) {
        let group = if owner.gid == owner.uid { SAME_AS_USER } else { self.groups.index(owner.gid) };
        (self.users.index(owner.uid), group)
    }

    pub(super) fn users(&self) -> &[u32] {
        &self.users.ids
    }

    pub(super) fn groups(&self) -> &[u32] {
        &self.groups.ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::{ImagePath, Meta, NodeKind, Owner, TreeBuilder, Xattrs};

    fn tree(owners: impl Iterator<Item = Owner>) -> Tree {
        let mut builder = TreeBuilder::new(Meta::default());
        for (index, owner) in owners.enumerate() {
            let path = ImagePath::parse(format!("f{index}").as_bytes()).unwrap();
            builder.add(&path, NodeKind::Fifo, Meta { owner, ..Meta::default() }, Xattrs::new()).unwrap();
        }
        builder.finish().unwrap()
    }

    #[test]
    fn a_group_of_the_users_number_takes_no_row() {
        let owners =
            Owners::new(&tree([Owner { uid: 7, gid: 7 }, Owner { uid: 7, gid: 0 }].into_iter())).unwrap();
        assert_eq!((owners.users(), owners.groups()), (&[0, 7][..], &[0][..]));
        assert_eq!(owners.indexes(Owner { uid: 7, gid: 7 }), (1, 255));
        assert_eq!(owners.indexes(Owner { uid: 7, gid: 0 }), (1, 0));
    }

    #[test]
    fn one_owner_more_than_the_format_holds_is_refused() {
        // The root is user 0.
        let users = |count: u32| Owners::new(&tree((1..count).map(|uid| Owner { uid, gid: uid })));
        assert_eq!(users(256).unwrap().users().len(), 256);
        assert!(users(257).is_err());
        let groups = |count: u32| Owners::new(&tree((1..=count).map(|gid| Owner { uid: 0, gid })));
        assert_eq!(groups(255).unwrap().groups().len(), 255);
        assert!(groups(256).is_err());
    }
}
