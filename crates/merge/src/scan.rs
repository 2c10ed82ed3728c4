//! Merges the trees of all inputs, directory by directory.
//!
//! A directory of the new tree has layers: directories of inputs that are stacked, and the paths
//! that inputs are mounted at. Entries of one name are merged when their directory is read, so that
//! hidden ones are never built. Memory is needed for the new tree, and the names of one directory
//! of several layers.

mod conflicts;
mod entries;
mod sources;

use crate::warm::Warm;
use crate::{Marks, MergeInput, MergeOptions, OnConflict};
use conflicts::Conflicts;
use entries::{Found, What};
use packfs_core::{
    BuildId, ContentId, Error, Meta, Meter, Name, NodeKind, Progress, Result, Stage, Tree, TreeBuilder,
    Xattrs,
    overlay::{self, Effect},
};
use packfs_format::{DirNames, Inode, InodeId, InodeKind, SeenDirs, check_claims, node_kind};
use sources::{Rows, Sources};
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;

/// Entries between two reports of progress.
const ENTRIES_BETWEEN_LOOKS: u64 = 1024;

/// Inode numbers have 32 bits, including those of the root and of special inodes.
const ENTRIES_MAX: u64 = u32::MAX as u64 - 8;

pub(crate) struct Scanned {
    pub tree: Tree,
    contents: Rows,
    pub replaced: u64,
}

impl Scanned {
    pub(crate) fn source(&self, content: ContentId) -> Option<(usize, InodeId)> {
        let (input, inode) = usize::try_from(content.0).ok().and_then(|index| self.contents.get(index))?;
        Some((input as usize, inode))
    }

    /// Seconds since 1970.
    pub(crate) fn newest(&self) -> i64 {
        self.tree.nodes().map(|(_, node)| node.meta.mtime.seconds).max().unwrap_or(0)
    }
}

struct Open {
    build: BuildId,
    name: usize,
    depth: u64,
    layers: Vec<Layer>,
}

#[derive(Clone, Copy)]
struct Layer {
    input: u32,
    place: LayerPlace,
}

#[derive(Clone, Copy)]
enum LayerPlace {
    Dir(InodeId),
    /// Depth in the mount path.
    Path(usize),
}

struct Scan<'a> {
    inputs: &'a [MergeInput],
    options: &'a MergeOptions,
    implied: Meta,
    progress: &'a dyn Progress,
    warm: &'a Warm<'a>,
    builder: TreeBuilder,
    sources: Sources,
    seen_dirs: HashMap<u32, SeenDirs>,
    open: Vec<Open>,
    names: DirNames,
    meter: Meter,
    entry_count: u64,
    conflicts: Conflicts,
    replaced: u64,
}

/// Errors: `Corrupt` for an invalid hierarchy of an input, `Failed` for names in conflict, `Limit`,
/// `Cancelled`, `Io`.
pub(crate) fn scan(
    inputs: &[MergeInput],
    warm: &Warm<'_>,
    options: &MergeOptions,
    progress: &dyn Progress,
) -> Result<Scanned> {
    let hints = inputs.iter().map(|input| input.volume.inode_count_hint());
    let hint = hints.fold(0, u64::saturating_add);
    progress.begin(Stage::Scan, hint, 0);
    let implied = options.implied.meta(None);
    let mut scan = Scan {
        inputs,
        options,
        implied,
        progress,
        warm,
        builder: TreeBuilder::new(implied),
        sources: Sources::new(hint),
        seen_dirs: HashMap::new(),
        open: Vec::new(),
        names: DirNames::default(),
        meter: Meter::new(options.limits, "merged images"),
        entry_count: 0,
        conflicts: Conflicts::default(),
        replaced: 0,
    };
    let layers: Vec<Found> =
        (0..).zip(inputs).map(|(input, _)| Found { input, what: What::Mount(0) }).collect();
    scan.sources.push((0, InodeId(0)));
    let root = scan.read_layers(&layers, DirNames::ROOT, b"")?;
    scan.open_dir(BuildId::ROOT, &root, 0, 0)?;
    while let Some(open) = scan.open.pop() {
        scan.read(&open)?;
    }
    let Scan { builder, sources, conflicts, replaced, .. } = scan;
    conflicts.into_result(inputs)?;
    let contents = sources.into_rows();
    Ok(Scanned { tree: builder.finish()?, contents, replaced })
}

struct Described {
    found: Found,
    /// `None` for a directory implied by a mount path.
    inode: Option<(InodeId, Inode, Xattrs)>,
}

impl Described {
    fn is_dir(&self) -> bool {
        self.inode.as_ref().is_none_or(|(_, inode, _)| inode.kind == InodeKind::Directory)
    }

    fn effect(&self, marks: Marks) -> Effect {
        match &self.inode {
            Some((_, inode, xattrs)) if marks != Marks::Plain => Effect::of(inode.kind, xattrs),
            _ if self.is_dir() => Effect::Joins,
            _ => Effect::Covers,
        }
    }
}

impl<'a> Scan<'a> {
    fn input(&self, index: u32) -> Result<&'a MergeInput> {
        self.warm.touch(index as usize);
        self.inputs.get(index as usize).ok_or_else(|| Error::failed("internal: an input that is none"))
    }

    /// Entries of one name are in the order of the inputs.
    fn read_layers(&self, layers: &[Found], dir: usize, name: &[u8]) -> Result<Vec<Described>> {
        let mut rows = Vec::with_capacity(layers.len());
        for found in layers {
            let input = self.input(found.input)?;
            let at = |error: Error| error.at(self.path(dir, name)).at(&input.name);
            let id = match found.what {
                What::Mount(depth) if depth < input.at.names().count() => {
                    rows.push(Described { found: *found, inode: None });
                    continue;
                }
                What::Mount(_) => input.volume.root(),
                What::Inode(id, _) => id,
            };
            let inode = input.volume.inode(id).map_err(at)?;
            let claim = match found.what {
                What::Inode(_, file_type) => file_type,
                What::Mount(_) => inode.kind.file_type(),
            };
            check_claims(&*input.volume, claim, &inode).map_err(at)?;
            let xattrs = if inode.has_xattrs { input.volume.xattrs(id).map_err(at)? } else { Xattrs::new() };
            rows.push(Described { found: *found, inode: Some((id, inode, xattrs)) });
        }
        Ok(rows)
    }

    /// Metadata is that of the last layer that has any.
    fn open_dir(&mut self, build: BuildId, layers: &[Described], name: usize, depth: u64) -> Result<()> {
        let described = layers.iter().rev().find_map(|layer| layer.inode.as_ref());
        if let Some((_, inode, xattrs)) = described {
            self.meter.xattrs(xattrs)?;
            self.builder.describe(build, inode.meta, self.kept_xattrs(xattrs));
        }
        let layers = layers.iter().map(|layer| Layer {
            input: layer.found.input,
            place: match (&layer.inode, layer.found.what) {
                (Some((id, ..)), _) => LayerPlace::Dir(*id),
                (None, What::Mount(depth)) => LayerPlace::Path(depth),
                (None, What::Inode(id, _)) => LayerPlace::Dir(id),
            },
        });
        self.open.push(Open { build, name, depth, layers: layers.collect() });
        Ok(())
    }

    fn mark_origin(&mut self, dir: BuildId) {
        let (meta, mut xattrs) = self.builder.description(dir);
        if overlay::mark_origin(&mut xattrs) {
            self.builder.describe(dir, meta, xattrs);
        }
    }

    fn kept_xattrs(&self, xattrs: &Xattrs) -> Xattrs {
        if self.options.marks == Marks::Applied && !xattrs.is_empty() {
            overlay::without_marks(xattrs.clone())
        } else {
            xattrs.clone()
        }
    }

    fn read(&mut self, open: &Open) -> Result<()> {
        if let [Layer { input, place: LayerPlace::Dir(dir) }] = open.layers[..] {
            self.enter(input, dir, open)?;
            let mut entries = Vec::new();
            self.read_dir(input, dir, open, |name, found| entries.push((name, found)))?;
            return entries.into_iter().try_for_each(|(name, found)| self.take(open, &name, &[found]));
        }
        let mut names: BTreeMap<Vec<u8>, Vec<Found>> = BTreeMap::new();
        for layer in &open.layers {
            match layer.place {
                LayerPlace::Dir(dir) => {
                    self.enter(layer.input, dir, open)?;
                    self.read_dir(layer.input, dir, open, |name, found| {
                        names.entry(name).or_default().push(found)
                    })?;
                }
                LayerPlace::Path(depth) => {
                    let input = self.input(layer.input)?;
                    if let Some(name) = input.at.names().nth(depth) {
                        let found = Found { input: layer.input, what: What::Mount(depth.saturating_add(1)) };
                        names.entry(name.as_bytes().to_vec()).or_default().push(found);
                    }
                }
            }
        }
        names.into_iter().try_for_each(|(name, found)| self.take(open, &name, &found))
    }

    /// Errors: `Corrupt` for a directory that was read before.
    fn enter(&mut self, input: u32, dir: InodeId, open: &Open) -> Result<()> {
        let source = self.input(input)?;
        let entered = self.seen_dirs.entry(input).or_default().enter(&*source.volume, dir);
        entered.map_err(|error| error.at(self.path(open.name, b"")).at(&source.name))
    }

    fn take(&mut self, open: &Open, name: &[u8], found: &[Found]) -> Result<()> {
        self.count(open, name)?;
        let checked = Name::new(name).map_err(|fault| Error::failed(format!("internal: {fault}")))?;
        if let [Found { input, what: What::Inode(id, _) }] = found[..]
            && let Some(build) = self.sources.find((input, id))
        {
            self.builder.link_child(open.build, checked, build);
            return Ok(());
        }
        let mut rows = self.read_layers(found, open.name, name)?;
        self.settle(&mut rows, open, name);
        let Some(last) = rows.last() else { return Ok(()) };
        if last.is_dir() {
            let (kind, implied) = (NodeKind::Directory, self.implied);
            let build = self.builder.add_child(open.build, checked, kind, implied, Xattrs::new());
            self.sources.push((last.found.input, InodeId(0)));
            let row = self.names.add(open.name, name);
            return self.open_dir(build, &rows, row, open.depth.saturating_add(1));
        }
        // The visible entry of several may be a further name of a node.
        if let (2.., What::Inode(id, _)) = (found.len(), last.found.what)
            && let Some(build) = self.sources.find((last.found.input, id))
        {
            self.builder.link_child(open.build, checked, build);
            return Ok(());
        }
        self.add(open.build, checked, last).map_err(|error| error.at(self.path(open.name, name)))
    }

    /// Keeps the visible entries: several directories, one of another type, or none.
    fn settle(&mut self, rows: &mut Vec<Described>, open: &Open, name: &[u8]) {
        let marks = self.options.marks;
        let mark = rows.iter().rposition(|row| matches!(row.effect(marks), Effect::Replaces | Effect::Hides));
        if let Some(mark) = mark {
            rows.drain(..mark);
            self.replaced = self.replaced.saturating_add(mark as u64);
            let is_kept = marks == Marks::AppliedAndKept && rows.len() == 1;
            if !is_kept && rows.first().is_some_and(|row| !row.is_dir()) {
                rows.remove(0);
            }
        }
        if rows.len() < 2 || rows.iter().all(Described::is_dir) {
            return;
        }
        if self.options.on_conflict == OnConflict::Refuse {
            let inputs: Vec<u32> = rows.iter().map(|row| row.found.input).collect();
            let path = self.path(open.name, name);
            self.conflicts.add(path, &inputs);
        }
        let Ok::<_, Infallible>(seen) = overlay::seen(rows.iter().rev().map(|row| Ok(row.effect(marks))));
        let hidden = rows.len().saturating_sub(seen);
        self.replaced = self.replaced.saturating_add(hidden as u64);
        rows.drain(..hidden);
    }

    fn add(&mut self, parent: BuildId, name: Name<'_>, row: &Described) -> Result<()> {
        let Some((id, inode, xattrs)) = &row.inode else { return Ok(()) };
        let input = row.found.input;
        self.meter.xattrs(xattrs)?;
        let content = ContentId(self.builder.node_count());
        let volume = &*self.input(input)?.volume;
        let kind = node_kind(volume, (*id, inode.kind), content, &mut self.meter)?;
        let xattrs = self.kept_xattrs(xattrs);
        if kind == NodeKind::CharDevice(overlay::WHITEOUT_DEVICE) && self.options.marks != Marks::Plain {
            self.mark_origin(parent);
        }
        let build = self.builder.add_child(parent, name, kind, inode.meta, xattrs);
        self.sources.push((input, *id));
        // Whatever the number of its links: that of basic inodes of SquashFS is not stored.
        self.sources.link(build);
        Ok(())
    }

    fn count(&mut self, open: &Open, name: &[u8]) -> Result<()> {
        self.entry_count = self.entry_count.saturating_add(1);
        if self.entry_count >= ENTRIES_MAX {
            let fault = format!("more than {ENTRIES_MAX} entries, the limit of inode numbers");
            return Err(Error::unsupported("merge", fault));
        }
        let counted = self.meter.entry(open.depth, name.len()).and_then(|()| self.meter.hold(name.len()));
        counted.map_err(|error| error.at(self.path(open.name, name)))?;
        if self.entry_count.is_multiple_of(ENTRIES_BETWEEN_LOOKS) {
            self.progress.advance(ENTRIES_BETWEEN_LOOKS, 0, 0);
            if self.progress.cancelled() {
                return Err(Error::cancelled());
            }
        }
        Ok(())
    }

    fn path(&self, dir: usize, name: &[u8]) -> String {
        self.names.path(dir, name)
    }
}
