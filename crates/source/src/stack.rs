//! Trees over each other, as overlayfs shows them: the layers of a container image as one tree.

use crate::followed::{Step, followed};
use crate::joined_contents::JoinedContents;
use crate::shaper::LINK_BELOW;
use crate::whiteouts::WHITEOUT_DEVICE;
use crate::{Loaded, Notes};
use packfs_core::overlay::{Effect, seen, without_marks};
use packfs_core::{
    BuildId, ContentId, Edited, Error, ImagePath, Limit, Limits, Meta, Name, Node, NodeId, NodeKind, Owner,
    Result, Timestamp, Tree, TreeBuilder, TreeEdit, Xattrs,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;

/// Metadata that marks directories without a description in their layer, for
/// [`crate::Shape::implied`]: they take that of the layers below. No filesystem has this time.
pub const OF_LOWER_LAYER: Meta =
    Meta { mode: 0o755, owner: Owner { uid: 0, gid: 0 }, mtime: Timestamp { seconds: i64::MIN, nanos: 0 } };

fn undescribed() -> Result<Tree> {
    TreeBuilder::new(OF_LOWER_LAYER).finish()
}

type Place = (usize, NodeId);

/// Stacks trees as overlayfs does, the lowest first. Whiteouts and opaque directories of overlayfs
/// hide entries of lower trees, and are not in the result. A hard link leads to the file visible in
/// the layers below: whiteouts of its own layer do not hide it. `implied` describes directories
/// that no layer describes; the notes count them, and name links that a directory replaces.
///
/// Errors: `Limit` for directories within each other; `Corrupt` for a hard link without a file.
pub fn stack(layers: Vec<Loaded>, implied: Meta, limits: Limits) -> Result<Loaded> {
    let (trees, contents, notes) = joined(layers)?;
    let (tree, Found { implied, replaced_links }) = Stack::new(&trees, implied, limits)?.build()?;
    Ok(Loaded { tree, contents, notes: Notes { implied, replaced_links, ..notes } })
}

/// Directories of the layers so far, stacked.
pub struct LowerDirs {
    /// Contains only directories and symbolic links.
    tree: Tree,
    implied: Meta,
    limits: Limits,
}

impl LowerDirs {
    /// Creates an empty stack; `implied` describes directories that no layer describes.
    ///
    /// Errors: none in practice.
    pub fn new(implied: Meta, limits: Limits) -> Result<Self> {
        Ok(LowerDirs { tree: undescribed()?, implied, limits })
    }

    /// Stacks a layer onto the earlier ones. Its directories with the metadata [`OF_LOWER_LAYER`]
    /// get that of the stack so far. Notes are those of [`stack`].
    ///
    /// Errors: `Limit` for directories within each other.
    pub fn describe(&mut self, layer: Loaded) -> Result<Loaded> {
        // Anything but a directory hides those of lower layers, as a whiteout does.
        let marks = layer.tree.edit(|_, _, edited| {
            let is_own_link = matches!(edited.kind, NodeKind::Symlink(_)) && edited.meta != LINK_BELOW;
            if edited.kind != NodeKind::Directory && !is_own_link {
                (edited.kind, edited.meta, edited.xattrs) = (WHITEOUT_DEVICE, Meta::default(), Xattrs::new());
            }
            Ok(true)
        })?;
        let below = std::mem::replace(&mut self.tree, undescribed()?);
        let trees = [(below, 0), (marks, 0)];
        let (below, found) = Stack::new(&trees, OF_LOWER_LAYER, self.limits)?.build()?;
        self.tree = below;
        let (tree, implied) = self.described(&layer.tree)?;
        let notes = Notes { implied, replaced_links: found.replaced_links, ..layer.notes };
        Ok(Loaded { tree, notes, contents: layer.contents })
    }

    fn described(&self, layer: &Tree) -> Result<(Tree, u64)> {
        let mut implied = 0;
        let tree = layer.edit(|path, _, edited| {
            if edited.kind != NodeKind::Directory || edited.meta != OF_LOWER_LAYER {
                return Ok(true);
            }
            let below = self.tree.find(path).map(|below| self.tree.node(below));
            let below = below.filter(|below| below.meta != OF_LOWER_LAYER);
            implied += u64::from(below.is_none() && !path.is_root());
            let mut xattrs = below.map_or_else(Xattrs::new, |it| self.tree.xattrs(it.xattrs).clone());
            xattrs.append(&mut edited.xattrs);
            (edited.meta, edited.xattrs) = (below.map_or(self.implied, |it| it.meta), xattrs);
            Ok(true)
        })?;
        Ok((tree, implied))
    }
}

/// Returns true for a layer with hard links to files of lower layers.
pub fn has_links_below(tree: &Tree) -> bool {
    tree.nodes().any(|(_, node)| link_below(node).is_some())
}

/// Returns the highest layer alone, with copies of the lower files that its hard links lead to,
/// because links cannot lead to another image.
///
/// Errors: as [`stack`].
pub fn with_linked_files(layers: Vec<Loaded>, limits: Limits) -> Result<Loaded> {
    let (trees, contents, notes) = joined(layers)?;
    let stack = Stack::new(&trees, OF_LOWER_LAYER, limits)?;
    let Some((layer, (tree, _))) = trees.iter().enumerate().next_back() else {
        return Err(Error::failed("internal: no layers"));
    };
    let mut edit = TreeEdit::new(tree, Meta::default());
    let mut copies: HashMap<Place, ImagePath> = HashMap::new();
    let mut walk = tree.walk();
    while let Some((path, id)) = walk.next() {
        let Some(&place) = stack.linked.get(&(layer, id)) else {
            edit.keep(id, Edited { kind: stack.kind((layer, id)), ..edit.edited(path, id) })?;
            continue;
        };
        if place.0 == layer {
            edit.builder().link(path, tree.path(place.1))?;
            continue;
        }
        match copies.get(&place) {
            Some(first) => edit.builder().link(path, first.clone())?,
            None => {
                copies.insert(place, path.clone());
                let xattrs = without_marks(stack.xattrs(place).clone());
                edit.builder().add(path, stack.kind(place), stack.node(place).meta, xattrs)?;
            }
        }
    }
    Ok(Loaded { tree: edit.finish()?, contents, notes })
}

/// Trees, each with the first id of its contents.
type Trees = Vec<(Tree, u64)>;

fn joined(layers: Vec<Loaded>) -> Result<(Trees, Arc<JoinedContents>, Notes)> {
    let mut contents = JoinedContents::default();
    let (mut notes, mut first) = (Notes::default(), 0_u64);
    let mut trees = Vec::with_capacity(layers.len());
    for layer in layers {
        let behind = contents_of(&layer.tree).map(|id| id.0.saturating_add(1)).max().unwrap_or(0);
        contents.push(first, layer.contents);
        trees.push((layer.tree, first));
        first = first
            .checked_add(behind)
            .ok_or_else(|| Error::failed("cannot stack the layers: numbers of contents overflow"))?;
        notes.unreadable.extend(layer.notes.unreadable);
        notes.left_out = notes.left_out.saturating_add(layer.notes.left_out);
    }
    Ok((trees, Arc::new(contents), notes))
}

fn link_below(node: &Node) -> Option<ImagePath> {
    match &node.kind {
        NodeKind::Symlink(target) if node.meta == LINK_BELOW => ImagePath::parse(target).ok(),
        _ => None,
    }
}

fn contents_of(tree: &Tree) -> impl Iterator<Item = ContentId> {
    tree.nodes().filter_map(|(_, node)| match node.kind {
        NodeKind::File { content, .. } => Some(content),
        _ => None,
    })
}

struct Stack<'a> {
    /// Trees, each with the first id of its contents.
    trees: &'a [(Tree, u64)],
    limits: Limits,
    builder: TreeBuilder,
    implied: Meta,
    found: Found,
    links: HashMap<Place, BuildId>,
    linked: HashMap<Place, Place>,
    targets: HashSet<Place>,
}

#[derive(Default)]
struct Found {
    implied: u64,
    replaced_links: Vec<ImagePath>,
}

struct Open {
    build: BuildId,
    path: ImagePath,
    /// Directories that are merged, the lowest first.
    dirs: Vec<Place>,
    depth: u64,
}

impl<'a> Stack<'a> {
    /// Resolves hard links, those of lower layers first.
    fn new(trees: &'a [(Tree, u64)], implied: Meta, limits: Limits) -> Result<Self> {
        let builder = TreeBuilder::new(implied);
        let (links, linked, targets) = (HashMap::new(), HashMap::new(), HashSet::new());
        let found = Found::default();
        let mut stack = Stack { trees, limits, builder, implied, found, links, linked, targets };
        for (layer, (tree, _)) in trees.iter().enumerate() {
            for (id, node) in tree.nodes() {
                let Some(target) = link_below(node) else { continue };
                let found = stack.target(layer, &target).filter(|place| !stack.node(*place).is_dir());
                let found = found.ok_or_else(|| {
                    let fault = format!(
                        "hard link {:?} to {target:?}: no layer up to it has such a file",
                        tree.path(id)
                    );
                    let error = Error::corrupt(format!("layer {} of {}", layer + 1, trees.len()), fault);
                    match tree.find(&target) {
                        Some(_) => error.hint(
                            "the layer has it only after the link, which containerd and GNU tar refuse, too",
                        ),
                        None => error,
                    }
                })?;
                let found = stack.linked.get(&found).copied().unwrap_or(found);
                stack.linked.insert((layer, id), found);
                stack.targets.insert(found);
            }
        }
        Ok(stack)
    }

    /// Target of a hard link that its layer does not have so far at this path: searched in the
    /// layers below as stacked, where symbolic links to its directory are followed. If there are
    /// some, the layer itself may have the file at the path that they lead to.
    fn target(&self, layer: usize, path: &ImagePath) -> Option<Place> {
        let named = |dirs: &[Place], name: &[u8]| {
            let named = |&(layer, dir): &Place| Some((layer, self.trees[layer].0.lookup(dir, name)?));
            self.visible(&dirs.iter().filter_map(named).collect::<Vec<_>>()).to_vec()
        };
        let step = |dirs: &Vec<Place>, name: &[u8]| {
            let found = named(dirs, name);
            let Some(&top) = found.last() else { return Step::Other };
            let top = self.linked.get(&top).copied().unwrap_or(top);
            match &self.node(top).kind {
                NodeKind::Directory => Step::Dir(found),
                NodeKind::Symlink(link) => Step::Symlink(link.to_vec()),
                _ => Step::Other,
            }
        };
        let (way, dirs) = followed(path, self.visible(&self.roots(layer)).to_vec(), step)?;
        let own = self.trees[layer].0.find(&way).map(|id| (layer, id));
        let own = own.filter(|own| way != *path && !self.hides(*own));
        own.or_else(|| named(&dirs?, way.file_name()?.as_bytes()).last().copied())
    }

    /// Also true for a hard link whose target is not found yet.
    fn hides(&self, place: Place) -> bool {
        self.effect(place) == Effect::Hides || link_below(self.node(place)).is_some()
    }

    fn roots(&self, count: usize) -> Vec<Place> {
        (0..count).map(|layer| (layer, NodeId::ROOT)).collect()
    }

    fn build(mut self) -> Result<(Tree, Found)> {
        let found = self.roots(self.trees.len());
        let roots = self.visible(&found).to_vec();
        if let Some((meta, xattrs)) = self.description(&found) {
            self.builder.describe(BuildId::ROOT, meta, xattrs);
        }
        let root = ImagePath::root();
        let mut open = vec![Open { build: BuildId::ROOT, path: root, dirs: roots, depth: 1 }];
        while let Some(dir) = open.pop() {
            self.limits.check("layers", Limit::Depth, dir.depth)?;
            self.fill(&dir, &mut open)?;
        }
        Ok((self.builder.finish()?, self.found))
    }

    fn node(&self, (layer, id): Place) -> &Node {
        self.trees[layer].0.node(id)
    }

    fn xattrs(&self, place: Place) -> &Xattrs {
        self.trees[place.0].0.xattrs(self.node(place).xattrs)
    }

    fn fill(&mut self, dir: &Open, open: &mut Vec<Open>) -> Result<()> {
        let trees = self.trees;
        let mut names: BTreeMap<&[u8], Vec<Place>> = BTreeMap::new();
        for &(layer, id) in &dir.dirs {
            for entry in trees[layer].0.entries(id) {
                names.entry(entry.name).or_default().push((layer, entry.node));
            }
        }
        for (name, found) in names {
            let checked = Name::new(name).map_err(|fault| Error::failed(format!("internal: {fault}")))?;
            let visible = self.visible(&found);
            let Some(&top) = visible.last() else { continue };
            if !self.node(top).is_dir() {
                self.add(dir.build, checked, top);
                continue;
            }
            let dirs = visible.to_vec();
            let path = dir.path.join(checked);
            if self.replaces_link(&found) {
                self.found.replaced_links.push(path.clone());
            }
            let described = self.description(&found);
            self.found.implied += u64::from(described.is_none());
            let (meta, xattrs) = described.unwrap_or((self.implied, Xattrs::new()));
            let build = self.builder.add_child(dir.build, checked, NodeKind::Directory, meta, xattrs);
            open.push(Open { build, path, dirs, depth: dir.depth.saturating_add(1) });
        }
        Ok(())
    }

    /// True for directories over a symbolic link, which no mark hides.
    fn replaces_link(&self, found: &[Place]) -> bool {
        let (links, dirs) = match found.iter().rposition(|place| !self.node(*place).is_dir()) {
            Some(at) => found.split_at(at + 1),
            None => return false,
        };
        let is_link = |place: &Place| {
            let node = self.node(*place);
            matches!(node.kind, NodeKind::Symlink(_)) && node.meta != LINK_BELOW
        };
        let joins = |place: &Place| self.effect(*place) == Effect::Joins;
        links.last().is_some_and(is_link) && dirs.iter().all(joins)
    }

    fn effect(&self, place: Place) -> Effect {
        Effect::of(&self.node(place).kind, self.xattrs(place))
    }

    /// Returns nodes that no layer above hides: directories to merge, one node of another type, or
    /// none.
    fn visible<'p>(&self, found: &'p [Place]) -> &'p [Place] {
        let effects = found.iter().rev().map(|place| Ok(self.effect(*place)));
        let Ok::<_, Infallible>(count) = seen(effects);
        &found[found.len() - count..]
    }

    /// Taken from the highest layer that describes the directory. An opaque mark hides entries of
    /// lower layers, not the directory.
    fn description(&self, found: &[Place]) -> Option<(Meta, Xattrs)> {
        let dirs = found.iter().rev().take_while(|place| self.node(**place).is_dir());
        let mut described = dirs.filter(|place| self.node(**place).meta != OF_LOWER_LAYER);
        described.next().map(|&place| (self.node(place).meta, without_marks(self.xattrs(place).clone())))
    }

    fn kind(&self, place: Place) -> NodeKind {
        match self.node(place).kind {
            NodeKind::File { len, content } => {
                // The sum of all was checked.
                NodeKind::File { len, content: ContentId(content.0 + self.trees[place.0].1) }
            }
            ref kind => kind.clone(),
        }
    }

    fn add(&mut self, parent: BuildId, name: Name<'_>, place: Place) {
        let place = self.linked.get(&place).copied().unwrap_or(place);
        if let Some(&first) = self.links.get(&place) {
            self.builder.link_child(parent, name, first);
            return;
        }
        let node = self.node(place);
        let (is_linked, meta) = (node.links > 1 || self.targets.contains(&place), node.meta);
        let kind = self.kind(place);
        let xattrs = without_marks(self.xattrs(place).clone());
        let build = self.builder.add_child(parent, name, kind, meta, xattrs);
        if is_linked {
            self.links.insert(place, build);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::{DeviceNumber, Held, ImagePath, Implied};

    fn path(text: &str) -> ImagePath {
        ImagePath::parse(text.as_bytes()).unwrap()
    }

    /// Returns a layer of lines: `a/` is a directory, `a/!` an opaque one, `a/?` one without a
    /// description, `a/?!` both, `a=` a whiteout, `a@b` a symbolic link, `a>b` a hard link, which
    /// leads to a lower layer if the file is not among the lines before, and anything else a file
    /// with its own name and the number of the layer.
    fn layer(number: u32, lines: &[&str]) -> Loaded {
        let meta = |mode| Meta { mode, ..Meta::default() };
        let mut tree = TreeBuilder::new(OF_LOWER_LAYER);
        let mut held = Held::default();
        for line in lines {
            if let Some((name, target)) = line.split_once('@') {
                let kind = NodeKind::Symlink(target.as_bytes().into());
                tree.add(&path(name), kind, meta(0o777), Xattrs::new()).unwrap();
                continue;
            }
            let (name, mark) = line.split_at(line.find(['/', '=', '>']).map_or(line.len(), |at| {
                if line.ends_with(['/', '!', '?']) {
                    line.rfind('/').unwrap()
                } else {
                    at.max(line.rfind(['=', '>']).unwrap_or(line.len()))
                }
            }));
            let opaque = Xattrs::from([(packfs_core::overlay::OPAQUE[0].to_vec(), b"y".to_vec())]);
            match mark {
                "/" | "/!" | "/?" | "/?!" => {
                    let (meta, xattrs) = match mark {
                        "/?" => (OF_LOWER_LAYER, Xattrs::new()),
                        "/?!" => (OF_LOWER_LAYER, opaque),
                        "/!" => (meta(0o700 + number as u16), opaque),
                        _ => (meta(0o700 + number as u16), Xattrs::new()),
                    };
                    tree.add(&path(name), NodeKind::Directory, meta, xattrs).unwrap();
                }
                "=" => {
                    let kind = NodeKind::CharDevice(DeviceNumber { major: 0, minor: 0 });
                    tree.add(&path(name), kind, meta(0), Xattrs::new()).unwrap();
                }
                "" => {
                    let bytes = format!("{name} {number}").into_bytes();
                    let kind = NodeKind::File { len: bytes.len() as u64, content: held.push(bytes) };
                    tree.add(&path(name), kind, meta(0o600), Xattrs::new()).unwrap();
                }
                link if tree.find(&path(&link[1..])).is_some() => {
                    tree.link(&path(name), path(&link[1..])).unwrap();
                }
                link => {
                    let kind = NodeKind::Symlink(link.as_bytes()[1..].into());
                    tree.add(&path(name), kind, LINK_BELOW, Xattrs::new()).unwrap();
                }
            }
        }
        Loaded { tree: tree.finish().unwrap(), contents: Arc::new(held), notes: Notes::default() }
    }

    fn layers(lines: &[&[&str]]) -> Vec<Loaded> {
        (1..).zip(lines).map(|(number, lines)| layer(number, lines)).collect()
    }

    fn stacked(lines: &[&[&str]]) -> Vec<String> {
        rows(stack(layers(lines), Implied::default().meta(None), Limits::default()).unwrap())
    }

    fn rows(loaded: Loaded) -> Vec<String> {
        let mut rows = Vec::new();
        let mut walk = loaded.tree.walk();
        while let Some((path, id)) = walk.next() {
            let node = loaded.tree.node(id);
            assert!(loaded.tree.xattrs(node.xattrs).is_empty());
            rows.push(match node.kind {
                NodeKind::File { len, content } => {
                    let mut bytes = vec![0; len as usize];
                    loaded.contents.open(content).unwrap().read_exact_at(0, &mut bytes).unwrap();
                    format!("{path}: {} x{}", String::from_utf8(bytes).unwrap(), node.links)
                }
                NodeKind::Directory => format!("{path}/ {:o}", node.meta.mode),
                _ => format!("{path}?"),
            });
        }
        rows.remove(0);
        rows
    }

    #[test]
    fn upper_layers_replace_and_hide() {
        assert_eq!(
            stacked(&[&["a", "d/", "d/x", "d/y", "f/", "f/z"], &["d/", "d/x=", "d/n", "f", "none="]]),
            ["a: a 1 x1", "d/ 702", "d/n: d/n 2 x1", "d/y: d/y 1 x1", "f: f 2 x1"]
        );
        assert_eq!(
            stacked(&[&["d/", "d/x"], &["d/!", "d/y"], &["d/", "d/z"]]),
            ["d/ 703", "d/y: d/y 2 x1", "d/z: d/z 3 x1"]
        );
        assert_eq!(stacked(&[&["d/", "d/x"], &["d="], &["d/", "d/y"]]), ["d/ 703", "d/y: d/y 3 x1"]);
        assert_eq!(stacked(&[&["f/", "f/x"], &["f"], &["f/", "f/y"]]), ["f/ 703", "f/y: f/y 3 x1"]);
    }

    #[test]
    fn directories_that_a_layer_only_implies_keep_their_metadata() {
        assert_eq!(stacked(&[&["d/", "d/x"], &["d/?", "d/y"]])[0], "d/ 701");
        assert_eq!(stacked(&[&["d/?", "d/x"]])[0], "d/ 755");
        assert_eq!(stacked(&[&["d/", "d/x"], &["d/?!", "d/y"]]), ["d/ 701", "d/y: d/y 2 x1"]);
        assert_eq!(stacked(&[&["d/", "d/x"], &["d="], &["d/?", "d/y"]])[0], "d/ 755");
    }

    #[test]
    fn a_layer_alone_takes_the_metadata_of_the_directories_below() {
        let lines: [&[&str]; 4] = [
            &["d/", "d/e/", "d/e/x", "f/", "g/"],
            &["d/?", "d/e/?!", "d/e/y", "f", "n/?", "n/m/?", "n/m/x"],
            &["d/?", "d/e/?", "d/e/z", "f/?", "f/x", "g="],
            &["g/?", "g/x", "n/", "n/m/?", "n/m/y"],
        ];
        let mut below = LowerDirs::new(Implied::default().meta(None), Limits::default()).unwrap();
        let mut found = Vec::new();
        for layer in layers(&lines) {
            let layer = below.describe(layer).unwrap();
            let dirs = layer.tree.nodes().filter(|(_, node)| node.is_dir());
            let modes = dirs.map(|(id, node)| format!("{} {:o}", layer.tree.path(id), node.meta.mode));
            found.push((layer.notes.implied, modes.skip(1).collect::<Vec<_>>().join(", ")));
        }
        let link = LowerDirs::new(Meta::default(), Limits::default()).and_then(|mut below| {
            below.describe(layer(1, &["l@d", "m@d", "n@d"]))?;
            below.describe(layer(2, &["l/?", "l/x", "m/!", "n="]))
        });
        let replaced = link.unwrap().notes.replaced_links;
        assert_eq!(replaced.iter().map(ToString::to_string).collect::<Vec<_>>(), ["l"]);
        assert_eq!(found[1], (2, "d 701, d/e 701, n 755, n/m 755".into()));
        assert_eq!(found[2], (1, "d 701, d/e 701, f 755".into()));
        assert_eq!(found[3], (2, "g 755, n 704, n/m 755".into()));
    }

    #[test]
    fn a_hard_link_leads_to_a_file_of_its_layer_first() {
        assert_eq!(
            stacked(&[&["a", "b>a", "c>a"], &["b", "d>b"]]),
            ["a: a 1 x2", "b: b 2 x2", "c: a 1 x2", "d: b 2 x2"]
        );
    }

    #[test]
    fn a_hard_link_leads_to_what_lower_layers_show() {
        // The name that it shares, and links to the link.
        assert_eq!(
            stacked(&[&["d/", "d/a"], &["b>d/a", "c>b"]]),
            ["b: d/a 1 x3", "c: d/a 1 x3", "d/ 701", "d/a: d/a 1 x3"]
        );
        assert_eq!(stacked(&[&["a"], &["b>a"], &["a=", "c>b"]]), ["b: a 1 x2", "c: a 1 x2"]);
        // The file is replaced or hidden in the layer of the link, or above.
        assert_eq!(stacked(&[&["a"], &["b>a", "a"]]), ["a: a 2 x1", "b: a 1 x1"]);
        assert_eq!(stacked(&[&["a"], &["b>a", "a="]]), ["b: a 1 x1"]);
        assert_eq!(stacked(&[&["a"], &["b>a"], &["a="]]), ["b: a 1 x1"]);
        assert_eq!(stacked(&[&["d/", "d/a"], &["d/!", "d/b>d/a"]]), ["d/ 702", "d/b: d/a 1 x1"]);
        // The highest of several.
        assert_eq!(stacked(&[&["a"], &["a"], &["b>a"]]), ["a: a 2 x2", "b: a 2 x2"]);
        // Symbolic links to its directory are followed, but not the file itself.
        assert_eq!(
            stacked(&[&["d/", "d/a", "l@/d", "u/", "u/up@../../l"], &["b>l/a", "c>u/up/a", "l>u/up"]]),
            ["b: d/a 1 x3", "c: d/a 1 x3", "d/ 701", "d/a: d/a 1 x3", "l?", "u/ 701", "u/up?"]
        );
        // The layer may have the file where symbolic links of lower ones lead.
        let lines: [&[&str]; 2] = [&["d/", "d/a", "l@d"], &["d/", "d/a", "b>l/a"]];
        assert_eq!(stacked(&lines), ["b: d/a 2 x2", "d/ 702", "d/a: d/a 2 x2", "l?"]);
        let alone = with_linked_files(layers(&lines), Limits::default()).unwrap();
        assert_eq!(rows(alone), ["b: d/a 2 x2", "d/ 702", "d/a: d/a 2 x2"]);
        assert_eq!(stacked(&[lines[0], &["d/", "d/a=", "b>l/a"]])[0], "b: d/a 1 x1");
        // A link that is replaced.
        assert_eq!(stacked(&[&["a"], &["b>a"], &["b"]]), ["a: a 1 x1", "b: b 3 x1"]);
    }

    #[test]
    fn a_hard_link_without_a_file_below_is_refused() {
        for lines in [
            &[&["b>a"][..], &["a"]][..],
            &[&["a"], &["a="], &["b>a"]],
            &[&["d/", "d/a"], &["d/!"], &["b>d/a"]],
            &[&["d/", "d/a"], &["d"], &["b>d/a"]],
            &[&["a/"], &["b>a"]],
            &[&["a"], &["b>a/x"]],
            &[&["d/", "l@d"], &["b>l/a"]],
            &[&["l@l"], &["b>l/a"]],
        ] {
            let error = stack(layers(lines), Meta::default(), Limits::default()).err().unwrap();
            assert!(error.to_string().contains("hard link"), "{lines:?}: {error}");
        }
        let error =
            stack(layers(&[&["x"], &["b>a", "a"]]), Meta::default(), Limits::default()).err().unwrap();
        assert!(error.hints().iter().any(|hint| hint.contains("only after the link")), "{error}");
    }

    #[test]
    fn a_layer_alone_gets_copies_of_linked_files() {
        let lines: [&[&str]; 2] = [&["d/", "d/a", "x"], &["b>d/a", "c>d/a", "e/", "e/f", "e/g>e/f"]];
        let layers = layers(&lines);
        assert!(!has_links_below(&layers[0].tree) && has_links_below(&layers[1].tree));
        assert_eq!(
            rows(with_linked_files(layers, Limits::default()).unwrap()),
            ["b: d/a 1 x2", "c: d/a 1 x2", "e/ 702", "e/f: e/f 2 x2", "e/g: e/f 2 x2"]
        );
    }
}
