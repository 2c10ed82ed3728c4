//! Digests of trees: fixed values, changes that affect them, and changes that do not.

// Data of sparse files is a list of ranges, sometimes of one range.
#![allow(clippy::single_range_in_vec_init)]

use packfs_core::{
    ContentId, ContentReader, Contents, DeviceNumber, Held, Meta, NodeKind, Owner, Result, Silent, Timestamp,
    Tree, TreeBuilder, Xattrs,
};
use packfs_integrity::{DigestFacts, TreeDigest, digest_tree};
use packfs_testkit::{Random, odd_tree, path};
use std::ops::Range;

fn digest(tree: &Tree, contents: &dyn Contents, facts: DigestFacts) -> String {
    digest_tree(tree, contents, facts, 2, &Silent).unwrap().root().to_string()
}

fn meta(mode: u16, id: u32, seconds: i64) -> Meta {
    Meta { mode, owner: Owner { uid: id, gid: id + 1 }, mtime: Timestamp { seconds, nanos: 5 } }
}

/// Returns the tree of the document's vectors.
fn vector(with: impl FnOnce(&mut TreeBuilder, &mut Held)) -> (Tree, Held) {
    let mut held = Held::default();
    let mut tree = TreeBuilder::new(meta(0o755, 0, 1_000_000_000));
    with(&mut tree, &mut held);
    (tree.finish().unwrap(), held)
}

fn small() -> (Tree, Held) {
    vector(|tree, held| {
        let mut file = |bytes: &[u8]| NodeKind::File { len: bytes.len() as u64, content: held.push(bytes) };
        let xattrs = Xattrs::from([
            (b"user.a".to_vec(), b"1".to_vec()),
            (b"user.b".to_vec(), vec![0, 255]),
            (b"trusted.c".to_vec(), vec![]),
        ]);
        tree.add(&path("etc/empty"), file(b""), meta(0o600, 1, -1), Xattrs::new()).unwrap();
        tree.add(&path("etc/hosts"), file(b"127.0.0.1 localhost\n"), meta(0o644, 0, 1), xattrs).unwrap();
        tree.add(
            &path("bin"),
            NodeKind::Symlink(b"usr/bin".as_slice().into()),
            meta(0o644, 0, 2),
            Xattrs::new(),
        )
        .unwrap();
        let null = DeviceNumber { major: 1, minor: 3 };
        tree.add(&path("dev/null"), NodeKind::CharDevice(null), meta(0o666, 0, 3), Xattrs::new()).unwrap();
        let disk = DeviceNumber { major: 259, minor: 70_000 };
        tree.add(&path("dev/disk"), NodeKind::BlockDevice(disk), meta(0o660, 0, 4), Xattrs::new()).unwrap();
        tree.add(&path("run/fifo"), NodeKind::Fifo, meta(0o600, 7, 5), Xattrs::new()).unwrap();
        tree.add(&path("run/socket"), NodeKind::Socket, meta(0o600, 7, 6), Xattrs::new()).unwrap();
        tree.link(&path("etc/hosts.again"), path("etc/hosts")).unwrap();
        tree.link(&path("hosts"), path("etc/hosts")).unwrap();
        tree.link(&path("run/also"), path("run/fifo")).unwrap();
    })
}

/// Returns files around the lengths at which chunks and rows of digests end.
fn large() -> (Tree, Held) {
    vector(|tree, held| {
        let mut random = Random::new(3);
        for len in [1 << 20, (1 << 20) + 1, (3 << 20) - 1] {
            let bytes = random.text(len);
            let kind = NodeKind::File { len: len as u64, content: held.push(bytes) };
            tree.add(&path(format!("file-{len}")), kind, meta(0o644, 0, 0), Xattrs::new()).unwrap();
        }
    })
}

#[test]
fn the_digests_of_the_document_stay() {
    let expected = [
        (
            small(),
            DigestFacts::default(),
            "packfs-tree-1:sha256:f2aabfc59e1c91fc811fa94499e0c9a5a4788c87d95aea9100659596790cc90f",
        ),
        (
            small(),
            DigestFacts::ALL,
            "packfs-tree-1/mode+owner+mtime+nanos+xattrs+links+root:sha256:244c0721e3acaee675a6b413712807a435c359fadfc0c2650578a27cf1ae3b8c",
        ),
        (
            small(),
            DigestFacts::NONE,
            "packfs-tree-1/none:sha256:66f29ed6fc23273d3f3bd53295277930d6ce220028c94a383b4004c94985439d",
        ),
        (
            large(),
            DigestFacts::default(),
            "packfs-tree-1:sha256:980e25cb3e84b38451f44ce0b7a06bcea1acd00eedf5ea10997c3afc77ef1094",
        ),
        (
            vector(|_, _| {}),
            DigestFacts::default(),
            "packfs-tree-1:sha256:cf782e0f85f6e07435567a49a494cd404a4e23e06dd6f7421b553ce8264f06b4",
        ),
    ];
    for ((tree, held), facts, digits) in expected {
        let digest = digest(&tree, &held, facts);
        assert_eq!(digest, digits, "{}", facts.spelled());
    }
}

/// Compares the effect of one change under each attribute.
#[test]
fn only_facts_that_count_change_a_digest() {
    type Change = fn(&mut Meta, &mut Xattrs);
    let changes: [(&str, Change); 5] = [
        ("mode", |meta, _| meta.mode ^= 1),
        ("owner", |meta, _| meta.owner.gid += 1),
        ("mtime", |meta, _| meta.mtime.seconds -= 1),
        ("nanos", |meta, _| meta.mtime.nanos += 1),
        ("xattrs", |_, xattrs| {
            xattrs.insert(b"user.new".to_vec(), vec![]);
        }),
    ];
    let build = |change: Change| {
        vector(|tree, held| {
            let (mut meta, mut xattrs) = (meta(0o644, 9, 9), Xattrs::new());
            change(&mut meta, &mut xattrs);
            let kind = NodeKind::File { len: 1, content: held.push(*b"x") };
            tree.add(&path("a/file"), kind, meta, xattrs).unwrap();
        })
    };
    let same = build(|_, _| {});
    for (name, change) in changes {
        let changed = build(change);
        let mut facts = DigestFacts::NONE;
        assert_eq!(digest(&same.0, &same.1, facts), digest(&changed.0, &changed.1, facts), "{name}");
        *facts.by_name(name).unwrap() = true;
        assert_ne!(digest(&same.0, &same.1, facts), digest(&changed.0, &changed.1, facts), "{name}");
        let mut others = DigestFacts::ALL;
        *others.by_name(name).unwrap() = false;
        assert_eq!(digest(&same.0, &same.1, others), digest(&changed.0, &changed.1, others), "{name}");
    }
}

#[test]
fn links_count_by_which_names_they_join() {
    let build = |pairs: &[(&str, &str)]| {
        vector(|tree, held| {
            let links: Vec<&str> = pairs.iter().map(|(link, _)| *link).collect();
            for name in ["a", "b", "c", "d/e"].into_iter().filter(|name| !links.contains(name)) {
                let kind = NodeKind::File { len: 1, content: held.push(*b"x") };
                tree.add(&path(name), kind, meta(0o644, 0, 0), Xattrs::new()).unwrap();
            }
            for (link, target) in pairs {
                tree.link(&path(link), path(target)).unwrap();
            }
        })
    };
    let shapes: [&[(&str, &str)]; 5] =
        [&[], &[("b", "a")], &[("c", "a")], &[("b", "a"), ("d/e", "c")], &[("b", "a"), ("c", "a")]];
    let without = DigestFacts { links: false, ..DigestFacts::default() };
    let mut seen = Vec::new();
    for pairs in shapes {
        let ((tree, held), (plain, plain_held)) = (build(pairs), build(&[]));
        assert_eq!(digest(&tree, &held, without), digest(&plain, &plain_held, without), "{pairs:?}");
        seen.push(digest(&tree, &held, DigestFacts::default()));
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), shapes.len());
    // The order of the names is irrelevant.
    let (one, held) = build(&[("b", "a"), ("d/e", "c")]);
    let (other, other_held) = build(&[("a", "b"), ("c", "d/e")]);
    assert_eq!(
        digest(&one, &held, DigestFacts::default()),
        digest(&other, &other_held, DigestFacts::default())
    );
}

#[test]
fn a_directory_has_the_digest_that_it_has_by_itself() {
    let add = |tree: &mut TreeBuilder, held: &mut Held, base: &str| {
        for (name, bytes) in [("one", &b"1"[..]), ("sub/two", b"22"), ("sub.dir/three", b"333")] {
            let kind = NodeKind::File { len: bytes.len() as u64, content: held.push(bytes) };
            tree.add(&path(format!("{base}/{name}")), kind, meta(0o644, 0, 7), Xattrs::new()).unwrap();
        }
        tree.link(&path(format!("{base}/sub/link")), path(format!("{base}/sub.dir/three"))).unwrap();
    };
    let (whole, held) = vector(|tree, held| {
        tree.add(&path("usr"), NodeKind::Directory, meta(0o755, 0, 1_000_000_000), Xattrs::new()).unwrap();
        add(tree, held, "usr");
        let kind = NodeKind::File { len: 1, content: held.push(*b"o") };
        tree.add(&path("outside"), kind, meta(0o644, 0, 7), Xattrs::new()).unwrap();
        // Only one of these two names is in the directory, so it is not a link there.
        tree.link(&path("usr/joined"), path("outside")).unwrap();
    });
    let (alone, alone_held) = vector(|tree, held| {
        add(tree, held, "");
        let kind = NodeKind::File { len: 1, content: held.push(*b"o") };
        tree.add(&path("joined"), kind, meta(0o644, 0, 7), Xattrs::new()).unwrap();
    });
    for facts in [DigestFacts::default(), DigestFacts::ALL, DigestFacts { root: false, ..DigestFacts::ALL }] {
        let digests = digest_tree(&whole, &held, facts, 1, &Silent).unwrap();
        let mut found: Vec<(String, TreeDigest)> = Vec::new();
        digests
            .directories(1, &mut |path, digest| {
                found.push((path.to_string(), digest));
                Ok(())
            })
            .unwrap();
        assert_eq!(found.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), ["/", "usr"]);
        assert_eq!(found[0].1, digests.root());
        assert_eq!(found[1].1.to_string(), digest(&alone, &alone_held, facts), "{}", facts.spelled());
    }
}

/// A file of data and holes that may or may not report its holes.
struct Sparse {
    data: Vec<Range<u64>>,
    len: u64,
    knows: bool,
}

impl Contents for Sparse {
    fn open(&self, _: ContentId) -> Result<Box<dyn ContentReader + '_>> {
        Ok(Box::new(SparseReader(self)))
    }
}

struct SparseReader<'a>(&'a Sparse);

impl ContentReader for SparseReader<'_> {
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        for (index, byte) in buf.iter_mut().enumerate() {
            let at = offset + index as u64;
            *byte = if self.0.data.iter().any(|data| data.contains(&at)) { (at % 250) as u8 + 1 } else { 0 };
        }
        Ok(())
    }

    fn next_data(&mut self, offset: u64) -> Result<Option<Range<u64>>> {
        if !self.0.knows {
            return Ok((offset < self.0.len).then_some(offset..self.0.len));
        }
        let next = self.0.data.iter().find(|data| data.end > offset);
        Ok(next.map(|data| data.start.max(offset)..data.end))
    }
}

fn sparse(len: u64, data: &[Range<u64>], knows: bool) -> String {
    let (tree, _) = vector(|tree, _| {
        let kind = NodeKind::File { len, content: ContentId(0) };
        tree.add(&path("sparse"), kind, meta(0o644, 0, 0), Xattrs::new()).unwrap();
    });
    digest(&tree, &Sparse { data: data.to_vec(), len, knows }, DigestFacts::default())
}

#[test]
fn holes_are_zeros_whether_a_source_knows_them_or_not() {
    const M: u64 = 1 << 20;
    for (len, data) in [
        (M, vec![]),
        (3 * M, vec![]),
        (3 * M + 1, vec![0..1]),
        (3 * M + 1, vec![3 * M..3 * M + 1]),
        (4 * M, vec![M - 1..M + 1, 3 * M + 5..3 * M + 6]),
        (2 * M, vec![M / 2..M / 2 + 1, M / 2 + 7..M / 2 + 9]),
    ] {
        assert_eq!(sparse(len, &data, true), sparse(len, &data, false), "{len} {data:?}");
    }
    // A source that does not report them would be read for years.
    let far = 1 << 62;
    assert_ne!(sparse(far, &[far - 1..far], true), sparse(far, &[], true));
    assert_ne!(sparse(far, &[], true), sparse(far + 1, &[], true));
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let (tree, held) = odd_tree(1 << 16, true);
    let with = |jobs| digest_tree(&tree, &held, DigestFacts::ALL, jobs, &Silent).unwrap().root();
    assert_eq!(with(1), with(2));
    assert_eq!(with(1), with(16));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let (tree, _) = small();
    let error = digest_tree(&tree, &Held::default(), DigestFacts::default(), 3, &Silent).err().unwrap();
    assert!(error.to_string().contains("etc/hosts"), "{error}");
}
