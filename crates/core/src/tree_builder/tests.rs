//! Trees are the same whatever the order of their entries, and refuse what cannot be.

use super::*;
use crate::ContentId;

fn path(text: &str) -> ImagePath {
    ImagePath::parse(text.as_bytes()).unwrap()
}

fn file(len: u64) -> NodeKind {
    NodeKind::File { len, content: ContentId(0) }
}

fn add(builder: &mut TreeBuilder, at: &str, kind: NodeKind) {
    builder.add(&path(at), kind, Meta::default(), Xattrs::new()).unwrap();
}

fn listing(tree: &Tree) -> Vec<(String, u32)> {
    let mut walk = tree.walk();
    let mut rows = Vec::new();
    while let Some((path, id)) = walk.next() {
        assert!(tree.find(path) == Some(id), "{path:?} is found again");
        rows.push((path.to_string(), id.0));
    }
    rows
}

#[test]
fn numbers_nodes_depth_first_for_any_order_of_entries() {
    let mut a = TreeBuilder::new(Meta::default());
    for at in ["b/y", "a", "b/x", "c"] {
        add(&mut a, at, file(1));
    }
    let mut b = TreeBuilder::new(Meta::default());
    for at in ["c", "b/x", "b/y", "a"] {
        add(&mut b, at, file(1));
    }
    let (a, b) = (a.finish().unwrap(), b.finish().unwrap());
    assert_eq!(listing(&a), listing(&b));
    let names: Vec<_> = listing(&a).into_iter().map(|row| row.0).collect();
    assert_eq!(names, ["/", "a", "b", "b/x", "b/y", "c"]);
    assert_eq!(a.node(NodeId::ROOT).links, 3);
    assert_eq!(a.path(NodeId(3)), path("b/x"));
}

#[test]
fn hard_links_share_one_node_even_when_the_target_comes_later() {
    let mut builder = TreeBuilder::new(Meta::default());
    builder.link(&path("a"), path("z")).unwrap();
    builder.link(&path("m"), path("a")).unwrap();
    add(&mut builder, "z", file(3));
    let tree = builder.finish().unwrap();
    let a = tree.find(&path("a")).unwrap();
    assert_eq!(Some(a), tree.find(&path("z")));
    assert_eq!(Some(a), tree.find(&path("m")));
    assert_eq!(tree.node(a).links, 3);
    assert_eq!((tree.node_count(), tree.entry_count()), (2, 3));
}

#[test]
fn refuses_hard_links_that_lead_nowhere_or_in_circles() {
    for (links, fault) in [
        (&[("a", "b")][..], "no such file"),
        (&[("a", "b"), ("b", "a")], "circle"),
        (&[("a", "a")], "circle"),
        (&[("a", "d")], "is a directory"),
    ] {
        let mut builder = TreeBuilder::new(Meta::default());
        add(&mut builder, "d", NodeKind::Directory);
        for (from, to) in links {
            builder.link(&path(from), path(to)).unwrap();
        }
        let error = builder.finish().unwrap_err().to_string();
        assert!(error.contains(fault), "{error}");
    }
}

#[test]
fn hard_links_may_lead_over_any_number_of_others() {
    const COUNT: u32 = 100_000;
    // In both orders of names, so that chains are followed from their beginning and from their end.
    for name in [|index| format!("{index:06}"), |index| format!("{:06}", COUNT - index)] {
        let mut builder = TreeBuilder::new(Meta::default());
        for index in 0..COUNT {
            builder.link(&path(&name(index)), path(&name(index + 1))).unwrap();
        }
        add(&mut builder, &name(COUNT), file(1));
        let tree = builder.finish().unwrap();
        assert_eq!((tree.node_count(), tree.entry_count()), (2, COUNT as usize + 1));
    }
}

#[test]
fn a_circle_at_the_end_of_a_chain_is_found() {
    let mut builder = TreeBuilder::new(Meta::default());
    for index in 0..1000 {
        let next = if index == 999 { 900 } else { index + 1 };
        builder.link(&path(&index.to_string()), path(&next.to_string())).unwrap();
    }
    assert!(builder.finish().unwrap_err().to_string().contains("circle"));
}

#[test]
fn the_last_entry_of_a_name_wins_and_a_directory_keeps_its_children() {
    let mut builder = TreeBuilder::new(Meta::default());
    add(&mut builder, "d/x", file(1));
    add(&mut builder, "d", NodeKind::Directory);
    add(&mut builder, "d/x", file(2));
    let tree = builder.finish().unwrap();
    let x = tree.find(&path("d/x")).unwrap();
    assert_eq!(tree.node(x).kind, file(2));
    assert_eq!(tree.node_count(), 3);
}

#[test]
fn a_hard_link_keeps_what_it_was_made_to() {
    let mut builder = TreeBuilder::new(Meta::default());
    add(&mut builder, "a", file(1));
    builder.link(&path("b"), path("a")).unwrap();
    // As an archive has it that names the same file twice.
    builder.link(&path("b"), path("b")).unwrap();
    add(&mut builder, "a", file(2));
    let tree = builder.finish().unwrap();
    let kind = |at: &str| tree.node(tree.find(&path(at)).unwrap()).kind.clone();
    assert_eq!((kind("a"), kind("b")), (file(2), file(1)));
    assert_eq!(tree.node_count(), 3);
}

#[test]
fn nothing_replaces_a_directory_with_entries_in_it() {
    let mut builder = TreeBuilder::new(Meta::default());
    add(&mut builder, "full/x", file(1));
    add(&mut builder, "empty", NodeKind::Directory);
    let replaced = builder.add(&path("full"), file(2), Meta::default(), Xattrs::new());
    assert!(replaced.unwrap_err().to_string().contains("with entries"));
    assert!(builder.link(&path("full"), path("full/x")).is_err());
    add(&mut builder, "empty", file(2));
    assert!(builder.finish().is_ok());
}

#[test]
fn refuses_entries_below_something_that_is_no_directory() {
    let mut builder = TreeBuilder::new(Meta::default());
    add(&mut builder, "link", NodeKind::Symlink(b"/etc".as_slice().into()));
    let error = builder.add(&path("link/passwd"), file(1), Meta::default(), Xattrs::new()).unwrap_err();
    assert!(error.to_string().contains("below a symlink"), "{error}");
}

#[test]
fn replacing_a_directory_removes_its_entries() {
    let mut builder = TreeBuilder::new(Meta::default());
    for at in ["d/x/deep", "d/y", "z", "e/kept"] {
        add(&mut builder, at, file(1));
    }
    let kept = builder.find(&path("d/y")).unwrap();
    builder.link_child(BuildId::ROOT, Name::new(b"k").unwrap(), kept);
    builder.add_child(BuildId::ROOT, Name::new(b"d").unwrap(), file(2), Meta::default(), Xattrs::new());
    let (tree, builds) = builder.finish_numbered().unwrap();
    let names: Vec<_> = listing(&tree).into_iter().map(|row| row.0).collect();
    assert_eq!(names, ["/", "d", "e", "e/kept", "k", "z"]);
    assert_eq!(builds.len(), 6);
    let at = |text: &str| tree.find(&path(text)).unwrap();
    assert_eq!((builds[at("k").index()], tree.node(at("k")).links), (kept, 1));
    assert_eq!(tree.node(at("d")).kind, file(2));
    assert_eq!(tree.node(NodeId::ROOT).links, 3);
}
