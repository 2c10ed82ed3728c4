//! Differences of names and metadata.

use packfs_check::{Change, DiffOptions, Difference, Side, diff};
use packfs_core::{
    DeviceNumber, Error, ErrorKind, FileType, Held, Meta, NodeKind, Owner, Progress, Silent, Timestamp,
    TreeBuilder, Xattrs,
};
use packfs_testkit::path;

struct Made {
    builder: TreeBuilder,
    contents: Held,
}

impl Made {
    fn new() -> Self {
        Made { builder: TreeBuilder::new(Meta::default()), contents: Held::default() }
    }

    fn file(mut self, at: &str, bytes: &str, mode: u16) -> Self {
        let content = self.contents.push(bytes.as_bytes());
        let kind = NodeKind::File { len: bytes.len() as u64, content };
        let meta = Meta { mode, mtime: Timestamp { seconds: 1, nanos: u32::from(mode) }, ..Meta::default() };
        self.builder.add(&path(at), kind, meta, Xattrs::new()).unwrap();
        self
    }

    fn node(mut self, at: &str, kind: NodeKind, xattrs: &[(&str, &str)]) -> Self {
        let pair = |(name, value): &(&str, &str)| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        self.builder.add(&path(at), kind, Meta::default(), xattrs.iter().map(pair).collect()).unwrap();
        self
    }

    fn link(mut self, at: &str, to: &str) -> Self {
        self.builder.link(&path(at), path(to)).unwrap();
        self
    }
}

fn differences_with(options: DiffOptions, a: Made, b: Made) -> Vec<(String, Change)> {
    let (tree_a, tree_b) = (a.builder.finish().unwrap(), b.builder.finish().unwrap());
    let (a, b) =
        (Side { tree: &tree_a, contents: &a.contents }, Side { tree: &tree_b, contents: &b.contents });
    let mut found = Vec::new();
    let report = diff(a, b, options, &Silent, &mut |Difference { path, change, .. }| {
        found.push((path.to_string(), change));
    });
    assert_eq!(report.unwrap().differences, found.len() as u64);
    found
}

fn differences(a: Made, b: Made) -> Vec<(String, Change)> {
    differences_with(DiffOptions::default(), a, b)
}

#[test]
fn finds_nothing_between_equal_trees() {
    let made = || Made::new().file("a/x", "content", 0o644).file("b", "", 0o600).link("c", "a/x");
    assert_eq!(differences(made(), made()), []);
}

#[test]
fn names_every_kind_of_difference_in_path_order() {
    let a = Made::new()
        .file("content", "0123456789", 0o644)
        .file("len", "1", 0o644)
        .file("mode", "", 0o644)
        .file("only-a/x", "", 0)
        .node("attributes", NodeKind::Fifo, &[("user.a", "1"), ("user.b", "1")])
        .node("device", NodeKind::CharDevice(DeviceNumber { major: 1, minor: 3 }), &[])
        .node("target", NodeKind::Symlink(b"x".as_slice().into()), &[])
        .node("type", NodeKind::Fifo, &[]);
    let b = Made::new()
        .file("content", "01234X6789", 0o644)
        .file("len", "12", 0o644)
        .file("mode", "", 0o600)
        .file("z-only-b", "", 0)
        .node("attributes", NodeKind::Fifo, &[("user.b", "2"), ("user.c", "1")])
        .node("device", NodeKind::CharDevice(DeviceNumber { major: 1, minor: 5 }), &[])
        .node("target", NodeKind::Symlink(b"y".as_slice().into()), &[])
        .node("type", NodeKind::Socket, &[]);
    let one = |text: &str| Some(text.as_bytes().to_vec());
    let expected = [
        ("attributes", Change::Xattr(b"user.a".to_vec(), one("1"), None)),
        ("attributes", Change::Xattr(b"user.b".to_vec(), one("1"), one("2"))),
        ("attributes", Change::Xattr(b"user.c".to_vec(), None, one("1"))),
        ("content", Change::Contents(5)),
        ("device", Change::Device(DeviceNumber { major: 1, minor: 3 }, DeviceNumber { major: 1, minor: 5 })),
        ("len", Change::Len(1, 2)),
        ("mode", Change::Mode(0o644, 0o600)),
        ("only-a", Change::OnlyInA),
        ("target", Change::Target(b"x".to_vec(), b"y".to_vec())),
        ("type", Change::Type(FileType::Fifo, FileType::Socket)),
        ("z-only-b", Change::OnlyInB),
    ];
    assert_eq!(differences(a, b), expected.map(|(path, change)| (path.to_string(), change)));
}

#[test]
fn a_copy_is_not_a_hard_link() {
    let linked = Made::new().file("a", "same", 0o644).link("b", "a");
    let copied = Made::new().file("a", "same", 0o644).file("b", "same", 0o644);
    assert_eq!(differences(linked, copied), [("b".to_string(), Change::Link(path("a"), path("b")))]);
}

#[test]
fn links_are_compared_among_the_names_that_both_have() {
    let three = || Made::new().file("a", "same", 0o644).link("b", "a").link("c", "a");
    let two = || Made::new().file("b", "same", 0o644).link("c", "b");
    assert_eq!(differences(three(), two()), [("a".to_string(), Change::OnlyInA)]);
    let split = Made::new().file("a", "same", 0o644).file("b", "same", 0o644).link("c", "b");
    assert_eq!(differences(three(), split), [("b".to_string(), Change::Link(path("a"), path("b")))]);
    let other_first = Made::new().file("c", "same", 0o644).link("b", "c").link("a", "b");
    assert_eq!(differences(three(), other_first), []);
    let copies = || Made::new().file("b", "same", 0o644).file("c", "same", 0o644);
    let options = DiffOptions { links: false, ..DiffOptions::default() };
    assert_eq!(differences_with(options, two(), copies()), []);
    assert_eq!(differences(two(), copies()), [("c".to_string(), Change::Link(path("b"), path("c")))]);
}

#[test]
fn each_option_leaves_out_what_it_names_and_nothing_else() {
    let meta =
        Meta { mode: 0o600, owner: Owner { uid: 1, gid: 2 }, mtime: Timestamp { seconds: 9, nanos: 9 } };
    let file = |text: &str, meta: Meta, xattr: &[u8]| {
        let mut made = Made::new();
        let content = made.contents.push(text.as_bytes());
        let xattrs = Xattrs::from([(b"user.x".to_vec(), xattr.to_vec())]);
        made.builder.add(&path("f"), NodeKind::File { len: 1, content }, meta, xattrs).unwrap();
        made
    };
    let found = |options| {
        let changes = differences_with(options, file("1", Meta::default(), b"1"), file("2", meta, b"2"));
        changes
            .into_iter()
            .map(|(_, change)| format!("{change:?}"))
            .map(|text| text[..2].to_string())
            .collect()
    };
    let all = DiffOptions::default();
    let expect = |options, expected: &[&str]| {
        let found: Vec<String> = found(options);
        assert_eq!(found, expected, "{options:?}");
    };
    expect(all, &["Mo", "Ow", "Mt", "Xa", "Co"]);
    expect(DiffOptions { contents: false, ..all }, &["Mo", "Ow", "Mt", "Xa"]);
    expect(DiffOptions { modes: false, ..all }, &["Ow", "Mt", "Xa", "Co"]);
    expect(DiffOptions { owners: false, ..all }, &["Mo", "Mt", "Xa", "Co"]);
    expect(DiffOptions { times: false, ..all }, &["Mo", "Ow", "Xa", "Co"]);
    expect(DiffOptions { xattrs: false, ..all }, &["Mo", "Ow", "Mt", "Co"]);
}

#[test]
fn fractions_of_seconds_count_only_on_request() {
    let at = |nanos| {
        let mut made = Made::new();
        let mtime = Timestamp { seconds: 5, nanos };
        made.builder
            .add(&path("f"), NodeKind::Fifo, Meta { mtime, ..Meta::default() }, Xattrs::new())
            .unwrap();
        made
    };
    assert_eq!(differences(at(0), at(1)), []);
    let options = DiffOptions { nanos: true, ..DiffOptions::default() };
    assert_eq!(differences_with(options, at(0), at(1)).len(), 1);
}

#[test]
fn permissions_of_symbolic_links_never_count() {
    let link = |mode| {
        let mut made = Made::new();
        let kind = NodeKind::Symlink(b"x".as_slice().into());
        made.builder.add(&path("l"), kind, Meta { mode, ..Meta::default() }, Xattrs::new()).unwrap();
        made
    };
    assert_eq!(differences(link(0o777), link(0o644)), []);
}

#[test]
fn trees_10_000_levels_deep_are_compared() {
    let deep = |text: &str| {
        let mut made = Made::new();
        let mut at = packfs_core::BuildId::ROOT;
        let name = packfs_core::Name::new(b"d").unwrap();
        for _ in 0..10_000 {
            at = made.builder.add_child(at, name, NodeKind::Directory, Meta::default(), Xattrs::new());
        }
        let content = made.contents.push(text.as_bytes());
        made.builder.add_child(at, name, NodeKind::File { len: 1, content }, Meta::default(), Xattrs::new());
        made
    };
    assert_eq!(differences(deep("1"), deep("1")), []);
    let found = differences(deep("1"), deep("2"));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].0.len(), &found[0].1), (2 * 10_001 - 1, &Change::Contents(0)));
}

#[test]
fn stops_when_cancelled() {
    struct Stop;
    impl Progress for Stop {
        fn cancelled(&self) -> bool {
            true
        }
    }
    let tree = Made::new().file("a", "1", 0).builder.finish().unwrap();
    let side = Side { tree: &tree, contents: &Held::default() };
    let error: Error = diff(side, side, DiffOptions::default(), &Stop, &mut |_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}
