//! Entries added to a source of any type, in the syntax of manifests.

use super::contents::ManifestContents;
use super::entry::{self, Defaults, Entry, MetaKeys};
use super::fault::Fault;
use super::{EntryNode, check_first_line, entry_node, looks_like_manifest, read_lines, tables};
use crate::selection::Selection;
use packfs_core::{
    ContentId, ContentReader, Contents, Error, ImagePath, Meta, NodeKind, Result, ResultExt, Timestamp,
    TreeBuilder, Xattrs, escaped,
};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Longest entry in messages, in bytes.
const SHOWN_LEN: usize = 80;

/// Entries added to those of a source, or replacing them: device nodes without being root, links,
/// files of this machine.
///
/// Their paths are those in the image, and are neither filtered nor moved. Permissions, owner, time
/// and attributes given in an entry are final; the shape decides on others as for an entry of root
/// in the source. The default time is the latest that the shape allows, else 1970. A directory
/// replacing a directory changes only the given values, and so does `modify`, which requires an
/// existing entry; any other entry replaces an existing one. The later of two entries with the same
/// path wins.
#[derive(Clone, Default)]
pub struct Additions {
    lists: Vec<Arc<List>>,
    /// Paths that another part of the tree has.
    elsewhere: Option<Selection>,
}

struct List {
    rows: Vec<Row>,
    contents: ManifestContents,
    /// Entries that were added one by one, and what they said of later ones.
    typed: (u64, Defaults),
}

struct Row {
    /// The origin, for messages.
    place: String,
    path: ImagePath,
    made: EntryNode,
    given: MetaKeys,
    mode_default: u16,
    xattrs: Xattrs,
}

pub(crate) struct Shaping<'a> {
    pub(crate) mtime_max: Option<Timestamp>,
    /// The flags are true for a directory and for a symbolic link.
    pub(crate) meta: &'a dyn Fn(Meta, bool, bool) -> Meta,
}

impl fmt::Debug for Additions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count: usize = self.lists.iter().map(|list| list.rows.len()).sum();
        write!(f, "{count} entries")
    }
}

impl Additions {
    /// Returns true if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.lists.iter().all(|list| list.rows.is_empty())
    }

    /// Adds entries, one a line. Their file paths are relative to the working directory; messages
    /// name them by `called` and their number, from 1 on, over all calls.
    ///
    /// Errors: `Usage`, naming the entry, for an invalid one; `Io` and `Failed` for a file that
    /// cannot be read.
    pub fn add<T: AsRef<[u8]>>(&mut self, entries: &[T], called: &str) -> Result<()> {
        let mut list = match self.lists.pop_if(|last| last.typed.0 > 0).map(Arc::try_unwrap) {
            Some(Ok(list)) => list,
            Some(Err(shared)) => {
                self.lists.push(shared);
                List::below(Path::new(""))?
            }
            None => List::below(Path::new(""))?,
        };
        for text in entries {
            let text = text.as_ref();
            let shown = escaped(&text[..text.len().min(SHOWN_LEN)]).to_string();
            let more = if text.len() > SHOWN_LEN { "..." } else { "" };
            let (number, defaults) = &mut list.typed;
            *number += 1;
            let place = format!("{called} {number} \"{shown}{more}\"");
            for entry in entries_of(text, defaults).map_err(|fault| fault.usage_at(&place))? {
                list.push(entry, place.clone())?;
            }
        }
        self.lists.push(Arc::new(list));
        Ok(())
    }

    /// Adds the entries of a file, one a line; the first line of a manifest is optional. File paths
    /// are relative to the file's directory, or for a pipe to the working directory.
    ///
    /// Errors: `Corrupt`, naming the line, for an invalid entry, and for a duplicate path;
    /// `Unsupported` for a later version; `Io` and `Failed` for a file that cannot be read.
    pub fn add_file(&mut self, path: &Path) -> Result<()> {
        let file = File::open(path).or_io(|| format!("cannot open {path:?}"))?;
        let name = escaped(path.as_os_str().as_bytes()).to_string();
        // A pipe has no directory.
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let folder = path.parent().filter(|_| is_file).unwrap_or(Path::new(""));
        self.read(&mut BufReader::new(file), &name, folder)
    }

    /// Adds the entries of a text like [`Additions::add_file`]. `name` is its name in messages;
    /// file paths are relative to the working directory.
    ///
    /// Errors: as [`Additions::add_file`].
    pub fn add_text(&mut self, text: &mut dyn BufRead, name: &str) -> Result<()> {
        self.read(text, name, Path::new(""))
    }

    fn read(&mut self, text: &mut dyn BufRead, name: &str, folder: &Path) -> Result<()> {
        let mut list = List::below(folder)?;
        let mut defaults = Defaults::default();
        let mut lines: HashMap<ImagePath, u64> = HashMap::new();
        read_lines(text, name, |line, number| {
            let place = format!("{name}:{number}");
            if number == 1 && looks_like_manifest(line) {
                return check_first_line(line, place);
            }
            for entry in entries_of(line, &mut defaults).map_err(|fault| fault.at(&place))? {
                if let Some(before) = lines.insert(entry.path.clone(), number) {
                    let fault =
                        format!("path {:?}: already on line {before}, and once is allowed", entry.path);
                    return Err(Error::corrupt("manifest", fault).at(place));
                }
                list.push(entry, place.clone())?;
            }
            Ok(())
        })?;
        self.push(list);
        Ok(())
    }

    /// Returns the same for a part of a tree, where others have the paths that are `elsewhere`. Of
    /// those, only changes of directories apply, because parts share directories.
    #[must_use]
    pub fn of_part(&self, elsewhere: Selection) -> Additions {
        Additions { elsewhere: Some(elsewhere), ..self.clone() }
    }

    /// Returns true for an entry that another part of the tree gets.
    fn is_elsewhere(&self, row: &Row, builder: &TreeBuilder) -> bool {
        let is_dir = |id| *builder.kind(id) == NodeKind::Directory;
        let changes_dir = match &row.made {
            EntryNode::Modified | EntryNode::Node(NodeKind::Directory) => {
                builder.find(&row.path).is_some_and(is_dir)
            }
            _ => false,
        };
        !changes_dir && self.elsewhere.as_ref().is_some_and(|elsewhere| elsewhere.excludes(&row.path))
    }

    /// Appends other entries.
    pub fn append(&mut self, later: Additions) {
        self.lists.extend(later.lists);
    }

    fn push(&mut self, list: List) {
        if !list.rows.is_empty() {
            self.lists.push(Arc::new(list));
        }
    }

    /// Contents get ids from `first_id` on, in the order of the lists.
    ///
    /// Errors: `Failed`, naming the entry, for one whose place in the tree does not exist, and for
    /// a dangling hard link.
    pub(crate) fn lay_over(
        &self,
        builder: &mut TreeBuilder,
        shaping: &Shaping<'_>,
        first_id: u64,
    ) -> Result<()> {
        // A hard link of the source refers to an entry of the source.
        builder.resolve_links()?;
        let mut next_id = first_id;
        for list in &self.lists {
            for row in &list.rows {
                if !self.is_elsewhere(row, builder) {
                    row.lay_over(builder, shaping, next_id).map_err(|error| error.at(&row.place))?;
                }
            }
            let ids = next_id.checked_add(list.contents.count());
            next_id =
                ids.ok_or_else(|| Error::failed("cannot add files: the source uses all content numbers"))?;
        }
        let links = self.lists.iter().flat_map(|list| &list.rows).filter_map(|row| match &row.made {
            EntryNode::Link(target) => Some((row, target)),
            EntryNode::Node(_) | EntryNode::Modified => None,
        });
        let links: Vec<_> = links.filter(|(row, _)| !self.is_elsewhere(row, builder)).collect();
        let paths: HashSet<&ImagePath> = links.iter().map(|(row, _)| &row.path).collect();
        for (row, target) in links {
            row.link(builder, shaping, target, paths.contains(target))
                .map_err(|error| error.at(&row.place))?;
        }
        builder.resolve_links()
    }

    pub(crate) fn with(&self, source: Arc<dyn Contents>, first_id: u64) -> Arc<dyn Contents> {
        Arc::new(Overlaid { source, first_id, lists: self.lists.clone() })
    }
}

/// One entry, none, or all of a row of a device table.
fn entries_of(line: &[u8], defaults: &mut Defaults) -> Result<Vec<Entry>, Fault> {
    let Some(rows) = tables::entries(line)? else {
        return Ok(entry::parse(line, defaults)?.into_iter().collect());
    };
    rows.iter().filter_map(|row| entry::parse(row, defaults).transpose()).collect()
}

impl List {
    fn below(folder: &Path) -> Result<Self> {
        let contents = ManifestContents::below(folder)?;
        Ok(List { rows: Vec::new(), contents, typed: Default::default() })
    }

    fn push(&mut self, entry: Entry, place: String) -> Result<()> {
        let Entry { path, what, given, mode_default, xattrs } = entry;
        let made = entry_node(what, &mut self.contents).map_err(|error| error.at(&place))?;
        self.rows.push(Row { place, path, made, given, mode_default, xattrs });
        Ok(())
    }
}

impl Row {
    fn lay_over(&self, builder: &mut TreeBuilder, shaping: &Shaping<'_>, first_id: u64) -> Result<()> {
        let kind = match &self.made {
            EntryNode::Link(_) => return Ok(()),
            EntryNode::Modified => return self.modify(builder, shaping),
            EntryNode::Node(kind) => kind,
        };
        let kind = match kind {
            NodeKind::File { len, content } => {
                NodeKind::File { len: *len, content: ContentId(first_id.wrapping_add(content.0)) }
            }
            kind => kind.clone(),
        };
        self.add_parents(builder, shaping)?;
        let is_dir = matches!(kind, NodeKind::Directory);
        let is_symlink = matches!(kind, NodeKind::Symlink(_));
        let old = builder.find(&self.path).filter(|old| *builder.kind(*old) == NodeKind::Directory);
        let (rest, mut xattrs) = match old {
            Some(old) if is_dir => builder.description(old),
            _ => (unsaid(shaping, self.mode_default, is_dir, is_symlink), Xattrs::new()),
        };
        xattrs.extend(self.xattrs.clone());
        let added = builder.add(&self.path, kind, self.meta(rest, shaping), xattrs);
        match added {
            Err(error) if old.is_some() => Err(advised(error)),
            added => added.map(|_| ()),
        }
    }

    fn modify(&self, builder: &mut TreeBuilder, shaping: &Shaping<'_>) -> Result<()> {
        let found = builder.find(&self.path).ok_or_else(|| nothing_at("path", &self.path))?;
        let (rest, mut xattrs) = builder.description(found);
        xattrs.extend(self.xattrs.clone());
        builder.describe(found, self.meta(rest, shaping), xattrs);
        Ok(())
    }

    fn meta(&self, rest: Meta, shaping: &Shaping<'_>) -> Meta {
        let meta = self.given.over(rest);
        Meta { mtime: shaping.mtime_max.map_or(meta.mtime, |max| meta.mtime.min(max)), ..meta }
    }

    fn add_parents(&self, builder: &mut TreeBuilder, shaping: &Shaping<'_>) -> Result<()> {
        let mut parent = ImagePath::root();
        let depth = self.path.names().count();
        for name in self.path.names().take(depth.saturating_sub(1)) {
            parent.push(name);
            match builder.find(&parent).map(|id| builder.kind(id)) {
                None => {
                    let meta = unsaid(shaping, 0o755, true, false);
                    builder.add(&parent, NodeKind::Directory, meta, Xattrs::new())?;
                }
                Some(NodeKind::Symlink(target)) => {
                    let (path, target) = (&self.path, escaped(target));
                    let fault = format!("{path:?} lies below {parent:?}, a symbolic link to \"{target}\"");
                    return Err(Error::failed(fault).hint("name the path that the symbolic link leads to"));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn link(
        &self,
        builder: &mut TreeBuilder,
        shaping: &Shaping<'_>,
        target: &ImagePath,
        is_added: bool,
    ) -> Result<()> {
        match builder.find(target).map(|id| builder.kind(id)) {
            Some(NodeKind::Directory) => {
                let fault = format!("target {target:?}: a directory, which cannot have hard links");
                return Err(
                    Error::failed(fault).hint("a symbolic link can lead to it: l PATH 0777 0 0 TARGET")
                );
            }
            None if !is_added => return Err(nothing_at("target", target)),
            _ => {}
        }
        self.add_parents(builder, shaping)?;
        let is_full = builder.find(&self.path).is_some_and(|old| *builder.kind(old) == NodeKind::Directory);
        let linked = builder.link(&self.path, target.clone());
        if is_full { linked.map_err(advised) } else { linked }
    }
}

fn nothing_at(what: &str, path: &ImagePath) -> Error {
    Error::failed(format!("{what} {path:?}: the image has no such path"))
        .hint("paths of the image begin at its root")
}

fn advised(error: Error) -> Error {
    error.hint("leave out what lies in it, as in --exclude 'PATH/**'")
}

fn unsaid(shaping: &Shaping<'_>, mode: u16, is_dir: bool, is_symlink: bool) -> Meta {
    let mtime = shaping.mtime_max.unwrap_or(Timestamp::from_seconds(0));
    (shaping.meta)(Meta { mode, mtime, ..Meta::default() }, is_dir, is_symlink)
}

struct Overlaid {
    source: Arc<dyn Contents>,
    first_id: u64,
    lists: Vec<Arc<List>>,
}

impl Contents for Overlaid {
    fn open(&self, id: ContentId) -> Result<Box<dyn ContentReader + '_>> {
        let Some(mut id_here) = id.0.checked_sub(self.first_id) else { return self.source.open(id) };
        for list in &self.lists {
            match id_here.checked_sub(list.contents.count()) {
                Some(behind) => id_here = behind,
                None => return list.contents.open(ContentId(id_here)),
            }
        }
        Err(Error::failed(format!("no file with id {}", id.0)))
    }

    fn names_files(&self) -> bool {
        self.source.names_files()
    }

    fn place(&self, id: ContentId) -> Option<Box<[u64]>> {
        if id.0 < self.first_id { self.source.place(id) } else { None }
    }

    fn check_unchanged(&self) -> Result<()> {
        self.source.check_unchanged()
    }
}
