//! A volume built by hand, for contents that no builder of images would write.
#![allow(dead_code, reason = "each test file uses its part")]

use packfs_core::*;
use packfs_format::*;
use packfs_read::{LoadedVolume, ReadEngine, ReadOptions};
#[allow(unused_imports, reason = "each test file uses its part")]
pub use packfs_testkit::{MadeUpImage, MadeUpNode, MadeUpVolume, as_nobody, is_root, skip};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// Longest extent of a file's data.
pub const EXTENT_LEN: usize = 4096;

/// A part of a file.
pub enum Part<'a> {
    Data(&'a [u8]),
    Hole(u64),
    /// Data beyond the end of the image.
    Unreadable(u64),
}

/// Nodes by index, the root first; and the bytes that extents refer to.
pub struct Fake {
    nodes: Vec<MadeUpNode>,
    bytes: Vec<u8>,
}

/// Input of `unpack`, `write_tar` and `list`.
pub struct Opened {
    pub engine: Arc<ReadEngine>,
    pub loaded: LoadedVolume,
}

pub const ROOT: usize = 0;

impl Fake {
    pub fn new() -> Self {
        let mut fake = Fake { nodes: Vec::new(), bytes: Vec::new() };
        fake.push(InodeKind::Directory);
        fake
    }

    fn push(&mut self, kind: InodeKind) -> usize {
        let mode = if kind == InodeKind::Directory { 0o755 } else { 0o644 };
        let mtime = Timestamp::from_seconds(1_000_000_000);
        let meta = Meta { mode, owner: own(), mtime };
        self.nodes.push(MadeUpNode::new(InodeId(self.nodes.len() as u64), kind, meta));
        self.nodes.len() - 1
    }

    pub fn add(&mut self, parent: usize, name: &[u8], kind: InodeKind) -> usize {
        let id = self.push(kind);
        self.link(parent, name, id);
        id
    }

    pub fn link(&mut self, parent: usize, name: &[u8], id: usize) {
        let file_type = self.nodes[id].inode.kind.file_type();
        let entries = &mut self.nodes[parent].entries;
        entries.push(DirEntry { name: name.to_vec(), id: InodeId(id as u64), file_type });
        entries.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
    }

    pub fn dir(&mut self, parent: usize, name: &[u8]) -> usize {
        self.add(parent, name, InodeKind::Directory)
    }

    pub fn symlink(&mut self, parent: usize, name: &[u8], target: &[u8]) -> usize {
        let id = self.add(parent, name, InodeKind::Symlink);
        self.nodes[id].target = target.to_vec();
        self.nodes[id].inode.meta.mode = 0o777;
        id
    }

    pub fn file(&mut self, parent: usize, name: &[u8], parts: &[Part<'_>]) -> usize {
        let mut extents = Vec::new();
        let mut offset = 0;
        for part in parts {
            match part {
                Part::Hole(len) => {
                    extents.push(Extent { offset, len: *len, from: ExtentFrom::Hole });
                    offset += len;
                }
                Part::Unreadable(len) => {
                    extents.push(Extent { offset, len: *len, from: ExtentFrom::Stored(1 << 40) });
                    offset += len;
                }
                Part::Data(bytes) => {
                    for chunk in bytes.chunks(EXTENT_LEN) {
                        let (len, from) = (chunk.len() as u64, ExtentFrom::Stored(self.bytes.len() as u64));
                        extents.push(Extent { offset, len, from });
                        self.bytes.extend_from_slice(chunk);
                        offset += len;
                    }
                }
            }
        }
        let id = self.add(parent, name, InodeKind::File { len: offset });
        self.nodes[id].extents = extents;
        id
    }

    /// Adds files `f0`, `f1`, ... of several extents; the first extents of all of them are stored
    /// before the second ones.
    pub fn interleaved_files(&mut self, parent: usize, count: usize, extents: usize) -> Vec<usize> {
        let start = self.bytes.len() as u64;
        let extent_len = EXTENT_LEN as u64;
        for index in 0..count * extents {
            self.bytes.extend(std::iter::repeat_n(
                Self::interleaved_byte(index % count, index / count),
                EXTENT_LEN,
            ));
        }
        (0..count)
            .map(|file| {
                let len = extents as u64 * extent_len;
                let id = self.add(parent, format!("f{file}").as_bytes(), InodeKind::File { len });
                let stored_at = |round: usize| start + (round * count + file) as u64 * extent_len;
                let extent = |round: usize| Extent {
                    offset: round as u64 * extent_len,
                    len: extent_len,
                    from: ExtentFrom::Stored(stored_at(round)),
                };
                self.nodes[id].extents = (0..extents).map(extent).collect();
                id
            })
            .collect()
    }

    /// Returns the value of every byte in an extent of an interleaved file.
    pub fn interleaved_byte(file: usize, extent: usize) -> u8 {
        (file * 31 + extent * 7 + 1) as u8
    }

    pub fn text(&mut self, parent: usize, name: &[u8], text: &str) -> usize {
        self.file(parent, name, &[Part::Data(text.as_bytes())])
    }

    pub fn meta(&mut self, id: usize) -> &mut Meta {
        &mut self.nodes[id].inode.meta
    }

    pub fn xattr(&mut self, id: usize, name: &[u8], value: &[u8]) {
        self.nodes[id].xattrs.insert(name.to_vec(), value.to_vec());
    }

    pub fn volume(self) -> MadeUpVolume {
        (0..).map(InodeId).zip(self.nodes).collect()
    }

    pub fn engine(mut self) -> Arc<ReadEngine> {
        let image = Arc::new(MadeUpImage::new(std::mem::take(&mut self.bytes)));
        let options = ReadOptions { jobs: 2, ..ReadOptions::default() };
        ReadEngine::new(image, Arc::new(self.volume()), options)
    }

    pub fn open(self) -> Opened {
        let engine = self.engine();
        let loaded = engine.load_tree(&Silent).unwrap();
        Opened { engine, loaded }
    }
}

/// Returns the current user.
pub fn own() -> Owner {
    Owner { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
}

/// A directory with `target` to unpack into, and `outside`, in which nothing may change.
pub struct Place {
    dir: tempfile::TempDir,
    before: BTreeSet<String>,
}

impl Place {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("sentinel"), "untouched").unwrap();
        std::fs::create_dir(outside.join("empty")).unwrap();
        let mut place = Place { dir, before: BTreeSet::new() };
        place.before = place.look();
        place
    }

    pub fn target(&self) -> PathBuf {
        self.dir.path().join("target")
    }

    pub fn outside(&self) -> PathBuf {
        self.dir.path().join("outside")
    }

    /// Returns everything outside, with all attributes that could have been changed.
    fn look(&self) -> BTreeSet<String> {
        use std::os::unix::fs::MetadataExt;
        let mut rows = BTreeSet::new();
        let mut dirs = vec![self.outside()];
        while let Some(dir) = dirs.pop() {
            let meta = std::fs::symlink_metadata(&dir).unwrap();
            rows.insert(format!(
                "{dir:?} {:o} {} {} {}",
                meta.mode(),
                meta.uid(),
                meta.mtime(),
                meta.mtime_nsec()
            ));
            for entry in std::fs::read_dir(&dir).unwrap() {
                let path = entry.unwrap().path();
                let meta = std::fs::symlink_metadata(&path).unwrap();
                if meta.is_dir() {
                    dirs.push(path);
                    continue;
                }
                let bytes = std::fs::read(&path).unwrap();
                let times = (meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec());
                rows.insert(format!(
                    "{path:?} {:o} {} {} {times:?} {bytes:?}",
                    meta.mode(),
                    meta.uid(),
                    meta.nlink()
                ));
            }
        }
        rows
    }

    /// Accepts the current state outside as the expected one.
    pub fn look_again(&mut self) {
        self.before = self.look();
    }

    /// Panics if anything outside the target has changed.
    pub fn assert_outside_untouched(&self) {
        assert_eq!(self.look(), self.before);
    }
}
