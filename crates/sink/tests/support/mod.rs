//! A volume made by hand, so that tests can say things that no builder of images would write.
#![allow(dead_code, reason = "each test file uses its part")]

use packfs_core::*;
use packfs_read::{LoadedVolume, ReadEngine, ReadOptions};
use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Data of files comes in extents of at most this.
pub const EXTENT_LEN: usize = 4096;

/// A part of a file.
pub enum Part<'a> {
    Data(&'a [u8]),
    Hole(u64),
    /// Data that lies behind the end of the image.
    Unreadable(u64),
}

struct FakeNode {
    inode: Inode,
    children: Vec<(Vec<u8>, usize)>,
    target: Vec<u8>,
    xattrs: Xattrs,
    extents: Vec<Extent>,
}

/// Nodes by index, the root first; and the bytes that extents point into.
pub struct Fake {
    nodes: Vec<FakeNode>,
    bytes: Vec<u8>,
}

/// What `unpack`, `write_tar` and `list` take.
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
        let number = self.nodes.len() as u64 + 1;
        let inode = Inode { kind, meta, links: 1, number, has_xattrs: false };
        let (children, target, xattrs, extents) = Default::default();
        self.nodes.push(FakeNode { inode, children, target, xattrs, extents });
        self.nodes.len() - 1
    }

    pub fn add(&mut self, parent: usize, name: &[u8], kind: InodeKind) -> usize {
        let id = self.push(kind);
        self.link(parent, name, id);
        id
    }

    pub fn link(&mut self, parent: usize, name: &[u8], id: usize) {
        self.nodes[parent].children.push((name.to_vec(), id));
        self.nodes[parent].children.sort();
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

    /// Files `f0`, `f1`, ... of so many extents, the first extents of all of them stored before the second ones.
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

    /// What every byte of an extent of an interleaved file is.
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
        self.nodes[id].inode.has_xattrs = true;
        self.nodes[id].xattrs.insert(name.to_vec(), value.to_vec());
    }

    pub fn volume(self) -> FakeVolume {
        FakeVolume(self.nodes)
    }

    pub fn engine(self) -> Arc<ReadEngine> {
        let image = Arc::new(FakeImage(self.bytes));
        let options = ReadOptions { jobs: 2, ..ReadOptions::default() };
        ReadEngine::new(image, Arc::new(FakeVolume(self.nodes)), options)
    }

    pub fn open(self) -> Opened {
        let engine = self.engine();
        let loaded = engine.load_tree(&Silent).unwrap();
        Opened { engine, loaded }
    }
}

struct FakeImage(Vec<u8>);

impl Image for FakeImage {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let start = (offset as usize).min(self.0.len());
        let count = buf.len().min(self.0.len() - start);
        buf[..count].copy_from_slice(&self.0[start..start + count]);
        Ok(count)
    }

    fn name(&self) -> String {
        "fake image".into()
    }
}

pub struct FakeVolume(Vec<FakeNode>);

impl FakeVolume {
    fn node(&self, id: InodeId) -> &FakeNode {
        &self.0[id.0 as usize]
    }
}

impl Volume for FakeVolume {
    fn format_name(&self) -> &'static str {
        "fake"
    }

    fn root(&self) -> InodeId {
        InodeId(0)
    }

    fn inode(&self, id: InodeId) -> Result<Inode> {
        Ok(self.node(id).inode)
    }

    fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        Ok(self.node(dir).children.iter().find(|child| child.0 == name).map(|child| InodeId(child.1 as u64)))
    }

    fn read_dir(
        &self,
        dir: InodeId,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        for (index, (name, child)) in self.node(dir).children.iter().enumerate().skip(from.0 as usize) {
            let id = InodeId(*child as u64);
            let file_type = self.node(id).inode.kind.file_type();
            let entry = DirEntry { name: name.clone(), id, file_type };
            if visit(entry, DirCursor(index as u64 + 1)).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn read_link(&self, id: InodeId) -> Result<Vec<u8>> {
        Ok(self.node(id).target.clone())
    }

    fn xattrs(&self, id: InodeId) -> Result<Xattrs> {
        Ok(self.node(id).xattrs.clone())
    }

    fn extents(
        &self,
        id: InodeId,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        for extent in &self.node(id).extents {
            let start = extent.offset.max(range.start);
            let end = (extent.offset + extent.len).min(range.end);
            if start >= end {
                continue;
            }
            let from = match extent.from {
                ExtentFrom::Stored(at) => ExtentFrom::Stored(at + start - extent.offset),
                other => other,
            };
            if visit(Extent { offset: start, len: end - start, from }).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn inode_count_hint(&self) -> u64 {
        self.0.len() as u64
    }

    fn made_at(&self) -> Option<i64> {
        None
    }

    fn facts(&self) -> Result<Facts> {
        Ok(Facts::default())
    }

    fn space(&self) -> Result<Vec<SpaceOwner>> {
        Ok(Vec::new())
    }

    fn check(&self, _found: &mut dyn FnMut(Finding)) -> Result<()> {
        Ok(())
    }
}

/// Who runs the test.
pub fn own() -> Owner {
    Owner { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
}

pub fn is_root() -> bool {
    own().uid == 0
}

/// Says that a test is left out.
pub fn skip(why: &str) {
    eprintln!("SKIPPED: {why}");
}

/// Runs `body` as somebody without privileges: in a process of its own if this one is root. `name` is the test's path.
pub fn as_nobody(name: &str, body: impl FnOnce()) {
    const MARK: &str = "PACKFS_TEST_AS_NOBODY";
    const NOBODY: u32 = 65_534;
    if !is_root() || std::env::var_os(MARK).is_some() {
        assert!(!is_root());
        return body();
    }
    // The test binary may lie where only root may go, so it is given to the child as an open file.
    let copy = tempfile::Builder::new().prefix("packfs-test").tempdir().unwrap();
    open_to_all(copy.path());
    let program = copy.path().join("test");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let output = std::process::Command::new(program)
        .args([name, "--exact", "--nocapture"])
        .env(MARK, "1")
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn open_to_all(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
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

    /// Everything outside, with what could have been changed.
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

    /// What is outside now is what must stay.
    pub fn look_again(&mut self) {
        self.before = self.look();
    }

    /// Panics if anything outside the target is not as it was.
    pub fn assert_outside_untouched(&self) {
        assert_eq!(self.look(), self.before);
    }
}
