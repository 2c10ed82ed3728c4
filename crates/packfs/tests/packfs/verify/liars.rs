//! Sources whose bytes change while their times do not: a file is in the image as it once was, or
//! there is no image.

use super::{pack_judged, packer, read_all, verified};
use packfs_core::{ContentId, ContentReader, Contents, Held, ImagePath, NodeId, NodeKind, Result, Tree};
use packfs_pack::Written;
use packfs_testkit::{Random, snapshot_tree, tree_of};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A source with the contents of `before`; from the n-th time that one file is opened, it has the
/// contents of `after`.
struct Liar {
    before: Arc<Held>,
    after: Arc<Held>,
    file: ContentId,
    opens_left: AtomicUsize,
    lied: Arc<AtomicUsize>,
}

impl Contents for Liar {
    fn open(&self, id: ContentId) -> Result<Box<dyn ContentReader + '_>> {
        if id == self.file
            && self.opens_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_err()
        {
            self.lied.fetch_add(1, Ordering::SeqCst);
            return self.after.open(id);
        }
        self.before.open(id)
    }
}

const FILES: [&str; 7] = ["a-twin", "b-twin", "c-large", "small-1", "small-2", "small-again", "tail"];

/// Files whose contents are shared in every way, and other contents of the same lengths.
fn files() -> (Tree, Held, Held) {
    let mut random = Random::new(3);
    let (large, small, tail) = (random.text(700_000), random.text(3000), random.text(150_001));
    let all = [&large, &large, &random.text(400_000), &small, &random.text(2000), &small, &tail];
    let (tree, before) = tree_of(FILES.iter().zip(all.map(Clone::clone)));
    let mut after = Held::default();
    for bytes in all {
        let mut other = bytes.clone();
        let at = other.len() / 2;
        other[at] ^= 0x20;
        after.push(other);
    }
    (tree, before, after)
}

#[test]
fn a_file_that_changes_without_a_trace_is_whole_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, before, after) = files();
    let (snapshots, held) =
        ([snapshot_tree(&tree, &before), snapshot_tree(&tree, &after)], [Arc::new(before), Arc::new(after)]);
    let mut refused = 0;
    for format in ["squashfs", "erofs"] {
        for (name, file) in FILES.iter().zip(0..) {
            for opens in 0..40 {
                let lied = Arc::new(AtomicUsize::new(0));
                let liar = Liar {
                    before: Arc::clone(&held[0]),
                    after: Arc::clone(&held[1]),
                    file: ContentId(file),
                    opens_left: AtomicUsize::new(opens),
                    lied: Arc::clone(&lied),
                };
                let snapshots = snapshots.clone();
                let what = format!("{format} {name} after {opens}");
                let message = what.clone();
                let judge = move |written: &Written<'_>, bytes: Vec<u8>| {
                    verified(written, bytes.clone())?;
                    for (path, row) in read_all(bytes).0 {
                        let may =
                            |snapshot: &packfs_testkit::Snapshot| snapshot.0[&path].content == row.content;
                        let may_change = path == name.as_bytes();
                        let holds = may(&snapshots[0]) || may_change && may(&snapshots[1]);
                        assert!(holds, "{what}: {:?} is neither", String::from_utf8_lossy(&path));
                    }
                    Ok(())
                };
                let output = folder.path().join("image");
                let packed = pack_judged(&tree, &liar, &*packer(format, "zstd:1"), &output, Box::new(judge));
                assert_eq!(output.exists(), packed.is_ok(), "{message}");
                let _ = std::fs::remove_file(&output);
                refused += u32::from(packed.is_err());
                if lied.load(Ordering::SeqCst) == 0 {
                    break;
                }
                assert!(opens < 39, "{message}: opened without end");
            }
        }
    }
    assert!(refused > 0, "twins that change after they were compared are refused");
}

#[test]
fn the_file_that_changed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, before, after) = files();
    let original = tree.find(&ImagePath::parse(b"a-twin").unwrap()).map_or(NodeId::ROOT, |node| node);
    let NodeKind::File { content, .. } = tree.node(original).kind else { panic!("a file") };
    // Beginning, all of it, and the bytes are compared before it is read to be compressed.
    let liar = Liar {
        before: before.into(),
        after: after.into(),
        file: content,
        opens_left: AtomicUsize::new(3),
        lied: Arc::default(),
    };
    let output = folder.path().join("image");
    let packed = pack_judged(&tree, &liar, &*packer("squashfs", "zstd:1"), &output, Box::new(|_, _| Ok(())));
    let error = packed.unwrap_err().to_string();
    assert!(error.contains("cannot pack \"a-twin\": it changed during packing"), "{error}");
}
