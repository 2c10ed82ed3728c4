//! Files of a trace come first, in its order, and apart from all others.

use packfs::codec::Algorithm;
use packfs::{ImagePath, OpenOptions, Opened};
use packfs_format::{Extent, ExtentFrom, InodeId};
use packfs_testkit::{Compare, Mount, Random, is_root, skip, snapshot_dir};
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

const FORMATS: [&str; 2] = ["squashfs", "erofs"];
/// The last file is the largest.
const COUNT: usize = 400;

fn name(index: usize) -> String {
    format!("dir{:02}/file{index:03}", index % 20)
}

/// One in 16 files, the last of them first; directories come by themselves.
fn used() -> Vec<String> {
    (0..COUNT).step_by(16).rev().map(name).collect()
}

struct Traced {
    folder: tempfile::TempDir,
}

impl Traced {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut random = Random::new(16);
        for index in 0..COUNT {
            let file = folder.path().join("source").join(name(index));
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, random.text(500 + 3 * index)).unwrap();
        }
        std::fs::write(folder.path().join("source/dir00/large"), random.text(400_000)).unwrap();
        std::fs::write(folder.path().join("trace"), used().join("\n") + "\nnowhere\n").unwrap();
        Traced { folder }
    }

    fn source(&self) -> PathBuf {
        self.folder.path().join("source")
    }

    fn pack(&self, format: &str, traced: bool, jobs: usize) -> PathBuf {
        let path = self.folder.path().join(format!("{format}-{traced}-{jobs}"));
        let mut pack =
            packfs::pack(self.source(), &path).format(format).codec("zstd:3").jobs(jobs).sync(false);
        if format == "squashfs" {
            pack = pack.block_size(64 << 10);
        }
        if traced {
            pack = pack.trace(self.folder.path().join("trace"));
        }
        pack.run().unwrap();
        path
    }
}

fn id(opened: &Opened, path: &str) -> u64 {
    opened.find(ImagePath::parse(path.as_bytes()).unwrap()).unwrap().0
}

/// Bytes that are read from the image and decoded when what the trace names is read.
fn cost(image: &Path) -> (u64, u64) {
    let opened = OpenOptions::new().jobs(1).open(image).unwrap();
    let mut out = Vec::new();
    for path in used() {
        opened.open_file(&path).unwrap().read_to_end(&mut out).unwrap();
    }
    let counters = opened.counters();
    (counters.data_bytes, counters.decoded_bytes)
}

#[test]
fn what_is_used_first_shares_blocks_with_nothing_else() {
    let traced = Traced::new();
    let used_len: u64 = used().iter().map(|path| traced.source().join(path).metadata().unwrap().len()).sum();
    for format in FORMATS {
        let with = cost(&traced.pack(format, true, 2));
        let without = cost(&traced.pack(format, false, 2));
        assert_eq!(with.1, used_len, "{format}: nothing else is decoded");
        assert!(with.0 * 2 < without.0, "{format}: {with:?} and {without:?}");
    }
}

/// Returns the encodings of a file's blocks, each once.
fn algorithms(opened: &Opened, path: &str) -> Vec<Algorithm> {
    let mut found = vec![];
    let mut visit = |extent: Extent| {
        if let ExtentFrom::Block { block, .. } = extent.from {
            found.extend(block.algorithm);
        }
        ControlFlow::Continue(())
    };
    let id = InodeId(id(opened, path));
    opened.volume().extents(id, 0..u64::MAX, &mut visit).unwrap();
    found.sort_unstable();
    found.dedup();
    found
}

#[test]
fn what_is_used_first_may_have_a_codec_of_its_own() {
    let traced = Traced::new();
    let folder = traced.folder.path();
    std::fs::write(folder.join("trace"), "dir00/large\ndir01/file001\n").unwrap();
    let image = folder.join("mixed.erofs");
    let pack = packfs::pack(traced.source(), &image).codec("zstd:3").sync(false);
    pack.trace(folder.join("trace")).option("first-used", "lz4@16K").run().unwrap();
    let opened = OpenOptions::new().open(&image).unwrap();
    assert_eq!(algorithms(&opened, "dir00/large"), [Algorithm::Lz4]);
    assert_eq!(algorithms(&opened, "dir01/file001"), [], "what is shorter than a block is stored");
    assert_eq!(algorithms(&opened, "dir02/file002"), [Algorithm::Zstd]);
    if !is_root() {
        return skip("mounting needs root");
    }
    let mount = Mount::new(&image, "erofs").unwrap();
    let compare = Compare { nanos: true, dir_links: false, ..Compare::default() };
    snapshot_dir(&traced.source()).assert_same(&snapshot_dir(&mount.path()), compare, "erofs");
}

#[test]
fn inodes_of_what_is_used_first_stand_in_front_in_its_order() {
    let traced = Traced::new();
    for format in FORMATS {
        let opened = OpenOptions::new().open(traced.pack(format, true, 2)).unwrap();
        let ids: Vec<u64> = used().iter().map(|path| id(&opened, path)).collect();
        assert!(ids.is_sorted(), "{format}: {ids:?}");
        let last = ids.last().unwrap();
        for index in (0..COUNT).filter(|index| index % 16 != 0) {
            assert!(id(&opened, &name(index)) > *last, "{format}: {}", name(index));
        }
    }
}

#[test]
fn the_kernel_sees_the_same_tree_and_the_bytes_depend_on_no_thread() {
    let traced = Traced::new();
    for format in FORMATS {
        let image = traced.pack(format, true, 1);
        for jobs in [2, 16] {
            let other = traced.pack(format, true, jobs);
            assert!(std::fs::read(&image).unwrap() == std::fs::read(other).unwrap(), "{format}: {jobs} jobs");
        }
        if !is_root() {
            skip("mounting needs root");
            continue;
        }
        let mount = Mount::new(&image, format).unwrap();
        let compare = Compare { nanos: format == "erofs", dir_links: false, ..Compare::default() };
        snapshot_dir(&traced.source()).assert_same(&snapshot_dir(&mount.path()), compare, format);
    }
}
