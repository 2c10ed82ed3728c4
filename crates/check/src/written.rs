//! Whether an image gives back what it was made of: names, metadata, and contents as they were seen when they were read.
//!
//! Knows no format but what it says it can hold ([`PackFormat::held_time`], [`PackFormat::holds_xattr`] and their like); what it cannot hold was
//! told, and accepted, before the image was written.

mod contents;

use crate::diff::pairs;
use contents::Promise;
use packfs_core::{
    Error, ImagePath, Node, NodeId, NodeKind, PackFormat, Progress, Result, Stage, Tree, Witnessed, XattrsId,
    escaped,
};
use packfs_read::{LoadedVolume, ReadEngine, Wanted};
use std::collections::HashSet;
use std::fmt::Debug;
use std::sync::Arc;

/// What an image is to give back.
#[derive(Clone, Copy)]
pub struct Expected<'a> {
    /// The format it was made in.
    pub format: &'a dyn PackFormat,
    /// What was packed.
    pub tree: &'a Tree,
    /// Files that were stored empty, as they could not be read; sorted.
    pub failed: &'a [NodeId],
    /// What was seen of each node's contents.
    pub contents: &'a [Witnessed],
}

/// Reads all of an image and compares it with what it was made of.
///
/// Errors: `Failed` for the first difference, naming the file; `Corrupt` for what cannot be decoded; `Io`, `Cancelled`.
pub fn written(engine: &Arc<ReadEngine>, expected: &Expected<'_>, progress: &dyn Progress) -> Result<()> {
    let loaded = engine.load_tree(progress)?;
    let nodes = compare_trees(engine, expected, &loaded, progress)?;
    let mut wanted = Vec::new();
    let mut promises = Vec::new();
    for (id, node) in expected.tree.nodes() {
        let len = expected.len(id, node);
        let seen = expected.contents.get(id.index()).copied().unwrap_or(Witnessed::Nothing);
        if let Some(there) = nodes[id.index()].filter(|_| len > 0 && seen != Witnessed::Nothing) {
            wanted.push(Wanted { id: loaded.inodes[there.index()], len });
            promises.push(Promise { node: id, len, seen });
        }
    }
    let bytes = wanted.iter().fold(0_u64, |bytes, file| bytes.saturating_add(file.len));
    progress.begin(Stage::Verify, wanted.len() as u64, bytes);
    contents::compare(engine, expected.tree, &wanted, &promises, progress)
}

impl Expected<'_> {
    /// How long a file is to be.
    fn len(&self, id: NodeId, node: &Node) -> u64 {
        match node.kind {
            NodeKind::File { len, .. } if self.failed.binary_search(&id).is_err() => len,
            _ => 0,
        }
    }
}

/// Compares names and metadata; returns the image's node of each that was planned.
fn compare_trees(
    engine: &ReadEngine,
    expected: &Expected<'_>,
    loaded: &LoadedVolume,
    progress: &dyn Progress,
) -> Result<Vec<Option<NodeId>>> {
    let mut compare = Comparing {
        engine,
        expected,
        loaded,
        nodes: vec![None; expected.tree.node_count() as usize],
        taken: vec![false; loaded.tree.node_count() as usize],
        xattrs: HashSet::new(),
    };
    pairs(expected.tree, &loaded.tree, |path, planned, there| {
        if progress.cancelled() {
            return Err(Error::cancelled());
        }
        match (planned, there) {
            (Some(planned), Some(there)) => compare.name(path, planned, there),
            (Some(_), None) => Err(wrong(path, "is missing")),
            _ => Err(wrong(path, "was never packed")),
        }
    })?;
    Ok(compare.nodes)
}

fn wrong(path: &ImagePath, what: impl std::fmt::Display) -> Error {
    Error::failed(format!("\"{}\" {what}", escaped(path.as_bytes())))
}

fn differs(path: &ImagePath, what: &str, planned: &dyn Debug, there: &dyn Debug) -> Error {
    wrong(path, format!("has another {what}: {there:.200?} instead of {planned:.200?}"))
}

struct Comparing<'a> {
    engine: &'a ReadEngine,
    expected: &'a Expected<'a>,
    loaded: &'a LoadedVolume,
    /// The image's node of each that was planned.
    nodes: Vec<Option<NodeId>>,
    /// Which nodes of the image are one of these.
    taken: Vec<bool>,
    /// Sets of attributes that were found to be the same.
    xattrs: HashSet<(XattrsId, XattrsId)>,
}

impl Comparing<'_> {
    fn name(&mut self, path: &ImagePath, planned: NodeId, there: NodeId) -> Result<()> {
        let holds_links = self.expected.format.holds_links();
        if let Some(known) = self.nodes[planned.index()].filter(|_| holds_links) {
            return if known == there { Ok(()) } else { Err(wrong(path, "is no link to its other names")) };
        }
        if std::mem::replace(&mut self.taken[there.index()], true) {
            return Err(wrong(path, "is a link to another file"));
        }
        self.nodes[planned.index()] = Some(there);
        let (a, b) = (self.expected.tree.node(planned), self.loaded.tree.node(there));
        if a.kind.file_type() != b.kind.file_type() {
            return Err(differs(path, "type", &a.kind.file_type().word(), &b.kind.file_type().word()));
        }
        match (&a.kind, &b.kind) {
            (NodeKind::File { .. }, NodeKind::File { len, .. }) => {
                let planned = self.expected.len(planned, a);
                if planned != *len {
                    return Err(differs(path, "length", &planned, len));
                }
            }
            (NodeKind::Symlink(planned), NodeKind::Symlink(there)) if planned != there => {
                let (planned, there) = (escaped(planned).to_string(), escaped(there).to_string());
                return Err(differs(path, "target", &planned, &there));
            }
            (NodeKind::BlockDevice(planned), NodeKind::BlockDevice(there))
            | (NodeKind::CharDevice(planned), NodeKind::CharDevice(there))
                if self.expected.format.held_device(*planned) != *there =>
            {
                return Err(differs(path, "device number", planned, there));
            }
            _ => {}
        }
        self.meta(path, a, b)?;
        self.xattrs(path, a.xattrs, b.xattrs)?;
        // Trees count names; what mounts show is what is stored.
        if holds_links && !a.is_dir() && a.links > 1 {
            let stored = self.engine.volume().inode(self.loaded.inodes[there.index()])?.links;
            if stored != a.links {
                return Err(differs(path, "number of links", &a.links, &stored));
            }
        }
        Ok(())
    }

    fn meta(&self, path: &ImagePath, a: &Node, b: &Node) -> Result<()> {
        // Those of symbolic links mean nothing, and not every format keeps them.
        if !matches!(a.kind, NodeKind::Symlink(_)) && a.meta.mode != b.meta.mode {
            let octal = |node: &Node| format!("{:04o}", node.meta.mode);
            return Err(differs(path, "mode", &octal(a), &octal(b)));
        }
        if self.expected.format.held_owner(a.meta.owner) != b.meta.owner {
            return Err(differs(path, "owner", &a.meta.owner, &b.meta.owner));
        }
        let format = self.expected.format;
        match format.held_time(a.meta.mtime).filter(|_| format.holds_time_of(a.kind.file_type())) {
            Some(time) if time != b.meta.mtime => {
                Err(differs(path, "time", &time.to_string(), &b.meta.mtime.to_string()))
            }
            _ => Ok(()),
        }
    }

    fn xattrs(&mut self, path: &ImagePath, planned: XattrsId, there: XattrsId) -> Result<()> {
        if self.xattrs.contains(&(planned, there)) {
            return Ok(());
        }
        let (a, b) = (self.expected.tree.xattrs(planned), self.loaded.tree.xattrs(there));
        let held = || a.iter().filter(|(name, value)| self.expected.format.holds_xattr(name, value));
        if held().count() != b.len() {
            return Err(differs(path, "number of extended attributes", &held().count(), &b.len()));
        }
        if let Some((name, _)) = held().find(|(name, value)| b.get(*name) != Some(value)) {
            return Err(wrong(path, format!("has another extended attribute \"{}\"", escaped(name))));
        }
        self.xattrs.insert((planned, there));
        Ok(())
    }
}
