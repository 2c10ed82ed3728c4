//! Converts entries of every source to nodes of a tree.

use crate::followed::{Step, followed};
use crate::manifest::Shaping;
use crate::rules::{Rules, Verdict, XattrRules};
use crate::shape::{Shape, mapped};
use crate::{Loaded, Notes, Whiteouts, file_contexts, whiteouts};
use packfs_core::{
    BuildId, Contents, Error, ImagePath, Implied, Limits, Meta, Meter, NodeId, NodeKind, Owner, Result,
    Timestamp, Tree, TreeBuilder, Xattrs, overlay,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Metadata of symbolic links that stand for hard links to files of lower layers. No source has
/// such permissions.
pub(crate) const LINK_BELOW: Meta = Meta {
    mode: u16::MAX,
    owner: Owner { uid: 0, gid: 0 },
    mtime: Timestamp { seconds: i64::MIN, nanos: 0 },
};

/// Takes the entries of a source by their paths, and builds the shaped tree.
pub struct Shaper<'a> {
    shape: &'a Shape,
    rules: Rules,
    xattr_rules: XattrRules,
    builder: TreeBuilder,
    pending: HashMap<ImagePath, (Meta, Xattrs)>,
    left_out: HashMap<ImagePath, LeftOut>,
    stripped: StrippedRoot,
    notes: Notes,
    next_content: u64,
    /// Limits of the source, including excluded entries; `None` means no limits.
    meter: Option<Meter>,
}

/// A single directory gives the root its metadata; several give none, because the order of entries
/// must not matter.
#[derive(Default)]
struct StrippedRoot {
    only: Option<ImagePath>,
    are_several: bool,
    described: HashMap<ImagePath, (Meta, Xattrs)>,
}

impl StrippedRoot {
    /// `path` is an entry in such a directory, `depth` names deep, or the directory itself.
    fn note(&mut self, path: &ImagePath, depth: usize) {
        if self.are_several || self.only.as_ref().is_some_and(|only| path.starts_with(only)) {
            return;
        }
        if self.only.is_some() {
            self.are_several = true;
            self.described.clear();
            return;
        }
        let mut root = ImagePath::root();
        path.names().take(depth).for_each(|name| root.push(name));
        self.only = Some(root);
    }

    fn describe(&mut self, path: &ImagePath, meta: Meta, xattrs: Xattrs) {
        if !self.are_several {
            self.described.insert(path.clone(), (meta, xattrs));
        }
    }

    fn description(mut self) -> Option<(Meta, Xattrs)> {
        self.described.remove(&self.only.filter(|_| !self.are_several)?)
    }
}

enum LeftOut {
    Node(NodeKind, Meta, Xattrs),
    /// Represented by a hard link that was kept.
    Kept(ImagePath),
}

impl<'a> Shaper<'a> {
    /// Starts an empty tree.
    ///
    /// Errors: `Usage` for an invalid glob.
    pub fn new(shape: &'a Shape) -> Result<Self> {
        Ok(Shaper {
            shape,
            rules: Rules::new(&shape.exclude, &shape.include)?,
            xattr_rules: XattrRules::new(&shape.xattr_exclude, &shape.xattr_include)?,
            builder: TreeBuilder::new(shaped_meta(shape, shape.implied.meta(shape.mtime_max), true, false)),
            pending: HashMap::new(),
            left_out: HashMap::new(),
            stripped: StrippedRoot::default(),
            notes: Notes::default(),
            next_content: 0,
            meter: None,
        })
    }

    /// Starts a tree with limits; `subject` names the source in messages, such as `tar archive`.
    ///
    /// Errors: as [`Shaper::new`].
    pub fn within(shape: &'a Shape, limits: Limits, subject: impl Into<String>) -> Result<Self> {
        Ok(Shaper { meter: Some(Meter::new(limits, subject)), ..Shaper::new(shape)? })
    }

    fn count_implied(&mut self, path: &ImagePath, nodes_before: u64) -> Result<()> {
        let implied = (self.builder.node_count() - nodes_before).saturating_sub(1);
        match &mut self.meter {
            Some(meter) => meter.implied(implied).map_err(|error| error.at(format!("{path:?}"))),
            None => Ok(()),
        }
    }

    fn count(&mut self, path: &ImagePath, kind: Option<&NodeKind>, xattrs: &Xattrs) -> Result<()> {
        let Some(meter) = &mut self.meter else { return Ok(()) };
        let name_len = path.file_name().map_or(0, |name| name.as_bytes().len());
        meter.entry((path.names().count() as u64).saturating_sub(1), name_len)?;
        // A source is read entry by entry, each with its whole path.
        meter.hold(path.as_bytes().len())?;
        meter.xattrs(xattrs)?;
        match kind {
            Some(NodeKind::File { len, .. }) => meter.file(*len),
            Some(NodeKind::Symlink(target)) => meter.target(target.len()),
            _ => Ok(()),
        }
    }

    fn judge(&self, path: &ImagePath, is_dir: bool) -> Verdict {
        match &self.shape.select {
            Some(select) if select.excludes(path) => Verdict::LeaveOut,
            _ => self.rules.judge(path, is_dir),
        }
    }

    /// Returns true if a directory and everything below it is excluded, so that a source can skip
    /// it.
    pub fn leaves_out_dir(&self, path: &ImagePath) -> bool {
        self.judge(path, true) == Verdict::LeaveOut
    }

    /// Returns true if a file without other names is excluded, so that a source can skip it.
    pub fn leaves_out_file(&self, path: &ImagePath) -> bool {
        self.judge(path, false) != Verdict::Keep || self.place(path).is_none()
    }

    pub(crate) fn unused_globs(&self) -> Vec<String> {
        self.rules.unused()
    }

    /// Returns the findings so far, to extend them.
    pub fn notes(&mut self) -> &mut Notes {
        &mut self.notes
    }

    /// Adds or replaces an entry.
    ///
    /// Errors: as [`TreeBuilder::add`]; `Limit`.
    pub fn add(&mut self, path: &ImagePath, kind: NodeKind, meta: Meta, xattrs: Xattrs) -> Result<()> {
        self.count(path, Some(&kind), &xattrs).map_err(|error| error.at(format!("{path:?}")))?;
        let is_dir = matches!(kind, NodeKind::Directory);
        let is_symlink = matches!(kind, NodeKind::Symlink(_));
        if let NodeKind::File { content, .. } = kind {
            self.next_content = self.next_content.max(content.0.saturating_add(1));
        }
        let verdict = self.judge(path, is_dir);
        let meta = shaped_meta(self.shape, meta, is_dir, is_symlink);
        let xattrs: Xattrs = xattrs.into_iter().filter(|(name, _)| self.xattr_rules.keeps(name)).collect();
        if is_dir && self.becomes_root(path) && verdict != Verdict::LeaveOut {
            if verdict == Verdict::Keep {
                self.note_kept(path);
            }
            self.stripped.describe(path, meta, xattrs);
            return Ok(());
        }
        match (verdict, self.place(path)) {
            (Verdict::Keep, Some(place)) if self.hides_nothing(&place) => self.note_kept(path),
            (Verdict::Keep, Some(place)) => {
                self.note_kept(path);
                let nodes_before = self.builder.node_count();
                self.add_pending_parents(&place)?;
                self.builder.add(&place, kind, meta, xattrs)?;
                self.count_implied(path, nodes_before)?;
            }
            (Verdict::OnlyIfNeeded, Some(place)) => {
                self.pending.insert(place, (meta, xattrs));
            }
            _ => {
                self.notes.left_out += 1;
                if !is_dir {
                    self.left_out.insert(path.clone(), LeftOut::Node(kind, meta, xattrs));
                }
            }
        }
        Ok(())
    }

    /// True for a whiteout below anything but a directory: where a file replaces a directory, umoci
    /// marks its former entries, too.
    fn hides_nothing(&self, place: &ImagePath) -> bool {
        let is_mark = place.file_name().is_some_and(|name| overlay::is_aufs_mark(name.as_bytes()));
        if matches!(self.shape.whiteouts, None | Some(Whiteouts::Keep)) || !is_mark {
            return false;
        }
        let mut dir = place.clone();
        while dir.pop() && !dir.is_root() {
            if let Some(found) = self.builder.find(&dir) {
                return !matches!(self.builder.kind(found), NodeKind::Directory);
            }
        }
        false
    }

    /// Adds or replaces a hard link to an entry, which may come later.
    pub fn link(&mut self, path: &ImagePath, target: &ImagePath) -> Result<()> {
        self.count(path, None, &Xattrs::new()).map_err(|error| error.at(format!("{path:?}")))?;
        let kept = self.judge(path, false) == Verdict::Keep;
        let Some(place) = self.place(path).filter(|_| kept) else {
            self.notes.left_out += 1;
            return Ok(());
        };
        self.note_kept(path);
        let nodes_before = self.builder.node_count();
        self.add_pending_parents(&place)?;
        match self.left_out.get_mut(target) {
            Some(LeftOut::Kept(first)) => self.builder.link(&place, first.clone())?,
            Some(left_out @ LeftOut::Node(..)) => {
                let LeftOut::Node(kind, meta, xattrs) =
                    std::mem::replace(left_out, LeftOut::Kept(place.clone()))
                else {
                    return Ok(());
                };
                self.builder.add(&place, kind, meta, xattrs)?;
            }
            None => {
                let target = self.place(target).unwrap_or_else(|| target.clone());
                let target = if self.shape.links_below { self.followed(target)? } else { target };
                if self.shape.links_below && self.builder.find(&target).is_none() {
                    let kind = NodeKind::Symlink(target.as_bytes().into());
                    self.builder.add(&place, kind, LINK_BELOW, Xattrs::new())?;
                } else {
                    self.builder.link(&place, target)?;
                }
            }
        }
        self.count_implied(path, nodes_before)
    }

    /// Follows the symbolic links added so far.
    ///
    /// Errors: `Corrupt` for too many.
    fn followed(&self, target: ImagePath) -> Result<ImagePath> {
        let step = |dir: &BuildId, name: &[u8]| {
            let Some(found) = self.builder.child(*dir, name) else { return Step::Other };
            match self.builder.kind(found) {
                NodeKind::Directory => Step::Dir(found),
                NodeKind::Symlink(link) if self.builder.description(found).0 != LINK_BELOW => {
                    Step::Symlink(link.to_vec())
                }
                _ => Step::Other,
            }
        };
        if target.is_root() || self.builder.find(&target).is_some() {
            return Ok(target);
        }
        let found = followed(&target, BuildId::ROOT, step);
        found.map(|(path, _)| path).ok_or_else(|| {
            Error::corrupt(format!("hard link to {target:?}"), "too many symbolic links on the way")
        })
    }

    /// `None` if the path is dropped.
    fn place(&self, path: &ImagePath) -> Option<ImagePath> {
        let shape = self.shape;
        if !path.starts_with(&shape.strip_prefix) {
            return None;
        }
        let (stripped, depth) = (self.stripped_depth(), path.names().count());
        if depth < stripped || depth == stripped && shape.strip_components > 0 {
            return None;
        }
        let mut place = shape.prefix.clone();
        for name in path.names().skip(stripped) {
            place.push(name);
        }
        Some(place)
    }

    fn stripped_depth(&self) -> usize {
        self.shape.strip_prefix.names().count().saturating_add(self.shape.strip_components)
    }

    fn becomes_root(&self, path: &ImagePath) -> bool {
        self.shape.strip_components > 0
            && path.names().count() == self.stripped_depth()
            && path.starts_with(&self.shape.strip_prefix)
    }

    fn note_kept(&mut self, path: &ImagePath) {
        if self.shape.strip_components > 0 {
            self.stripped.note(path, self.stripped_depth());
        }
    }

    fn add_pending_parents(&mut self, place: &ImagePath) -> Result<()> {
        if self.shape.tar.implied_inherit {
            self.add_inheriting_parents(place);
        }
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut parent = place.clone();
        while parent.pop() {
            if let Some((meta, xattrs)) = self.pending.remove(&parent) {
                self.builder.add(&parent, NodeKind::Directory, meta, xattrs)?;
            }
        }
        Ok(())
    }

    fn add_inheriting_parents(&mut self, place: &ImagePath) {
        let (mut at, depth) = (BuildId::ROOT, place.names().count());
        for name in place.names().take(depth.saturating_sub(1)) {
            at = match self.builder.child(at, name.as_bytes()) {
                Some(found) if matches!(self.builder.kind(found), NodeKind::Directory) => found,
                // The builder refuses entries below a file or a hard link.
                _ if self.builder.has_child(at, name.as_bytes()) => return,
                _ => {
                    let above = self.builder.description(at).0;
                    let meta = Meta { mode: 0o755 | above.mode & 0o022, ..above };
                    self.builder.add_child(at, name, NodeKind::Directory, meta, Xattrs::new())
                }
            };
        }
    }

    /// Counts directories that the source does not describe, for a notice, except for those of the
    /// prefix, and only if the caller has not specified their metadata.
    pub fn note_implied(&mut self) {
        if self.shape.implied != Implied::default() {
            return;
        }
        let (mut above, mut own) = (self.shape.prefix.clone(), 0);
        loop {
            own += u64::from(self.builder.find(&above).is_some_and(|dir| self.builder.is_implied(dir)));
            if !above.pop() {
                break;
            }
        }
        self.notes.implied = self.builder.implied_count().saturating_sub(own);
    }

    /// Resolves hard links like [`TreeBuilder::resolve_links`], so that the caller can name the
    /// source in errors.
    ///
    /// Errors: as [`TreeBuilder::resolve_links`].
    pub fn resolve_links(&mut self) -> Result<()> {
        self.builder.resolve_links()
    }

    /// Completes the tree, with added entries; `contents` are those of the source.
    ///
    /// Errors: as [`TreeBuilder::finish`]; `Failed` for a whiteout with too long a name, and for an
    /// added entry without a place in the tree.
    pub fn finish(mut self, contents: Arc<dyn Contents>) -> Result<Loaded> {
        if let Some((meta, xattrs)) = self.stripped.description() {
            self.builder.add(&self.shape.prefix, NodeKind::Directory, meta, xattrs)?;
        }
        let additions = &self.shape.additions;
        let contents = if additions.is_empty() {
            contents
        } else {
            let shape = self.shape;
            let meta = |meta, is_dir, is_symlink| shaped_meta(shape, meta, is_dir, is_symlink);
            let shaping = Shaping { mtime_max: shape.mtime_max, meta: &meta };
            additions.lay_over(&mut self.builder, &shaping, self.next_content)?;
            additions.with(contents, self.next_content)
        };
        self.notes.unused_globs = self.rules.unused();
        let tree = self.builder.finish()?;
        let tree = match self.shape.whiteouts {
            Some(spelling) => whiteouts::respell(tree, spelling)?,
            None => {
                self.notes.kept_marks = whiteouts::count_marks(&tree);
                tree
            }
        };
        let tree = match &self.shape.file_contexts {
            Some(contexts) => file_contexts::label_all(&tree, contexts)?,
            None => tree,
        };
        Ok(Loaded { tree, contents, notes: self.notes })
    }
}

fn shaped_meta(shape: &Shape, meta: Meta, is_dir: bool, is_symlink: bool) -> Meta {
    let change = if is_dir { &shape.dir_mode } else { &shape.file_mode };
    let mode = match change {
        Some(change) if !is_symlink => change.apply(meta.mode, is_dir),
        _ => meta.mode,
    };
    let owner = Owner {
        uid: shape.uid.unwrap_or_else(|| mapped(&shape.uid_map, meta.owner.uid)),
        gid: shape.gid.unwrap_or_else(|| mapped(&shape.gid_map, meta.owner.gid)),
    };
    let mtime = shape.mtime.unwrap_or(meta.mtime);
    Meta { mode, owner, mtime: shape.mtime_max.map_or(mtime, |max| mtime.min(max)) }
}

/// Shapes an existing tree, such as an image's; its contents are unchanged.
pub fn shape_tree(tree: &Tree, contents: Arc<dyn Contents>, shape: &Shape) -> Result<Loaded> {
    let mut shaper = Shaper::new(shape)?;
    let mut first_paths: HashMap<NodeId, ImagePath> = HashMap::new();
    let mut walk = tree.walk();
    while let Some((path, id)) = walk.next() {
        let node = tree.node(id);
        if let Some(first) = first_paths.get(&id) {
            shaper.link(path, first)?;
            continue;
        }
        if node.links > 1 && !node.is_dir() {
            first_paths.insert(id, path.clone());
        }
        shaper.add(path, node.kind.clone(), node.meta, tree.xattrs(node.xattrs).clone())?;
    }
    shaper.finish(contents)
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::{ContentId, Held};

    fn path(text: &str) -> ImagePath {
        ImagePath::parse(text.as_bytes()).unwrap()
    }

    fn shaped(shape: &Shape) -> Tree {
        let mut shaper = Shaper::new(shape).unwrap();
        let mut contents = Held::default();
        let meta = Meta { mode: 0o666, owner: Owner { uid: 1, gid: 2 }, mtime: Timestamp::from_seconds(50) };
        for dir in ["", "usr", "usr/bin", "usr/share", "usr/share/doc", "var"] {
            shaper.add(&path(dir), NodeKind::Directory, Meta { mode: 0o700, ..meta }, Xattrs::new()).unwrap();
        }
        for file in ["usr/bin/sh", "usr/share/doc/README", "usr/share/a.txt", "var/log.txt"] {
            let kind = NodeKind::File { len: 1, content: contents.push(*b"x") };
            let xattrs = Xattrs::from([(b"user.a".to_vec(), vec![]), (b"security.b".to_vec(), vec![])]);
            shaper.add(&path(file), kind, meta, xattrs).unwrap();
        }
        shaper.link(&path("usr/bin/dash"), &path("usr/bin/sh")).unwrap();
        shaper.finish(Arc::new(contents)).unwrap().tree
    }

    fn names(shape: &Shape) -> Vec<String> {
        let tree = shaped(shape);
        let mut walk = tree.walk();
        let mut names = Vec::new();
        while let Some((path, _)) = walk.next() {
            names.push(path.to_string());
        }
        names
    }

    fn globs(globs: &[&str]) -> Vec<String> {
        globs.iter().map(|glob| glob.to_string()).collect()
    }

    #[test]
    fn leaves_out_what_is_excluded_with_all_below_it() {
        let shape = Shape { exclude: globs(&["usr/share", "*.txt"]), ..Shape::default() };
        assert_eq!(names(&shape), ["/", "usr", "usr/bin", "usr/bin/dash", "usr/bin/sh", "var"]);
    }

    #[test]
    fn keeps_only_what_is_included_and_the_way_there() {
        let shape = Shape { include: globs(&["*.txt", "doc/"]), ..Shape::default() };
        let kept = [
            "/",
            "usr",
            "usr/share",
            "usr/share/a.txt",
            "usr/share/doc",
            "usr/share/doc/README",
            "var",
            "var/log.txt",
        ];
        assert_eq!(names(&shape), kept);
        let tree = shaped(&shape);
        assert_eq!(
            tree.node(tree.find(&path("usr")).unwrap()).meta.mode,
            0o700,
            "the way keeps its metadata"
        );
    }

    #[test]
    fn a_hard_link_outlives_its_excluded_target() {
        let shape = Shape { exclude: globs(&["usr/bin/sh"]), include: globs(&["bin"]), ..Shape::default() };
        assert_eq!(names(&shape), ["/", "usr", "usr/bin", "usr/bin/dash"]);
        let tree = shaped(&shape);
        assert!(matches!(
            tree.node(tree.find(&path("usr/bin/dash")).unwrap()).kind,
            NodeKind::File { len: 1, .. }
        ));
    }

    #[test]
    fn whiteouts_below_a_file_hide_nothing() {
        let added = |shape: &Shape| {
            let mut shaper = Shaper::new(shape).unwrap();
            let empty = NodeKind::File { len: 0, content: ContentId(0) };
            let add = |at| shaper.add(&path(at), empty.clone(), Meta::default(), Xattrs::new());
            ["dir", "dir/.wh.a", "dir/b/.wh..wh..opq", "other/.wh.c"].into_iter().try_for_each(add)?;
            Ok::<_, Error>(shaper.finish(Arc::new(Held::default()))?.tree)
        };
        let tree = added(&Shape { whiteouts: Some(Whiteouts::Overlayfs), ..Shape::default() }).unwrap();
        let names = ["dir", "other", "other/c"];
        assert!(names.iter().all(|name| tree.find(&path(name)).is_some()));
        assert_eq!(tree.node_count(), 1 + names.len() as u32);
        assert!(added(&Shape::default()).is_err(), "they are files like others");
    }

    #[test]
    fn strips_and_prefixes_paths() {
        let shape = Shape { strip_prefix: path("usr"), prefix: path("opt/x"), ..Shape::default() };
        assert!(names(&shape).contains(&"opt/x/bin/sh".to_string()));
        assert!(!names(&shape).iter().any(|name| name.contains("var")));
        let shape = Shape { strip_components: 2, ..Shape::default() };
        assert_eq!(names(&shape), ["/", "a.txt", "dash", "doc", "doc/README", "sh"]);
    }

    #[test]
    fn a_single_stripped_directory_gives_the_root_its_metadata() {
        let directory = |mode| (NodeKind::Directory, Meta { mode, ..Meta::default() });
        let file = |_| (NodeKind::Fifo, Meta::default());
        type Entry<'a> = (&'a str, &'a dyn Fn(u16) -> (NodeKind, Meta), u16);
        let root_of = |entries: &[Entry<'_>], shape: &Shape| {
            let mut shaper = Shaper::new(shape).unwrap();
            for (at, entry, mode) in entries {
                let (kind, meta) = entry(*mode);
                let xattrs = Xattrs::from([(b"user.at".to_vec(), at.as_bytes().to_vec())]);
                shaper.add(&path(at), kind, meta, xattrs).unwrap();
            }
            let tree = shaper.finish(Arc::new(Held::default())).unwrap().tree;
            let root = tree.node(tree.find(&shape.prefix).unwrap());
            let at = tree.xattrs(root.xattrs).get(&b"user.at"[..]).cloned().unwrap_or_default();
            (root.meta.mode, String::from_utf8(at).unwrap())
        };
        let strip = |count| Shape { strip_components: count, ..Shape::default() };
        let (dir, file): (&dyn Fn(_) -> _, &dyn Fn(_) -> _) = (&directory, &file);
        let (top, implied) = ((0o750, "top".to_string()), (0o755, String::new()));
        let only: [Entry<'_>; 4] =
            [("", dir, 0o700), ("top/a", file, 0), ("top", dir, 0o750), ("README", file, 0)];
        assert_eq!(
            root_of(&only, &strip(1)),
            top,
            "whatever the order, and what is no directory does not count"
        );
        let prefixed = Shape { prefix: path("opt"), ..strip(1) };
        assert_eq!(root_of(&only, &prefixed), top, "also if the root goes elsewhere");
        for more in [("other", dir, 0o711), ("other/b", file, 0)] {
            let several = [&only[..], &[more]].concat();
            assert_eq!(root_of(&several, &strip(1)), implied, "of several none is preferred");
            let excluded = Shape { exclude: globs(&["other"]), ..strip(1) };
            assert_eq!(root_of(&several, &excluded), top, "but what is left out does not count");
            let included = Shape { include: globs(&["top/a"]), ..strip(1) };
            assert_eq!(root_of(&several, &included), top, "nor does what is not included");
        }
        let below = Shape { strip_prefix: path("x"), ..strip(1) };
        let deep: [Entry<'_>; 3] = [("y", dir, 0o711), ("x/top", dir, 0o750), ("x/top/b", file, 0)];
        assert_eq!(root_of(&deep, &below), (0o750, "x/top".into()));
        assert_eq!(root_of(&[("top/a", file, 0)], &strip(1)), implied, "if nothing describes it");
    }

    #[test]
    fn sets_owners_modes_times_and_attributes() {
        let shape = Shape {
            uid: Some(0),
            gid_map: vec!["2:7".parse().unwrap()],
            file_mode: Some("go-w".parse().unwrap()),
            mtime_max: Some(Timestamp::from_seconds(10)),
            xattr_exclude: globs(&["user.*"]),
            ..Shape::default()
        };
        let tree = shaped(&shape);
        let node = tree.node(tree.find(&path("usr/bin/sh")).unwrap());
        assert_eq!(
            node.meta,
            Meta { mode: 0o644, owner: Owner { uid: 0, gid: 7 }, mtime: Timestamp::from_seconds(10) }
        );
        assert_eq!(tree.xattrs(node.xattrs).keys().collect::<Vec<_>>(), [b"security.b"]);
    }

    #[test]
    fn refuses_invalid_globs() {
        let shape = Shape { exclude: globs(&["[z-a]"]), ..Shape::default() };
        assert!(Shaper::new(&shape).is_err());
    }
}
