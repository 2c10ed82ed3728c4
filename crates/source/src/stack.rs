//! Trees over each other, as overlayfs shows them: the layers of a container image as one tree.

use crate::joined_contents::JoinedContents;
use crate::shaper::IMPLIED;
use crate::whiteouts::{is_opaque_dir, is_whiteout, without_marks};
use crate::{Loaded, Notes};
use packfs_core::{
    BuildId, ContentId, Error, Limit, Limits, Meta, Name, Node, NodeId, NodeKind, Result, Timestamp, Tree,
    TreeBuilder, Xattrs,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Metadata that [`crate::Shape::implied`] gives to directories that a layer does not describe:
/// they take that of the layers below, or else of directories of root, mode 755. No filesystem has
/// the time.
pub const OF_LOWER_LAYER: Meta =
    Meta { mode: IMPLIED.mode, owner: IMPLIED.owner, mtime: Timestamp { seconds: i64::MIN, nanos: 0 } };

/// Node of a layer.
type Place = (usize, NodeId);

/// Puts trees over each other, the lowest first. Whiteouts and opaque directories of overlayfs hide
/// what lower trees have, and are not in the result.
///
/// Errors: `Limit` for directories within each other.
pub fn stack(layers: Vec<Loaded>, limits: Limits) -> Result<Loaded> {
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
    let stack = Stack { trees: &trees, limits, builder: TreeBuilder::new(IMPLIED), links: HashMap::new() };
    Ok(Loaded { tree: stack.build()?, contents: Arc::new(contents), notes })
}

fn contents_of(tree: &Tree) -> impl Iterator<Item = ContentId> {
    tree.nodes().filter_map(|(_, node)| match node.kind {
        NodeKind::File { content, .. } => Some(content),
        _ => None,
    })
}

struct Stack<'a> {
    /// Trees, and the number that contents of each begin with.
    trees: &'a [(Tree, u64)],
    limits: Limits,
    builder: TreeBuilder,
    /// Nodes with several names that are in the result.
    links: HashMap<Place, BuildId>,
}

/// Directory of the result whose entries are still to come.
struct Open {
    build: BuildId,
    /// Directories that come together, the lowest first.
    dirs: Vec<Place>,
    depth: u64,
}

impl Stack<'_> {
    fn build(mut self) -> Result<Tree> {
        let roots: Vec<Place> = (0..self.trees.len()).map(|layer| (layer, NodeId::ROOT)).collect();
        let roots = self.visible(&roots).to_vec();
        let (meta, xattrs) = self.description(&roots);
        self.builder.describe(BuildId::ROOT, meta, xattrs);
        let mut open = vec![Open { build: BuildId::ROOT, dirs: roots, depth: 1 }];
        while let Some(dir) = open.pop() {
            self.limits.check("layers", Limit::Depth, dir.depth)?;
            self.fill(&dir, &mut open)?;
        }
        self.builder.finish()
    }

    fn node(&self, (layer, id): Place) -> &Node {
        self.trees[layer].0.node(id)
    }

    fn xattrs(&self, place: Place) -> &Xattrs {
        self.trees[place.0].0.xattrs(self.node(place).xattrs)
    }

    /// Adds the entries of a directory.
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
            let (meta, xattrs) = self.description(&dirs);
            let build = self.builder.add_child(dir.build, checked, NodeKind::Directory, meta, xattrs);
            open.push(Open { build, dirs, depth: dir.depth.saturating_add(1) });
        }
        Ok(())
    }

    /// Leaves what no layer above hides: directories that come together, one of anything else, or
    /// nothing.
    fn visible<'p>(&self, found: &'p [Place]) -> &'p [Place] {
        let Some((&top, below)) = found.split_last() else { return found };
        let (node, xattrs) = (self.node(top), self.xattrs(top));
        if is_whiteout(&node.kind, xattrs) {
            return &[];
        }
        if !node.is_dir() {
            return &found[below.len()..];
        }
        let hides = |place: &Place| {
            let node = self.node(*place);
            !node.is_dir() || is_opaque_dir(self.xattrs(*place))
        };
        match found.iter().rposition(hides) {
            Some(at) if self.node(found[at]).is_dir() => &found[at..],
            Some(at) => &found[at + 1..],
            None => found,
        }
    }

    /// Returns metadata and attributes of a directory: those of the highest layer that describes
    /// it.
    fn description(&self, dirs: &[Place]) -> (Meta, Xattrs) {
        let described = dirs.iter().rev().find(|place| self.node(**place).meta != OF_LOWER_LAYER);
        match described {
            Some(&place) => (self.node(place).meta, without_marks(self.xattrs(place))),
            None => (IMPLIED, Xattrs::new()),
        }
    }

    fn add(&mut self, parent: BuildId, name: Name<'_>, place: Place) {
        if let Some(&first) = self.links.get(&place) {
            self.builder.link_child(parent, name, first);
            return;
        }
        let node = self.node(place);
        let (is_linked, meta) = (node.links > 1, node.meta);
        let kind = match node.kind {
            NodeKind::File { len, content } => {
                // The sum of all was checked.
                NodeKind::File { len, content: ContentId(content.0 + self.trees[place.0].1) }
            }
            ref kind => kind.clone(),
        };
        let xattrs = without_marks(self.xattrs(place));
        let build = self.builder.add_child(parent, name, kind, meta, xattrs);
        if is_linked {
            self.links.insert(place, build);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::{DeviceNumber, Held, ImagePath};

    fn path(text: &str) -> ImagePath {
        ImagePath::parse(text.as_bytes()).unwrap()
    }

    /// Returns a layer of lines: `a/` is a directory, `a/!` an opaque one, `a/?` one without a
    /// description, `a=` a whiteout, `a>b` a hard link, and anything else a file with its own name
    /// and the number of the layer.
    fn layer(number: u32, lines: &[&str]) -> Loaded {
        let meta = |mode| Meta { mode, ..Meta::default() };
        let mut tree = TreeBuilder::new(OF_LOWER_LAYER);
        let mut held = Held::default();
        for line in lines {
            let (name, mark) = line.split_at(line.find(['/', '=', '>']).map_or(line.len(), |at| {
                if line.ends_with(['/', '!', '?']) {
                    line.rfind('/').unwrap()
                } else {
                    at.max(line.rfind(['=', '>']).unwrap_or(line.len()))
                }
            }));
            let opaque = Xattrs::from([(b"trusted.overlay.opaque".to_vec(), b"y".to_vec())]);
            match mark {
                "/" | "/!" | "/?" => {
                    let (meta, xattrs) = match mark {
                        "/?" => (OF_LOWER_LAYER, Xattrs::new()),
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
                link => tree.link(&path(name), path(&link[1..])).unwrap(),
            }
        }
        Loaded { tree: tree.finish().unwrap(), contents: Arc::new(held), notes: Notes::default() }
    }

    fn stacked(layers: &[&[&str]]) -> Vec<String> {
        let layers = (1..).zip(layers).map(|(number, lines)| layer(number, lines)).collect();
        let loaded = stack(layers, Limits::default()).unwrap();
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
    }

    #[test]
    fn hard_links_stay_within_their_layer() {
        assert_eq!(
            stacked(&[&["a", "b>a", "c>a"], &["b", "d>b"]]),
            ["a: a 1 x2", "b: b 2 x2", "c: a 1 x2", "d: b 2 x2"]
        );
    }
}
