//! Losses: metadata of a tree that cramfs cannot represent, reported before anything is written.

use super::bounds::CAPABILITIES;
use super::dirs::listing_len;
use crate::disk::{NAME_LEN_MAX, SIZE_END};
use packfs_core::{Loss, Losses, NodeKind, Tree};

fn contents_len(kind: &NodeKind) -> u64 {
    match kind {
        NodeKind::File { len, .. } => *len,
        NodeKind::Symlink(target) => target.len() as u64,
        _ => 0,
    }
}

/// Returns every kind of loss with its number of nodes.
pub(super) fn find(tree: &Tree) -> Vec<Loss> {
    let mut losses = Losses::new(tree);
    let most = SIZE_END - 1;
    losses.fatal(&format!("files and link targets of more than the {most} bytes that cramfs holds"), |id| {
        contents_len(&tree.node(id).kind) > most
    });
    losses.fatal_names(&format!("names of more than the {NAME_LEN_MAX} bytes that cramfs holds"), |name| {
        name.len() > NAME_LEN_MAX
    });
    losses.fatal(
        &format!("directories whose entries need more than the {most} bytes that cramfs holds"),
        |id| listing_len(tree, id) > most,
    );
    losses.fatal(
        "links to nowhere",
        |id| matches!(&tree.node(id).kind, NodeKind::Symlink(to) if to.is_empty()),
    );
    CAPABILITIES.find_losses(tree, &mut losses);
    losses.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::{ContentId, DeviceNumber, ImagePath, Meta, Owner, TreeBuilder, Xattrs};

    fn tree_of(path: &[u8], kind: NodeKind) -> Tree {
        let mut builder = TreeBuilder::new(Meta::default());
        builder.add(&ImagePath::parse(path).unwrap(), kind, Meta::default(), Xattrs::new()).unwrap();
        builder.finish().unwrap()
    }

    #[test]
    fn refuses_all_that_has_no_place_at_once() {
        let file = |len| NodeKind::File { len, content: ContentId(0) };
        let fatal = |tree: &Tree| find(tree).into_iter().filter(|loss| loss.fatal).collect::<Vec<_>>();
        for (len, allowed) in [(SIZE_END - 1, true), (SIZE_END, false), (u64::MAX, false)] {
            assert_eq!(fatal(&tree_of(b"big", file(len))).is_empty(), allowed, "{len}");
        }
        for (len, allowed) in [(252, true), (253, false)] {
            let tree = tree_of(&[&b"dir/"[..], &vec![b'n'; len]].concat(), NodeKind::Fifo);
            assert_eq!(fatal(&tree).is_empty(), allowed, "{len}");
        }
        let mut builder = TreeBuilder::new(Meta::default());
        for (path, kind) in [
            (&b"a"[..], file(SIZE_END)),
            (b"b", NodeKind::Symlink(Box::default())),
            (b"c", file(SIZE_END)),
            (&[b'n'; 253], NodeKind::Fifo),
        ] {
            builder.add(&ImagePath::parse(path).unwrap(), kind, Meta::default(), Xattrs::new()).unwrap();
        }
        let found = fatal(&builder.finish().unwrap());
        let told: Vec<_> = found.iter().map(|loss| (loss.refused, loss.count, loss.more.len())).collect();
        assert_eq!(told, [(true, 2, 1), (true, 1, 0), (true, 1, 0)], "{found:?}");
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
        assert_eq!(CAPABILITIES.held_owner(meta.owner), Owner { uid: 34_464, gid: 0 });
        assert_eq!(CAPABILITIES.held_device(number), DeviceNumber { major: 3, minor: 44 });
        assert_eq!(find(&tree_of(b"a", NodeKind::Fifo)), []);
    }
}
