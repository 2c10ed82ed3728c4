//! Actions of mksquashfs: changes of the files that an expression selects.

use super::expressions::{self, Expression, Figure, Names, Permissions, Typed};
use super::globs::{matches_all, regex};
use super::parse::Given;
use super::squash::xattr;
use super::trees;
use super::users::Ids;
use packfs::source::{Loaded, ModeChange};
use packfs::{Error, ImagePath, Meta, Name, NodeId, NodeKind, Result, ResultExt, Tree, Xattrs};
use regex::bytes::Regex;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Options that give an action, and those that name a file of actions.
const OPTIONS: [&str; 4] = ["-action", "-log-action", "-true-action", "-false-action"];
const FILES: [&str; 4] = ["-action-file", "-log-action-file", "-true-action-file", "-false-action-file"];

/// Actions that place data, which packfs does by itself.
const PLACEMENT: [&str; 10] = [
    "fragment",
    "fragments",
    "no-fragments",
    "always-use-fragments",
    "dont-always-use-fragments",
    "tailend",
    "no-tailend",
    "compressed",
    "uncompressed",
    "align",
];

/// Most links on the way to a file.
const LINKS_MAX: u32 = 64;

/// Cause of an empty directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Empty {
    All,
    Source,
    Excluded,
}

#[derive(Debug)]
enum What {
    Nothing,
    Exclude,
    Prune,
    Empty(Empty),
    Owner(Option<u32>, Option<u32>),
    Mode(ModeChange),
    WithoutXattrs(Regex),
    OnlyXattrs(Regex),
    AddXattr(Vec<u8>, Vec<u8>),
}

/// All actions of a command line.
#[derive(Debug, Default)]
pub struct Actions(Vec<(What, Expression)>);

/// Attributes that actions add, by path.
pub type Added = HashMap<ImagePath, Vec<(Vec<u8>, Vec<u8>)>>;

impl Actions {
    /// Reads the options.
    ///
    /// Errors: `Usage`, `Io`.
    pub fn of(given: &Given, users: &Ids, groups: &Ids) -> Result<Self> {
        let (names, mut actions) = (Names { users, groups }, Vec::new());
        let mut add = |text: &str| -> Result<()> {
            let typed = expressions::parse(text, &names)?;
            actions.push((what(&typed, &names)?, typed.expression));
            Ok(())
        };
        for (option, value) in &given.options {
            if OPTIONS.contains(option) {
                add(&value.to_string_lossy())?;
            } else if FILES.contains(option) {
                let text =
                    std::fs::read_to_string(value).or_io(|| format!("cannot open action file {value:?}"))?;
                let joined = text.replace("\\\n", "");
                let lines =
                    joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
                lines.into_iter().try_for_each(&mut add)?;
            }
        }
        Ok(Actions(actions))
    }

    /// Applies them.
    ///
    /// Errors: those of building a tree.
    pub fn apply(&self, loaded: Loaded, sources: &[PathBuf]) -> Result<(Loaded, Added)> {
        let mut added = Added::new();
        if self.0.is_empty() {
            return Ok((loaded, added));
        }
        let mut state = State::new(&loaded.tree, sources);
        self.exclude(&mut state);
        self.change(&mut state);
        self.prune(&mut state);
        self.empty(&mut state);
        self.filter(&mut state, &mut added);
        let State { items, places, metas, xattrs, .. } = state;
        let loaded = trees::edited(loaded, true, |path, _, edit| {
            let Some(item) = places.get(path).and_then(|at| items.get(*at)) else { return Ok(true) };
            edit.meta = metas[item.node.index()];
            if let Some(xattrs) = xattrs.get(&item.node) {
                edit.xattrs.clone_from(xattrs);
            }
            Ok(item.is_there)
        })?;
        Ok((loaded, added))
    }

    fn exclude(&self, state: &mut State<'_>) {
        for at in 1..state.items.len() {
            let is_out = |state: &State<'_>| {
                self.0.iter().any(|(what, test)| matches!(what, What::Exclude) && state.holds(test, at))
            };
            if state.items[at].is_there && is_out(state) {
                state.remove(at);
            }
        }
    }

    fn change(&self, state: &mut State<'_>) {
        // The root comes last.
        for at in (1..state.items.len()).chain([0]).filter(|at| state.items[*at].is_there).collect::<Vec<_>>()
        {
            for (what, test) in &self.0 {
                let node = state.items[at].node;
                let kind = &state.tree.node(node).kind;
                let (is_dir, is_symlink) =
                    (*kind == NodeKind::Directory, matches!(kind, NodeKind::Symlink(_)));
                match what {
                    What::Owner(uid, gid) if state.holds(test, at) => {
                        let owner = &mut state.metas[node.index()].owner;
                        (owner.uid, owner.gid) = (uid.unwrap_or(owner.uid), gid.unwrap_or(owner.gid));
                    }
                    What::Mode(change) if !is_symlink && state.holds(test, at) => {
                        let meta = &mut state.metas[node.index()];
                        meta.mode = change.apply(meta.mode, is_dir);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Removes symbolic links first, so that those whose targets go are still there.
    fn prune(&self, state: &mut State<'_>) {
        for links in [true, false] {
            for at in (1..state.items.len()).rev() {
                let is_link = matches!(state.tree.node(state.items[at].node).kind, NodeKind::Symlink(_));
                let is_out = |state: &State<'_>| {
                    self.0.iter().any(|(what, test)| matches!(what, What::Prune) && state.holds(test, at))
                };
                if is_link == links && state.items[at].is_there && is_out(state) {
                    state.remove(at);
                }
            }
        }
    }

    fn empty(&self, state: &mut State<'_>) {
        for at in (1..state.items.len()).rev() {
            let item = &state.items[at];
            let is_dir = state.tree.node(item.node).is_dir();
            if !is_dir || !item.is_there || item.entries > 0 {
                continue;
            }
            let lost = item.lost || state.had_entries(at);
            let is_out = self.0.iter().any(|(what, test)| match what {
                What::Empty(cause) => {
                    let is_meant = match cause {
                        Empty::All => true,
                        Empty::Source => !lost,
                        Empty::Excluded => lost,
                    };
                    is_meant && state.holds(test, at)
                }
                _ => false,
            });
            if is_out {
                state.remove(at);
            }
        }
    }

    fn filter(&self, state: &mut State<'_>, added: &mut Added) {
        for at in 0..state.items.len() {
            let node = state.items[at].node;
            let kind = &state.tree.node(node).kind;
            if !state.items[at].is_there || matches!(kind, NodeKind::Symlink(_)) {
                continue;
            }
            let takes_user = matches!(kind, NodeKind::Directory | NodeKind::File { .. });
            for (what, test) in &self.0 {
                if !matches!(what, What::WithoutXattrs(_) | What::OnlyXattrs(_) | What::AddXattr(..))
                    || !state.holds(test, at)
                {
                    continue;
                }
                let tree = state.tree;
                let own = || tree.xattrs(tree.node(node).xattrs).clone();
                match what {
                    What::WithoutXattrs(regex) => {
                        state.xattrs.entry(node).or_insert_with(own).retain(|name, _| !regex.is_match(name));
                    }
                    What::OnlyXattrs(regex) => {
                        state.xattrs.entry(node).or_insert_with(own).retain(|name, _| regex.is_match(name));
                    }
                    What::AddXattr(name, value) if takes_user || !name.starts_with(b"user.") => {
                        let list = added.entry(state.items[at].path.clone()).or_default();
                        list.push((name.clone(), value.clone()));
                    }
                    _ => {}
                }
            }
        }
    }
}

fn what(typed: &Typed, names: &Names<'_>) -> Result<What> {
    let words: Vec<&str> = typed.arguments.iter().map(String::as_str).collect();
    Ok(match (typed.name.as_str(), &words[..]) {
        ("exclude", []) => What::Exclude,
        ("prune", []) => What::Prune,
        ("empty", [] | ["all"]) => What::Empty(Empty::All),
        ("empty", ["source"]) => What::Empty(Empty::Source),
        ("empty", ["excluded"]) => What::Empty(Empty::Excluded),
        ("uid", [uid]) => What::Owner(Some(names.users.id(uid)?), None),
        ("gid", [gid]) => What::Owner(None, Some(names.groups.id(gid)?)),
        ("guid", [uid, gid]) => What::Owner(Some(names.users.id(uid)?), Some(names.groups.id(gid)?)),
        ("mode" | "chmod", [_, ..]) => What::Mode(words.join(",").parse()?),
        ("xattrs-exclude", [text]) => What::WithoutXattrs(regex(text.as_bytes())?),
        ("xattrs-include", [text]) => What::OnlyXattrs(regex(text.as_bytes())?),
        ("xattrs-add", [text]) => {
            let (name, value) = xattr(text.as_bytes())?;
            What::AddXattr(name, value)
        }
        ("noop", []) => What::Nothing,
        (name, _) if PLACEMENT.contains(&name) => What::Nothing,
        ("move" | "dereference", _) => {
            return Err(Error::usage(format!("action \"{}\" is not supported", typed.name))
                .hint("packfs pack --add places files, and -e leaves them out"));
        }
        (name, _) => {
            return Err(Error::usage(format!("no action \"{name}\" with {} arguments", words.len())));
        }
    })
}

/// A name of the tree.
struct Item {
    path: ImagePath,
    node: NodeId,
    is_there: bool,
    /// Number of names below a directory, not further down.
    entries: u64,
    /// Set if names below were removed.
    lost: bool,
}

/// A tree as actions change it.
struct State<'a> {
    tree: &'a Tree,
    /// The directory that was loaded.
    host: Option<&'a Path>,
    /// All names, parents first.
    items: Vec<Item>,
    places: HashMap<ImagePath, usize>,
    metas: Vec<Meta>,
    xattrs: HashMap<NodeId, Xattrs>,
}

impl<'a> State<'a> {
    fn new(tree: &'a Tree, sources: &'a [PathBuf]) -> Self {
        let host =
            if let [only] = sources { Some(only.as_path()).filter(|path| path.is_dir()) } else { None };
        let (mut items, mut places) = (Vec::new(), HashMap::new());
        let mut walk = tree.walk();
        while let Some((path, node)) = walk.next() {
            places.insert(path.clone(), items.len());
            let entries = tree.entries(node).len() as u64;
            items.push(Item { path: path.clone(), node, is_there: true, entries, lost: false });
        }
        let mut metas = vec![Meta::default(); tree.nodes().map(|(id, _)| id.index() + 1).max().unwrap_or(0)];
        for (id, node) in tree.nodes() {
            metas[id.index()] = node.meta;
        }
        State { tree, host, items, places, metas, xattrs: HashMap::new() }
    }

    /// Removes a name and everything below it.
    fn remove(&mut self, at: usize) {
        let path = self.items[at].path.clone();
        let below = self.items[at..].iter_mut().take_while(|item| item.path.starts_with(&path));
        below.for_each(|item| item.is_there = false);
        let mut parent = path;
        parent.pop();
        if let Some(&above) = self.places.get(&parent) {
            self.items[above].entries = self.items[above].entries.saturating_sub(1);
            self.items[above].lost = true;
        }
    }

    fn host_path(&self, at: usize) -> Option<PathBuf> {
        Some(self.host?.join(OsStr::from_bytes(self.items[at].path.as_bytes())))
    }

    /// True for a directory that has files on this machine.
    fn had_entries(&self, at: usize) -> bool {
        let read = self.host_path(at).and_then(|path| std::fs::read_dir(path).ok());
        read.is_some_and(|mut entries| entries.next().is_some())
    }

    fn holds(&self, test: &Expression, at: usize) -> bool {
        let item = &self.items[at];
        let kind = &self.tree.node(item.node).kind;
        match test {
            Expression::And(left, right) => self.holds(left, at) && self.holds(right, at),
            Expression::Or(left, right) => self.holds(left, at) || self.holds(right, at),
            Expression::Not(inner) => !self.holds(inner, at),
            Expression::True => true,
            Expression::False => false,
            Expression::Name(glob) => {
                let name = item.path.names().last().map_or(&b""[..], Name::as_bytes);
                matches_all(glob.as_bytes(), name)
            }
            Expression::Path(glob) => components(glob).count() == depth(item) && starts(glob, item),
            Expression::PathStart(glob) => starts(glob, item),
            Expression::Number(figure, range) => {
                self.figure(*figure, at).is_some_and(|number| range.has(number))
            }
            Expression::Type(file_type) => kind.file_type() == *file_type,
            Expression::Permissions(wanted) => {
                let mode = self.metas[item.node.index()].mode;
                match *wanted {
                    Permissions::Exactly(bits) => mode == bits,
                    Permissions::All(bits) => mode & bits == bits,
                    Permissions::Any(bits) => bits == 0 || mode & bits != 0,
                }
            }
            Expression::Exists => !matches!(kind, NodeKind::Symlink(_)) || self.target(at).is_some(),
            Expression::Absolute => matches!(kind, NodeKind::Symlink(target) if target.starts_with(b"/")),
            Expression::AtTarget(inner) => self.target(at).is_some_and(|at| self.holds(inner, at)),
            Expression::AtPath(path, inner) => self.at_path(path, at).is_some_and(|at| self.holds(inner, at)),
        }
    }

    fn figure(&self, figure: Figure, at: usize) -> Option<u64> {
        let item = &self.items[at];
        let node = self.tree.node(item.node);
        let host = || self.host_path(at).and_then(|path| path.symlink_metadata().ok());
        let size = || match &node.kind {
            NodeKind::File { len, .. } => *len,
            NodeKind::Symlink(target) => target.len() as u64,
            NodeKind::Directory => host().map_or(0, |found| found.size()),
            _ => 0,
        };
        let blocks = || host().map_or_else(|| size().div_ceil(512), |found| found.blocks());
        let is_file = matches!(node.kind, NodeKind::File { .. });
        let owner = self.metas[item.node.index()].owner;
        match figure {
            Figure::FileSize | Figure::FileBlocks | Figure::TailSize if !is_file => None,
            Figure::DirSize | Figure::DirBlocks | Figure::Entries if !node.is_dir() => None,
            Figure::FileSize | Figure::DirSize | Figure::Size => Some(size()),
            // Of the usual block; other lengths of blocks are rare with this test.
            Figure::TailSize => Some(size() % (128 << 10)),
            Figure::FileBlocks | Figure::DirBlocks | Figure::Blocks => Some(blocks()),
            Figure::Inode => Some(host().map_or(item.node.index() as u64 + 1, |found| found.ino())),
            Figure::Links => Some(host().map_or(u64::from(node.links), |found| found.nlink())),
            Figure::Uid => Some(owner.uid.into()),
            Figure::Gid => Some(owner.gid.into()),
            Figure::Depth => Some(depth(item) as u64),
            Figure::Entries => Some(item.entries),
        }
    }

    /// Returns the file that a symbolic link leads to within the image.
    fn target(&self, at: usize) -> Option<usize> {
        let NodeKind::Symlink(target) = &self.tree.node(self.items[at].node).kind else { return None };
        let mut from = self.items[at].path.clone();
        from.pop();
        self.follow(&from, target, &mut 0)
    }

    fn at_path(&self, path: &str, at: usize) -> Option<usize> {
        let mut from = self.items[at].path.clone();
        if let Some(rest) = path.strip_prefix('/') {
            return self.follow(&ImagePath::root(), rest.trim_start_matches('/').as_bytes(), &mut 0);
        }
        if path == ".." || path.starts_with("../") {
            from.pop();
            return self.follow(&from, path[2..].trim_start_matches('/').as_bytes(), &mut 0);
        }
        let is_dir = self.tree.node(self.items[at].node).is_dir();
        if is_dir { self.follow(&from, path.as_bytes(), &mut 0) } else { None }
    }

    fn follow(&self, from: &ImagePath, path: &[u8], links: &mut u32) -> Option<usize> {
        *links += 1;
        if path.starts_with(b"/") || *links > LINKS_MAX {
            return None;
        }
        let mut at = from.clone();
        for part in path.split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".") {
            if part == b".." {
                if at.is_root() {
                    return None;
                }
                at.pop();
                continue;
            }
            let above = at.clone();
            at.push(Name::new(part).ok()?);
            let found = *self.places.get(&at).filter(|found| self.items[**found].is_there)?;
            if let NodeKind::Symlink(target) = &self.tree.node(self.items[found].node).kind {
                at = self.items[self.follow(&above, target, links)?].path.clone();
            }
        }
        self.places.get(&at).copied().filter(|found| self.items[*found].is_there)
    }
}

fn components(glob: &str) -> impl Iterator<Item = &str> {
    glob.split('/').filter(|part| !part.is_empty())
}

fn depth(item: &Item) -> usize {
    item.path.names().count()
}

/// True if the parts of a glob match the first names of a path.
fn starts(glob: &str, item: &Item) -> bool {
    let mut names = item.path.names();
    components(glob)
        .all(|part| names.next().is_some_and(|name| matches_all(part.as_bytes(), name.as_bytes())))
}
