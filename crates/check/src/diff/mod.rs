//! Compares two trees name by name.
//!
//! Names and metadata are compared during the walk, contents on several threads at some distance;
//! differences are reported in path order.

mod contents;
mod walk;

use contents::Pending;
use packfs_core::{
    Contents, DeviceNumber, Error, FileType, ImagePath, Node, NodeId, NodeKind, Owner, Progress, Result,
    Stage, Timestamp, Tree,
};
use std::collections::{HashMap, HashSet};

/// Attributes to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffOptions {
    /// Contents of files.
    pub contents: bool,
    /// Users and groups.
    pub owners: bool,
    /// Permissions; those of symbolic links never count, because Linux has none.
    pub modes: bool,
    /// Times, in whole seconds.
    pub times: bool,
    /// Fractions of seconds, which SquashFS does not store.
    pub nanos: bool,
    /// Extended attributes.
    pub xattrs: bool,
    /// Hard links.
    pub links: bool,
    /// Threads that compare contents; 0 means one per CPU.
    pub jobs: usize,
}

impl Default for DiffOptions {
    fn default() -> Self {
        DiffOptions {
            contents: true,
            owners: true,
            modes: true,
            times: true,
            nanos: false,
            xattrs: true,
            links: true,
            jobs: 0,
        }
    }
}

/// One of the two trees.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// Names and metadata.
    pub tree: &'a Tree,
    /// Contents of its files.
    pub contents: &'a dyn Contents,
}

/// A difference of one name; the first value is that of the first tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Only in the first tree.
    OnlyInA,
    /// Only in the second tree.
    OnlyInB,
    /// Types, in which case nothing else is compared.
    Type(FileType, FileType),
    /// Lengths of files.
    Len(u64, u64),
    /// Contents, from this byte on.
    Contents(u64),
    /// Permissions.
    Mode(u16, u16),
    /// User and group.
    Owner(Owner, Owner),
    /// Times.
    Mtime(Timestamp, Timestamp),
    /// Targets of symbolic links.
    Target(Vec<u8>, Vec<u8>),
    /// Device numbers.
    Device(DeviceNumber, DeviceNumber),
    /// An extended attribute: name and values, `None` if it is missing.
    Xattr(Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>),
    /// This name is a hard link to another one in only one tree: the first name of its file in
    /// each, among the names that both trees have.
    Link(ImagePath, ImagePath),
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// Path of the name.
    pub path: ImagePath,
    /// The difference.
    pub change: Change,
}

/// Result of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DiffReport {
    /// Names in either tree.
    pub names: u64,
    /// Number of differences; a name may have several.
    pub differences: u64,
}

/// Compares two trees; calls `report` for each difference, in path order.
///
/// A directory in only one tree is reported without its entries. Contents with several names are
/// compared once.
///
/// Errors: read errors, after the differences before them; `Cancelled`.
pub fn diff(
    a: Side<'_>,
    b: Side<'_>,
    options: DiffOptions,
    progress: &dyn Progress,
    report: &mut dyn FnMut(Difference),
) -> Result<DiffReport> {
    progress.begin(Stage::Verify, a.tree.entry_count() as u64, a.tree.bytes_total());
    let mut compare = Comparing {
        a,
        b,
        options,
        progress,
        report,
        done: DiffReport::default(),
        firsts: [HashMap::new(), HashMap::new()],
        pairs: HashSet::new(),
        pending: Pending::new([a.contents, b.contents], options.jobs, progress),
    };
    walk::pairs(a.tree, b.tree, |path, a, b| compare.name(path, a, b))?;
    compare.report_pending()?;
    Ok(compare.done)
}

struct Comparing<'a> {
    a: Side<'a>,
    b: Side<'a>,
    options: DiffOptions,
    progress: &'a dyn Progress,
    report: &'a mut dyn FnMut(Difference),
    done: DiffReport,
    firsts: [HashMap<NodeId, ImagePath>; 2],
    pairs: HashSet<(NodeId, NodeId)>,
    pending: Pending<'a>,
}

impl Comparing<'_> {
    fn found(&mut self, path: &ImagePath, change: Change) {
        self.pending.difference(Difference { path: path.clone(), change });
    }

    fn report_pending(&mut self) -> Result<()> {
        let Comparing { pending, done, report, .. } = self;
        pending.finish(&mut |difference| {
            done.differences += 1;
            report(difference);
        })
    }

    fn name(&mut self, path: &ImagePath, a: Option<NodeId>, b: Option<NodeId>) -> Result<()> {
        if self.progress.cancelled() {
            return Err(Error::cancelled());
        }
        self.done.names += 1;
        let (Some(a), Some(b)) = (a, b) else {
            self.found(path, if a.is_some() { Change::OnlyInA } else { Change::OnlyInB });
            return self.report_if_many();
        };
        let (tree_a, tree_b) = (self.a.tree, self.b.tree);
        let (node_a, node_b) = (tree_a.node(a), tree_b.node(b));
        let (type_a, type_b) = (node_a.kind.file_type(), node_b.kind.file_type());
        if type_a != type_b {
            self.found(path, Change::Type(type_a, type_b));
            return self.report_if_many();
        }
        let several_names = !node_a.is_dir() && (node_a.links > 1 || node_b.links > 1);
        if several_names {
            if !self.pairs.insert((a, b)) {
                return Ok(());
            }
            self.links(path, a, b);
        }
        self.meta(path, node_a, node_b);
        self.kind(path, node_a, node_b)?;
        self.progress.advance(1, 0, 0);
        self.report_if_many()
    }

    fn report_if_many(&mut self) -> Result<()> {
        if self.pending.is_full() { self.report_pending() } else { Ok(()) }
    }

    /// Equal if the names in both trees form the same groups.
    fn links(&mut self, path: &ImagePath, a: NodeId, b: NodeId) {
        let [firsts_a, firsts_b] = &mut self.firsts;
        let first_a = firsts_a.entry(a).or_insert_with(|| path.clone());
        let first_b = firsts_b.entry(b).or_insert_with(|| path.clone());
        if self.options.links && first_a != first_b {
            let change = Change::Link(first_a.clone(), first_b.clone());
            self.found(path, change);
        }
    }

    fn meta(&mut self, path: &ImagePath, a: &Node, b: &Node) {
        let options = self.options;
        let is_symlink = matches!(a.kind, NodeKind::Symlink(_));
        if options.modes && !is_symlink && a.meta.mode != b.meta.mode {
            self.found(path, Change::Mode(a.meta.mode, b.meta.mode));
        }
        if options.owners && a.meta.owner != b.meta.owner {
            self.found(path, Change::Owner(a.meta.owner, b.meta.owner));
        }
        let (time_a, time_b) = (a.meta.mtime, b.meta.mtime);
        if options.times
            && (time_a.seconds != time_b.seconds || options.nanos && time_a.nanos != time_b.nanos)
        {
            self.found(path, Change::Mtime(time_a, time_b));
        }
        if options.xattrs {
            let (set_a, set_b) = (self.a.tree.xattrs(a.xattrs), self.b.tree.xattrs(b.xattrs));
            for (name, value) in set_a {
                if set_b.get(name) != Some(value) {
                    self.found(
                        path,
                        Change::Xattr(name.clone(), Some(value.clone()), set_b.get(name).cloned()),
                    );
                }
            }
            for (name, value) in set_b.iter().filter(|(name, _)| !set_a.contains_key(*name)) {
                self.found(path, Change::Xattr(name.clone(), None, Some(value.clone())));
            }
        }
    }

    fn kind(&mut self, path: &ImagePath, a: &Node, b: &Node) -> Result<()> {
        match (&a.kind, &b.kind) {
            (NodeKind::File { len: len_a, .. }, NodeKind::File { len: len_b, .. }) if len_a != len_b => {
                self.found(path, Change::Len(*len_a, *len_b));
            }
            (NodeKind::File { len, content: a }, NodeKind::File { content: b, .. })
                if self.options.contents && *len > 0 =>
            {
                self.pending.file(path, *len, [*a, *b])?;
            }
            (NodeKind::Symlink(a), NodeKind::Symlink(b)) if a != b => {
                self.found(path, Change::Target(a.to_vec(), b.to_vec()));
            }
            (NodeKind::BlockDevice(a), NodeKind::BlockDevice(b))
            | (NodeKind::CharDevice(a), NodeKind::CharDevice(b))
                if a != b =>
            {
                self.found(path, Change::Device(*a, *b));
            }
            _ => {}
        }
        Ok(())
    }
}
