//! The usual order of small files costs the kernel nothing when a tree is read along its paths.

use packfs::{Goal, ImagePath, OpenOptions, Order, Pack};
use packfs_format::{Extent, ExtentFrom, InodeId};
use packfs_testkit::Random;
use std::ops::ControlFlow;
use std::path::Path;

/// Linux's `CONFIG_SQUASHFS_FRAGMENT_CACHE_SIZE`.
const CACHED_BLOCKS: usize = 3;
const FOLDERS: usize = 40;
const KINDS: usize = 8;

fn name(folder: usize, kind: usize) -> String {
    format!("folder{folder:02}/kind{kind}")
}

/// Every folder holds one file of each kind, and files of a kind resemble each other.
fn write_source(at: &Path, file_len: usize) {
    let mut random = Random::new(17);
    let kinds: Vec<Vec<u8>> = (0..KINDS).map(|_| random.text(file_len)).collect();
    for folder in 0..FOLDERS {
        std::fs::create_dir_all(at.join(format!("folder{folder:02}"))).unwrap();
        for (kind, bytes) in kinds.iter().enumerate() {
            let bytes = [&bytes[..], &random.text(file_len / 20)].concat();
            std::fs::write(at.join(name(folder, kind)), bytes).unwrap();
        }
    }
}

/// Offsets of the blocks that hold the files, in the order of their paths.
fn walk(image: &Path) -> Vec<u64> {
    let opened = OpenOptions::new().open(image).unwrap();
    let mut blocks = Vec::new();
    for (folder, kind) in (0..FOLDERS).flat_map(|folder| (0..KINDS).map(move |kind| (folder, kind))) {
        let path = ImagePath::parse(name(folder, kind).as_bytes()).unwrap();
        let id = opened.find(&path).unwrap().0;
        let mut visit = |extent: Extent| {
            let ExtentFrom::Block { block, .. } = extent.from else { panic!("{path:?} is not in a block") };
            blocks.push(block.offset);
            ControlFlow::Continue(())
        };
        opened.volume().extents(InodeId(id), 0..u64::MAX, &mut visit).unwrap();
    }
    blocks
}

/// Blocks that a cache decodes which keeps a few and replaces them in turn, as Linux's does.
fn decodes(blocks: &[u64]) -> usize {
    let mut cached = std::collections::VecDeque::new();
    let mut count = 0;
    for block in blocks {
        if !cached.contains(block) {
            count += 1;
            cached.push_back(*block);
            if cached.len() > CACHED_BLOCKS {
                cached.pop_front();
            }
        }
    }
    count
}

/// Length of an image, and how many blocks a walk along the paths decodes.
fn packed(folder: &Path, format: &str, block_len: u32, choose: impl Fn(Pack) -> Pack) -> (u64, usize) {
    let image = folder.join("image");
    let pack = packfs::pack(folder.join(block_len.to_string()), &image).format(format).sync(false);
    choose(pack.codec("gzip:6").block_size(block_len).option("padding", "none")).run().unwrap();
    (image.metadata().unwrap().len(), decodes(&walk(&image)))
}

#[test]
fn a_walk_along_the_paths_decodes_no_more_blocks_than_in_path_order() {
    let folder = tempfile::tempdir().unwrap();
    for block_len in [4 << 10, 64 << 10] {
        // A block holds a part of a folder, as on real trees.
        write_source(&folder.path().join(block_len.to_string()), block_len as usize / 10);
        for format in ["squashfs", "squashfs-legacy"] {
            let of = |choose: &dyn Fn(Pack) -> Pack| packed(folder.path(), format, block_len, choose);
            let (path_len, path_decodes) = of(&|pack| pack.order(Order::Path));
            for goal in [Goal::Balanced, Goal::Build, Goal::Read] {
                let (len, decodes) = of(&|pack| pack.optimize(goal));
                let what = format!("{format} {block_len} {goal:?}: {decodes} of {path_decodes} decodes");
                assert!(decodes * 100 <= path_decodes * 105, "{what}");
                assert!(len <= path_len, "{what}: {len} of {path_len} bytes");
            }
            let (len, decodes) = of(&|pack| pack.optimize(Goal::Size));
            assert!(decodes > 2 * path_decodes, "{format} {block_len}: {decodes} of {path_decodes}");
            assert!(len < path_len, "{format} {block_len}: {len} of {path_len} bytes");
        }
    }
}
