//! Hierarchies that are valid name by name, but too large as a whole.

use packfs_codec::BlockRef;
use packfs_core::{ErrorKind, FileType, Limit, Limits, Meta, Result, Silent, Xattrs};
use packfs_format::{DirEntry, Extent, ExtentFrom, InodeId, InodeKind};
use packfs_read::{LoadedVolume, ReadEngine, ReadOptions, Wanted};
use packfs_testkit::{MadeUpImage, MadeUpNode, MadeUpVolume};
use std::sync::Arc;

/// Contents of an image of 4096 bytes.
struct Bomb(MadeUpVolume);

impl Bomb {
    /// Returns a root directory with these nodes.
    fn new(nodes: Vec<MadeUpNode>) -> Self {
        let mut all = vec![(InodeId(0), MadeUpNode::dir(InodeId(0), Vec::new()))];
        for (index, node) in nodes.into_iter().enumerate() {
            let id = InodeId(index as u64 + 1);
            let file_type = node.inode.kind.file_type();
            all[0].1.entries.push(DirEntry { name: format!("n{index:05}").into_bytes(), id, file_type });
            all.push((id, node));
        }
        Bomb(all.into_iter().collect())
    }

    fn engine(self, limits: Limits) -> Arc<ReadEngine> {
        let image = Arc::new(MadeUpImage::new(vec![0; 4096]));
        let options = ReadOptions { limits, ..ReadOptions::default() };
        ReadEngine::new(image, Arc::new(self.0), options)
    }

    fn load(self, limits: Limits) -> Result<LoadedVolume> {
        self.engine(limits).load_tree(&Silent)
    }
}

fn file(from: ExtentFrom, len: u64) -> MadeUpNode {
    MadeUpNode::file(InodeId(0), vec![Extent { offset: 0, len, from }])
}

/// Returns files that share a block of 1 MiB.
fn overlap(count: usize) -> Bomb {
    let block = BlockRef { decoded_len: 1 << 20, ..BlockRef::stored(0, 100) };
    Bomb::new(vec![file(ExtentFrom::Block { block, start: 0 }, 1 << 20); count])
}

#[track_caller]
fn refused(bomb: Bomb, limits: Limits, words: &str) {
    let error = bomb.load(limits).expect_err("more than is allowed");
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    assert!(error.to_string().contains(words), "{error}");
    assert!(error.hints()[0].starts_with("--max-"), "{:?}", error.hints());
}

#[test]
fn many_files_over_one_block_are_refused_by_default_and_read_if_trusted() {
    refused(overlap(20_000), Limits::default(), "bytes of file data");
    assert!(overlap(20_000).load(Limits::default().lift(Limit::Ratio)).is_ok());
    assert!(overlap(1000).load(Limits::default()).is_ok(), "a thousand copies of a file are nothing odd");
}

#[test]
fn a_ratio_that_is_named_holds_for_short_images_and_for_single_files() {
    let limits = Limits::default().allow(Limit::Ratio, 300);
    refused(overlap(2), limits, "at most 1228800 allowed");
    assert!(overlap(1).load(limits).is_ok());
    let engine = overlap(1).engine(Limits::default().allow(Limit::Ratio, 100));
    let error = engine.check_data(&[Wanted { id: InodeId(1), len: 1 << 20 }]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
}

#[test]
fn holes_count_for_bytes_and_not_for_the_ratio() {
    let sparse = |len: u64, count: usize| Bomb::new(vec![file(ExtentFrom::Hole, len); count]);
    assert!(sparse(100 << 30, 3).load(Limits::default()).is_ok(), "true images have such files");
    refused(sparse(1 << 50, 1), Limits::default(), "bytes of all files, holes included");
    refused(sparse(1 << 45, 3), Limits::default(), "bytes of all files, holes included");
    refused(sparse(u64::MAX - 1, 2), Limits::default().allow(Limit::Bytes, u64::MAX - 1), "of all files");
    assert!(sparse(1 << 50, 1).load(Limits::default().lift(Limit::Bytes)).is_ok());
}

#[test]
fn hard_links_count_as_names_and_their_bytes_once() {
    let mut bomb = Bomb::new(vec![file(ExtentFrom::Hole, 1000)]);
    let root = bomb.0.nodes.get_mut(&InodeId(0)).unwrap();
    for index in 0..9 {
        let name = format!("link {index}").into_bytes();
        root.entries.push(DirEntry { name, id: InodeId(1), file_type: FileType::File });
    }
    let limits = Limits::default().allow(Limit::Bytes, 1000).allow(Limit::Entries, 10);
    assert!(Bomb(bomb.0.clone()).load(limits).is_ok());
    refused(bomb, limits.allow(Limit::Entries, 9), "10 names, at most 9 allowed");
}

#[test]
fn names_targets_and_attributes_have_limits_of_their_own() {
    let limits = Limits::default;
    let link = || MadeUpNode {
        target: vec![b'x'; 4000],
        ..MadeUpNode::new(InodeId(1), InodeKind::Symlink, Meta::default())
    };
    assert!(Bomb::new(vec![link()]).load(limits()).is_ok());
    refused(Bomb::new(vec![link()]), limits().allow(Limit::TargetLen, 3999), "4000 bytes of one link target");
    refused(Bomb::new(vec![link()]), limits().allow(Limit::NameLen, 5), "6 bytes of one name");

    let xattrs = Xattrs::from([(b"user.a".to_vec(), vec![0; 1000])]);
    let marked = || MadeUpNode { xattrs: xattrs.clone(), ..link() };
    assert!(Bomb::new(vec![marked(), marked()]).load(limits()).is_ok());
    refused(
        Bomb::new(vec![marked()]),
        limits().allow(Limit::InodeXattrs, 1000),
        "1006 bytes of extended attributes of one inode",
    );
    let two = || Bomb::new(vec![marked(), marked()]);
    refused(two(), limits().allow(Limit::Xattrs, 2011), "2012 bytes of extended attributes of all inodes");
    assert!(two().load(limits().allow(Limit::Xattrs, 2012)).is_ok());
    refused(two(), limits().allow(Limit::Memory, 5000), "bytes of memory");
}
