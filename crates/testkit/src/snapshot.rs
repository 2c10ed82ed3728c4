//! Everything a test compares of a file hierarchy, in one form wherever the hierarchy lives.

use packfs_core::{
    Contents, DeviceNumber, FileType, ImagePath, NodeId, NodeKind, Timestamp, Tree, Xattrs, escaped,
};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// Observed properties of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Type.
    pub file_type: FileType,
    /// Permission bits.
    pub mode: u32,
    /// User and group.
    pub owner: (u32, u32),
    /// Time of last change.
    pub mtime: Timestamp,
    /// Link count.
    pub links: u64,
    /// Length of a file, or of a symlink's target.
    pub len: u64,
    /// SHA-256 of a file's contents, or a symlink's target.
    pub content: Vec<u8>,
    /// Number of a device.
    pub device: Option<DeviceNumber>,
    /// Extended attributes.
    pub xattrs: Xattrs,
    /// The first name, in path order, of the file this name is a link to; names with the same are
    /// one file.
    pub first_name: Vec<u8>,
    /// Bytes taken on disk, or said to be data, where known: to tell holes.
    pub stored_len: Option<u64>,
}

/// A hierarchy by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot(pub BTreeMap<Vec<u8>, Row>);

/// Properties that a comparison of two snapshots covers.
#[derive(Clone, Copy, Debug)]
pub struct Compare {
    /// Fractions of seconds too.
    pub nanos: bool,
    /// Extended attributes.
    pub xattrs: bool,
    /// User and group.
    pub owners: bool,
    /// Link counts of directories, which not every file system keeps.
    pub dir_links: bool,
    /// Compares hard links and link counts.
    pub hard_links: bool,
    /// Times of symlinks.
    pub symlink_times: bool,
    /// The time, mode and owner of the root directory.
    pub root: bool,
}

impl Compare {
    /// Everything, to the nanosecond.
    pub const ALL: Compare = Compare {
        nanos: true,
        xattrs: true,
        owners: true,
        dir_links: true,
        hard_links: true,
        symlink_times: true,
        root: true,
    };
}

impl Default for Compare {
    fn default() -> Self {
        let all = Compare::ALL;
        Compare { nanos: false, ..all }
    }
}

impl Snapshot {
    /// Panics with a list of differences if there are any.
    #[track_caller]
    pub fn assert_same(&self, other: &Snapshot, compare: Compare, what: &str) {
        let differences = self.differences(other, compare);
        assert!(differences.is_empty(), "{what}:\n{}", differences.join("\n"));
    }

    /// Lists the first twenty differences.
    pub fn differences(&self, other: &Snapshot, compare: Compare) -> Vec<String> {
        self.each_difference(other, compare).take(20).collect()
    }

    /// Tells all differences, one a path.
    pub fn each_difference<'a>(
        &'a self,
        other: &'a Snapshot,
        compare: Compare,
    ) -> impl Iterator<Item = String> + 'a {
        let paths = self.0.keys().chain(other.0.keys().filter(|path| !self.0.contains_key(*path)));
        paths.filter_map(move |path| {
            let text = match (self.0.get(path), other.0.get(path)) {
                (Some(a), Some(b)) => difference(a, b, compare, path.is_empty()),
                (Some(_), None) => "only in the first".into(),
                _ => "only in the second".into(),
            };
            (!text.is_empty()).then(|| format!("  \"{}\": {text}", escaped(path)))
        })
    }
}

fn difference(a: &Row, b: &Row, compare: Compare, is_root: bool) -> String {
    let mut text = String::new();
    let mut differs = |name: &str, a: &dyn std::fmt::Debug, b: &dyn std::fmt::Debug, same: bool| {
        if !same {
            // Attributes can be long.
            let _ = write!(text, "{name} {:.300} and {:.300}; ", format!("{a:?}"), format!("{b:?}"));
        }
    };
    differs("type", &a.file_type, &b.file_type, a.file_type == b.file_type);
    differs("length", &a.len, &b.len, a.file_type == FileType::Directory || a.len == b.len);
    differs("content", &a.content, &b.content, a.content == b.content);
    differs("device", &a.device, &b.device, a.device == b.device);
    if compare.root || !is_root {
        // Linux has no permissions on symlinks: mounts show 0777, tars what they like.
        differs("mode", &a.mode, &b.mode, a.file_type == FileType::Symlink || a.mode == b.mode);
        differs("owner", &a.owner, &b.owner, !compare.owners || a.owner == b.owner);
        let timed = compare.symlink_times || a.file_type != FileType::Symlink;
        let same_time =
            a.mtime.seconds == b.mtime.seconds && (!compare.nanos || a.mtime.nanos == b.mtime.nanos);
        differs("time", &a.mtime, &b.mtime, !timed || same_time);
        differs("xattrs", &a.xattrs, &b.xattrs, !compare.xattrs || a.xattrs == b.xattrs);
    }
    if compare.hard_links && (compare.dir_links || a.file_type != FileType::Directory) {
        differs("links", &a.links, &b.links, a.links == b.links);
        differs(
            "first name",
            &escaped(&a.first_name).to_string(),
            &escaped(&b.first_name).to_string(),
            a.first_name == b.first_name,
        );
    }
    text
}

/// Files longer than this are not read as a whole, but in samples.
const SAMPLED_LEN: u64 = 1 << 30;
/// So many, from the first byte to the last.
pub(crate) const SAMPLES: u64 = 16;

/// SHA-256 of contents, read in parts; holes are hashed as zeros.
pub(crate) fn hash(len: u64, mut read: impl FnMut(u64, &mut [u8])) -> Vec<u8> {
    let mut hasher = Sha256::new();
    let mut buf = vec![0; len.min(1 << 16) as usize];
    let mut offset = 0;
    while offset < len {
        let part = &mut buf[..(len - offset).min(1 << 16) as usize];
        read(offset, part);
        hasher.update(&*part);
        let read_len = part.len() as u64;
        let end = offset + read_len;
        offset = if len > SAMPLED_LEN && end < len {
            (end + (len - read_len) / (SAMPLES - 1) - read_len).min(len - read_len)
        } else {
            end
        };
    }
    hasher.finalize().to_vec()
}

/// The snapshot of a tree with its contents. Panics where they cannot be read.
pub fn snapshot_tree(tree: &Tree, contents: &dyn Contents) -> Snapshot {
    let mut rows = BTreeMap::new();
    let mut first_names: HashMap<NodeId, Vec<u8>> = HashMap::new();
    let mut walk = tree.walk();
    while let Some((path, id)) = walk.next() {
        let first_name = first_names.entry(id).or_insert_with(|| path.as_bytes().to_vec()).clone();
        rows.insert(path.as_bytes().to_vec(), tree_row(tree, contents, path, id, first_name));
    }
    Snapshot(rows)
}

fn tree_row(tree: &Tree, contents: &dyn Contents, path: &ImagePath, id: NodeId, first_name: Vec<u8>) -> Row {
    let node = tree.node(id);
    let (len, content) = match &node.kind {
        NodeKind::File { len, content } => {
            let mut reader = contents.open(*content).unwrap_or_else(|e| panic!("{path:?}: {e}"));
            let read = |offset, buf: &mut [u8]| {
                reader.read_exact_at(offset, buf).unwrap_or_else(|e| panic!("{path:?}: {e}"))
            };
            (*len, hash(*len, read))
        }
        NodeKind::Symlink(target) => (target.len() as u64, target.to_vec()),
        _ => (0, Vec::new()),
    };
    let device = match node.kind {
        NodeKind::BlockDevice(number) | NodeKind::CharDevice(number) => Some(number),
        _ => None,
    };
    Row {
        file_type: node.kind.file_type(),
        mode: u32::from(node.meta.mode),
        owner: (node.meta.owner.uid, node.meta.owner.gid),
        mtime: node.meta.mtime,
        links: u64::from(node.links),
        len,
        content,
        device,
        xattrs: tree.xattrs(node.xattrs).clone(),
        first_name,
        stored_len: None,
    }
}
