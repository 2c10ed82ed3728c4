//! What cramfs cannot hold of a tree, named before anything is written.

use crate::disk::{NAME_LEN_MAX, SIZE_END};
use packfs_core::{DeviceNumber, Error, Loss, Node, NodeId, NodeKind, Owner, Result, Tree, XattrsId};

/// The owner that an image says: 16 bits of the user, 8 bits of the group.
pub(super) fn held_owner(owner: Owner) -> Owner {
    Owner { uid: owner.uid & 0xffff, gid: owner.gid & 0xff }
}

/// The device that kernels read: 8 bits of either number.
pub(super) fn held_device(number: DeviceNumber) -> DeviceNumber {
    DeviceNumber { major: number.major & 0xff, minor: number.minor & 0xff }
}

/// All that an inode says of a node but for its contents, as one number.
pub(super) fn inode_key(node: &Node) -> u64 {
    let owner = held_owner(node.meta.owner);
    u64::from(node.meta.mode) << 24 | u64::from(owner.uid) << 8 | u64::from(owner.gid)
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
    let owner = |id: NodeId| tree.node(id).meta.owner;
    add("users above 65,535 lose all but 16 bits", true, &|id| held_owner(owner(id)).uid != owner(id).uid);
    add("groups above 255 lose all but 8 bits", true, &|id| held_owner(owner(id)).gid != owner(id).gid);
    add("device numbers above 255 lose all but 8 bits", true, &|id| match tree.node(id).kind {
        NodeKind::BlockDevice(number) | NodeKind::CharDevice(number) => held_device(number) != number,
        _ => false,
    });
    add("extended attributes are left out", true, &|id| tree.node(id).xattrs != XattrsId::NONE);
    add("hard links become files of their own, which share their data", false, &|id| {
        let node = tree.node(id);
        !node.is_dir() && node.links > 1
    });
    add("times become 1970", false, &|id| tree.node(id).meta.mtime != Default::default());
    losses
}

/// Errors: `Failed` for what has no place in an inode and cannot be stored in part.
pub(super) fn refuse_what_cannot_be_cut(tree: &Tree) -> Result<()> {
    for (id, node) in tree.nodes() {
        let len = match &node.kind {
            NodeKind::File { len, .. } => *len,
            NodeKind::Symlink(target) => target.len() as u64,
            _ => 0,
        };
        if len >= SIZE_END {
            let message = format!(
                "{:?} is {len} bytes long, cramfs holds at most {} bytes in a file",
                tree.path(id),
                SIZE_END - 1
            );
            return Err(Error::failed(message).hint("leave it out, or pack squashfs or erofs"));
        }
    }
    let mut walk = tree.walk();
    while let Some((path, _)) = walk.next() {
        let name_len = path.file_name().map_or(0, |name| name.as_bytes().len());
        if name_len > NAME_LEN_MAX {
            let message =
                format!("{path:?} has a name of {name_len} bytes, cramfs holds at most {NAME_LEN_MAX}");
            return Err(Error::failed(message).hint("leave it out, or pack squashfs or erofs"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::{ContentId, ImagePath, Meta, TreeBuilder, Xattrs};

    fn tree_of(path: &[u8], kind: NodeKind) -> Tree {
        let mut builder = TreeBuilder::new(Meta::default());
        builder.add(&ImagePath::parse(path).unwrap(), kind, Meta::default(), Xattrs::new()).unwrap();
        builder.finish().unwrap()
    }

    #[test]
    fn refuses_files_of_16_mib_and_names_beyond_252_bytes() {
        let file = |len| NodeKind::File { len, content: ContentId(0) };
        for (len, allowed) in [(SIZE_END - 1, true), (SIZE_END, false), (u64::MAX, false)] {
            assert_eq!(refuse_what_cannot_be_cut(&tree_of(b"big", file(len))).is_ok(), allowed, "{len}");
        }
        for (len, allowed) in [(252, true), (253, false)] {
            let tree = tree_of(&[&b"dir/"[..], &vec![b'n'; len]].concat(), NodeKind::Fifo);
            assert_eq!(refuse_what_cannot_be_cut(&tree).is_ok(), allowed, "{len}");
        }
    }

    #[test]
    fn names_what_would_be_cut_off() {
        let mut builder = TreeBuilder::new(Meta::default());
        let number = DeviceNumber { major: 259, minor: 300 };
        let mut meta = Meta { owner: Owner { uid: 100_000, gid: 256 }, ..Meta::default() };
        meta.mtime.seconds = 1;
        let xattrs = Xattrs::from([(b"user.a".to_vec(), b"b".to_vec())]);
        let path = |text: &[u8]| ImagePath::parse(text).unwrap();
        builder.add(&path(b"device"), NodeKind::BlockDevice(number), meta, xattrs).unwrap();
        builder.link(&path(b"again"), path(b"device")).unwrap();
        let found = find(&builder.finish().unwrap());
        let told: Vec<(bool, u64)> = found.iter().map(|loss| (loss.refused, loss.count)).collect();
        assert_eq!(told, [(true, 1), (true, 1), (true, 1), (true, 1), (false, 1), (false, 1)], "{found:?}");
        assert_eq!(held_owner(meta.owner), Owner { uid: 34_464, gid: 0 });
        assert_eq!(held_device(number), DeviceNumber { major: 3, minor: 44 });
        assert_eq!(find(&tree_of(b"a", NodeKind::Fifo)), []);
    }
}
