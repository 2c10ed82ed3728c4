//! SquashFS to EROFS and back: what both hold comes back byte for byte, what the other cannot hold
//! is named before anything is written.

use crate::common::{Wish, erofs, read_image, squash};
use packfs::{MadeAt, Pack};
use packfs_core::{
    Held, ImagePath, Meta, NodeKind, Owner, Progress, Stage, Timestamp, Tree, TreeBuilder, Xattrs,
};
use packfs_testkit::{Compare, odd_tree, snapshot_tree};
use std::path::Path;
use std::sync::Mutex;

/// Ways to make a SquashFS image that have little in common.
const SQUASHFS: [Wish<'_>; 3] = [
    Wish { codec: "zstd:3", block_len: 16 << 10, options: &[], jobs: 2 },
    Wish { codec: "lz4", block_len: 128 << 10, options: &[("fragments", "off")], jobs: 2 },
    Wish { codec: "gzip:1", block_len: 4096, options: &[("exports", "off")], jobs: 2 },
];

/// Ways to make an EROFS image that have little in common. Which zeros of a stored file are holes,
/// SquashFS knows for whole blocks only.
const EROFS: [Wish<'_>; 7] = [
    Wish { codec: "none", block_len: 4096, options: &[("holes", "off")], jobs: 2 },
    Wish { codec: "none", block_len: 4096, options: &[("chunks", "16K")], jobs: 2 },
    Wish { codec: "lz4", block_len: 16 << 10, options: &[("index", "full"), ("fragments", "off")], jobs: 2 },
    Wish { codec: "lz4", block_len: 4096, options: &[("kernel", "5.4")], jobs: 2 },
    Wish { codec: "deflate:1", block_len: 64 << 10, options: &[("fragments", "tails")], jobs: 2 },
    Wish {
        codec: "zstd:1",
        block_len: 1 << 20,
        options: &[("fragments", "all"), ("dedupe", "ranges")],
        jobs: 2,
    },
    Wish { codec: "lzma:0", block_len: 64 << 10, options: &[("metabox", "16K"), ("48bit", "on")], jobs: 2 },
];

/// When the images of this file say they were made, as `common` says it.
const MADE_AT: MadeAt = MadeAt::Seconds(1_700_000_000);

/// The same wish, of an image as the source.
fn conversion(from: &Path, to: &Path, wish: Wish<'_>) -> Pack {
    let pack = packfs::pack(from, to).codec(wish.codec).block_size(wish.block_len).made_at(MADE_AT);
    let pack = wish.options.iter().fold(pack, |pack, (name, value)| pack.option(*name, *value));
    pack.jobs(wish.jobs).sync(false)
}

#[track_caller]
fn convert(from: &Path, to: &Path, wish: Wish<'_>) {
    conversion(from, to, wish).run().unwrap_or_else(|e| panic!("{from:?} to {wish:?}: {e}"));
}

#[track_caller]
fn same_bytes(first: &Path, back: &Path, what: &str) {
    assert!(std::fs::read(first).unwrap() == std::fs::read(back).unwrap(), "{what}: images differ");
}

#[test]
fn squashfs_to_erofs_and_back_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (tree, contents) = odd_tree(16 << 10, true);
    let expected = snapshot_tree(&tree, &contents);
    for (index, other) in EROFS.into_iter().enumerate() {
        let wish = SQUASHFS[index % SQUASHFS.len()];
        let first = squash(&tree, &contents, wish, folder.path(), "first");
        convert(&first, &at("between.erofs"), other);
        let (found, findings) = read_image(&at("between.erofs"));
        assert!(findings.is_empty(), "{other:?}: {findings:?}");
        expected.assert_same(&found, Compare { nanos: true, ..Compare::default() }, &format!("{other:?}"));
        convert(&at("between.erofs"), &at("back.sqfs"), wish);
        same_bytes(&first, &at("back.sqfs"), &format!("{wish:?} by {other:?}"));
    }
}

#[test]
fn erofs_to_squashfs_and_back_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (tree, contents) = odd_tree(16 << 10, true);
    let expected = snapshot_tree(&tree, &contents);
    for (index, wish) in EROFS.into_iter().enumerate() {
        let other = SQUASHFS[index % SQUASHFS.len()];
        let first = erofs(&tree, &contents, wish, folder.path(), "first");
        convert(&first, &at("between.sqfs"), other);
        let (found, findings) = read_image(&at("between.sqfs"));
        assert!(findings.is_empty(), "{other:?}: {findings:?}");
        expected.assert_same(&found, Compare::default(), &format!("{other:?}"));
        convert(&at("between.sqfs"), &at("back.erofs"), wish);
        same_bytes(&first, &at("back.erofs"), &format!("{wish:?} by {other:?}"));
    }
}

/// A file, its time and an attribute.
type File<'a> = (&'a str, Timestamp, &'a [(&'a str, Vec<u8>)]);

fn tree_of(files: &[File<'_>]) -> (Tree, Held) {
    let mut contents = Held::default();
    let mtime = Timestamp::from_seconds(1_600_000_000);
    let mut builder = TreeBuilder::new(Meta { mode: 0o755, mtime, ..Meta::default() });
    for &(path, mtime, xattrs) in files {
        let kind = NodeKind::File { len: 4, content: contents.push(b"data".to_vec()) };
        let xattrs: Xattrs =
            xattrs.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.clone())).collect();
        let meta = Meta { mode: 0o644, owner: Owner::default(), mtime };
        builder.add(&ImagePath::parse(path.as_bytes()).unwrap(), kind, meta, xattrs).unwrap();
    }
    (builder.finish().unwrap(), contents)
}

/// A warning, and the bytes written before it.
#[derive(Default)]
struct Warnings {
    said: Mutex<Vec<String>>,
    has_begun: Mutex<bool>,
}

impl Progress for Warnings {
    fn begin(&self, stage: Stage, _: u64, _: u64) {
        *self.has_begun.lock().unwrap() |= matches!(stage, Stage::Data | Stage::Metadata);
    }

    fn warn(&self, message: &str) {
        assert!(!*self.has_begun.lock().unwrap(), "said too late: {message}");
        self.said.lock().unwrap().push(message.into());
    }
}

#[test]
fn what_squashfs_cannot_hold_is_named_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let whole = Timestamp::from_seconds(1_600_000_000);
    let acl = [("system.posix_acl_access", vec![2, 0, 0, 0]), ("user.kept", b"yes".to_vec())];
    let (tree, contents) = tree_of(&[
        ("acl", whole, &acl),
        ("fraction", Timestamp { nanos: 7, ..whole }, &[]),
        ("late", Timestamp::from_seconds(7_258_118_400), &[]),
        ("old", Timestamp::from_seconds(-5), &[]),
        ("plain", whole, &[]),
    ]);
    let wish = Wish { codec: "lz4", ..Wish::default() };
    let image = erofs(&tree, &contents, wish, folder.path(), "full");
    let target = at("less.sqfs");
    std::fs::write(&target, "was here").unwrap();

    let error = conversion(&image, &target, SQUASHFS[0]).run().unwrap_err().to_string();
    for named in ["\"acl\"", "ACLs", "\"old\"", "become 1970", "\"late\"", "become 2106"] {
        assert!(error.contains(named), "{named}: {error}");
    }
    assert_eq!(std::fs::read(&target).unwrap(), b"was here");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is written");

    let warnings = Warnings::default();
    let report = conversion(&image, &target, SQUASHFS[0]).lossy(true).run_with(&warnings).unwrap();
    assert_eq!(report.losses.iter().map(|loss| loss.count).collect::<Vec<_>>(), [1, 1, 1, 1]);
    let said = warnings.said.into_inner().unwrap().join("\n");
    for named in ["\"acl\"", "\"old\"", "\"late\"", "\"fraction\"", "fractions of a second"] {
        assert!(said.contains(named), "{named}: {said}");
    }
    let (found, _) = read_image(&target);
    let seconds = |path: &str| found.0[path.as_bytes()].mtime.seconds;
    assert_eq!([seconds("late"), seconds("old"), seconds("plain")], [u32::MAX.into(), 0, whole.seconds]);
    assert_eq!(found.0[&b"acl"[..]].xattrs, Xattrs::from([(b"user.kept".to_vec(), b"yes".to_vec())]));
}

#[test]
fn what_erofs_cannot_hold_is_named_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let whole = Timestamp::from_seconds(1_600_000_000);
    let long = [("user.long", vec![b'v'; 65_536]), ("user.short", vec![b'v'; 65_535])];
    let (tree, contents) = tree_of(&[("long", whole, &long), ("plain", whole, &[])]);
    let image = squash(&tree, &contents, Wish::default(), folder.path(), "full");
    let target = folder.path().join("less.erofs");

    let error = conversion(&image, &target, EROFS[0]).run().unwrap_err().to_string();
    assert!(error.contains("more than 65,535 bytes") && error.contains("\"long\""), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is written");

    conversion(&image, &target, EROFS[0]).lossy(true).run().unwrap();
    let (found, _) = read_image(&target);
    let names: Vec<_> = found.0[&b"long"[..]].xattrs.keys().cloned().collect();
    assert_eq!(names, [b"user.short".to_vec()]);
}
