//! Writes an opened image as a PAX tar archive in tree order; the result is reproducible.
//!
//! Every attribute of a SquashFS inode is preserved, so an image made from the archive equals one
//! made from the tree. Only sockets are lost, for which tar has no type; they are counted. Owners
//! are numbers without names.

mod header;
mod output;
mod placed;

use crate::select::{Pattern, SelectedEntries};
use header::Member;
pub use header::{file_header, padding};
use output::Output;
use packfs_core::{Error, ErrorKind, ImagePath, NodeId, NodeKind, Progress, Result, Stage, Tree, Walk};
use packfs_format::{ExtentFrom, InodeId, Volume};
use packfs_read::{LoadedVolume, Piece, ReadEngine, Wanted};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Shorter files are written with their holes as zeros: a map would take as much space.
const SPARSE_LEN_MIN: u64 = 16 << 10;

/// Shorter archives are not worth a separate composing thread.
const ASIDE_LEN_MIN: u64 = 1 << 20;

/// Contents of the archive.
#[derive(Clone, Debug, Default)]
pub struct TarOptions {
    /// Paths to include, with the directories above them; none means everything.
    pub paths: Vec<Pattern>,
    /// Set to omit the root directory's own entry (`./`).
    pub without_root: bool,
}

/// Result of writing an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TarReport {
    /// Entries written, hard links included.
    pub entries: u64,
    /// Bytes of file contents, holes included.
    pub bytes: u64,
    /// Length of the archive.
    pub archive_len: u64,
    /// Sockets, which a tar archive cannot represent.
    pub sockets: u64,
    /// The first of them.
    pub socket_example: Option<ImagePath>,
}

/// Writes `loaded` (loaded by `engine`) as a tar archive to `out`.
///
/// Errors: `Failed` for a pattern that matches nothing; `Io` if `out` fails; `Corrupt` if contents
/// cannot be read, which leaves an incomplete archive.
pub fn write_tar(
    engine: &Arc<ReadEngine>,
    loaded: &LoadedVolume,
    out: &mut dyn Write,
    options: &TarOptions,
    progress: &dyn Progress,
) -> Result<TarReport> {
    Writing::new(engine, loaded, options, progress)?.in_order(out)
}

/// Writes an archive like [`write_tar`], from the current position of `out`, which is then at the
/// end of the archive. If `out` is a regular file that ends there, all threads write directly to
/// it, and an incomplete archive is removed.
pub fn write_tar_file(
    engine: &Arc<ReadEngine>,
    loaded: &LoadedVolume,
    mut out: &File,
    options: &TarOptions,
    progress: &dyn Progress,
) -> Result<TarReport> {
    let writing = Writing::new(engine, loaded, options, progress)?;
    match placed::room_behind(out) {
        Some(start) if writing.is_for_many_threads() => placed::write(&writing, out, start),
        _ => writing.in_order(&mut out),
    }
}

struct Writing<'a> {
    engine: &'a Arc<ReadEngine>,
    loaded: &'a LoadedVolume,
    progress: &'a dyn Progress,
    chosen: SelectedEntries,
    without_root: bool,
    nodes: Vec<NodeId>,
    wanted: Vec<Wanted>,
    bytes: u64,
}

impl<'a> Writing<'a> {
    fn new(
        engine: &'a Arc<ReadEngine>,
        loaded: &'a LoadedVolume,
        options: &TarOptions,
        progress: &'a dyn Progress,
    ) -> Result<Self> {
        let chosen = SelectedEntries::new(&loaded.tree, &options.paths)?;
        let (nodes, wanted) = contents_in_order(&loaded.tree, &loaded.inodes, &chosen);
        let bytes = wanted.iter().map(|file| file.len).fold(0, u64::saturating_add);
        progress.begin(Stage::Extract, wanted.len() as u64, bytes);
        let without_root = options.without_root;
        Ok(Writing { engine, loaded, progress, chosen, without_root, nodes, wanted, bytes })
    }

    fn is_for_many_threads(&self) -> bool {
        self.engine.jobs() > 1 && self.bytes >= ASIDE_LEN_MIN
    }

    fn archive<'s, 'o>(&'s self, output: Output<'o>) -> Archive<'s, 'o> {
        Archive {
            tree: &self.loaded.tree,
            inodes: &self.loaded.inodes,
            volume: self.engine.volume(),
            walk: self.loaded.tree.walk(),
            chosen: &self.chosen,
            position: 0,
            first_paths: HashMap::new(),
            output,
            current: None,
            complete: 0,
            report: TarReport { bytes: self.bytes, ..TarReport::default() },
            without_root: self.without_root,
        }
    }

    fn name(&self, index: usize, error: Error) -> Error {
        match self.nodes.get(index) {
            Some(&node)
                if matches!(
                    error.kind(),
                    ErrorKind::Corrupt | ErrorKind::Failed | ErrorKind::Unsupported
                ) =>
            {
                error.at(format!("{:?}", self.loaded.tree.path(node)))
            }
            _ => error,
        }
    }

    fn in_order(&self, out: &mut dyn Write) -> Result<TarReport> {
        let compose = |output: Output<'_>| {
            let mut archive = self.archive(output);
            let deliver = &mut |index, piece: Piece<'_>| archive.take(index, piece);
            let delivered = self.engine.in_file_order(&self.wanted, self.progress, deliver);
            // Files are written in order, so the damaged one is the first that is not complete.
            delivered.map_err(|error| self.name(archive.complete, error))?;
            archive.write_headers()?;
            archive.finish()
        };
        let report = if self.is_for_many_threads() {
            output::compose_aside(out, compose)?
        } else {
            compose(Output::new(out))?
        };
        output::flush(out)?;
        Ok(report)
    }
}

/// Each node once, in the order of first names.
fn contents_in_order(
    tree: &Tree,
    inodes: &[InodeId],
    chosen: &SelectedEntries,
) -> (Vec<NodeId>, Vec<Wanted>) {
    let mut seen = vec![false; tree.node_count() as usize];
    let (mut nodes, mut wanted) = (Vec::new(), Vec::new());
    let mut position = 0;
    crate::select::walk(tree, |_, entry| {
        position += 1;
        let NodeKind::File { len, .. } = tree.node(entry.node).kind else { return };
        if len > 0 && chosen.has(position) && !std::mem::replace(&mut seen[entry.node.index()], true) {
            nodes.push(entry.node);
            wanted.push(Wanted { id: inodes[entry.node.index()], len });
        }
    });
    (nodes, wanted)
}

/// All entries are written up to the file whose contents come next.
struct Archive<'a, 'o> {
    tree: &'a Tree,
    inodes: &'a [InodeId],
    volume: &'a dyn Volume,
    walk: Walk<'a>,
    chosen: &'a SelectedEntries,
    position: usize,
    first_paths: HashMap<NodeId, ImagePath>,
    output: Output<'o>,
    current: Option<Current>,
    complete: usize,
    report: TarReport,
    without_root: bool,
}

struct Current {
    index: usize,
    runs: Option<Vec<Range<u64>>>,
    stored_len: u64,
}

impl Archive<'_, '_> {
    fn take(&mut self, index: usize, piece: Piece<'_>) -> Result<()> {
        if self.current.as_ref().is_none_or(|current| current.index != index) {
            self.write_headers()?;
            let Some(current) = &mut self.current else {
                return Err(Error::failed("cannot write the archive: contents without an entry"));
            };
            current.index = index;
        }
        let Some(current) = &mut self.current else { return Ok(()) };
        match piece {
            Piece::Data { bytes, .. } => {
                current.stored_len += bytes.len() as u64;
                self.output.write(bytes)
            }
            Piece::Hole { .. } if current.runs.is_some() => Ok(()),
            Piece::Hole { len, .. } => {
                current.stored_len += len;
                self.output.zeros(len)
            }
            Piece::End => {
                self.complete = index + 1;
                let padding = header::padding(current.stored_len);
                self.output.zeros(padding as u64)
            }
        }
    }

    /// Writes up to the next file with contents, or the end.
    fn write_headers(&mut self) -> Result<()> {
        self.current = None;
        while self.current.is_none() {
            let Some((path, id)) = self.walk.next() else { return Ok(()) };
            let position = self.position;
            self.position += 1;
            if !self.chosen.has(position) || path.is_root() && self.without_root {
                continue;
            }
            if matches!(self.tree.node(id).kind, NodeKind::Socket) {
                self.report.sockets += 1;
                self.report.socket_example.get_or_insert_with(|| path.clone());
                continue;
            }
            let path = path.clone();
            self.write_entry(&path, id)?;
        }
        Ok(())
    }

    fn finish(self) -> Result<TarReport> {
        let mut report = self.report;
        report.archive_len = self.output.finish()?;
        Ok(report)
    }

    /// The entry becomes the current one if contents follow.
    fn write_entry(&mut self, path: &ImagePath, id: NodeId) -> Result<()> {
        let node = self.tree.node(id);
        let (mut data, mut has_contents) = (None, false);
        let member = match (self.first_paths.get(&id), &node.kind) {
            (Some(first), _) => Member::HardLink(first.as_bytes()),
            (_, NodeKind::Directory) => Member::Directory,
            (_, NodeKind::Symlink(target)) => Member::Symlink(target),
            (_, NodeKind::BlockDevice(device)) => Member::BlockDevice(*device),
            (_, NodeKind::CharDevice(device)) => Member::CharDevice(*device),
            (_, NodeKind::Fifo | NodeKind::Socket) => Member::Fifo,
            (_, NodeKind::File { len, .. }) => {
                data = data_runs(self.volume, self.inodes[id.index()], *len)?;
                has_contents = *len > 0;
                data.as_ref().map_or(Member::File { len: *len }, |data| Member::Sparse { len: *len, data })
            }
        };
        self.report.entries += 1;
        let xattrs = self.tree.xattrs(node.xattrs);
        let name = member_name(path, node.is_dir());
        self.output.gather(|out| header::append(out, &name, member, &node.meta, xattrs))?;
        self.current = has_contents.then_some(Current { index: usize::MAX, runs: data, stored_len: 0 });
        if node.links > 1 && !node.is_dir() {
            self.first_paths.entry(id).or_insert_with(|| path.clone());
        }
        Ok(())
    }
}

/// Directories end with a slash, the root is `./`.
fn member_name(path: &ImagePath, is_dir: bool) -> Cow<'_, [u8]> {
    match (is_dir, path.is_root()) {
        (false, _) => path.as_bytes().into(),
        (true, true) => b"./".as_slice().into(),
        (true, false) => [path.as_bytes(), b"/"].concat().into(),
    }
}

/// `None` if the file has no holes, or is too short for a map.
fn data_runs(volume: &dyn Volume, id: InodeId, len: u64) -> Result<Option<Vec<Range<u64>>>> {
    if len < SPARSE_LEN_MIN {
        return Ok(None);
    }
    let mut has_holes = false;
    let mut runs: Vec<Range<u64>> = Vec::new();
    volume.extents(id, 0..len, &mut |extent| {
        let end = extent.offset.saturating_add(extent.len);
        match (extent.from, runs.last_mut()) {
            (ExtentFrom::Hole, _) => has_holes = true,
            (_, Some(last)) if last.end == extent.offset => last.end = end,
            _ => runs.push(extent.offset..end),
        }
        ControlFlow::Continue(())
    })?;
    Ok(has_holes.then_some(runs))
}
