//! The action `move` of mksquashfs: computed on the original tree, then applied together.

use packfs::source::Loaded;
use packfs::{ImagePath, Name, NodeId, Result, TreeEdit};
use packfs_terminal::report;
use std::collections::HashMap;

struct Item {
    node: NodeId,
    parent: usize,
    name: Vec<u8>,
    origin: ImagePath,
    is_dir: bool,
}

/// The root is the first, and its own parent.
struct Names {
    items: Vec<Item>,
    /// Key: parent and name.
    places: HashMap<(usize, Vec<u8>), usize>,
}

/// Item, new directory, new name.
type Move = (usize, usize, Vec<u8>);

/// `targets` returns the arguments of the actions that match a path. Also returns the former paths
/// of all files by their new paths.
pub fn moved(
    loaded: Loaded,
    targets: impl Fn(&ImagePath) -> Vec<String>,
) -> Result<(Loaded, HashMap<ImagePath, ImagePath>)> {
    let mut names = Names::of(&loaded);
    let mut moves: Vec<Move> = Vec::new();
    for at in 1..names.items.len() {
        moves.extend(names.target(at, &targets(&names.items[at].origin)));
    }
    // The last move found is applied first.
    for (at, parent, name) in moves.into_iter().rev() {
        names.make(at, parent, name);
    }
    names.built(loaded)
}

fn complain(from: &ImagePath, to: &str, why: &str) {
    report::note(format_args!("Move action: cannot move /{from} to {to}, {why}"));
}

impl Names {
    fn of(loaded: &Loaded) -> Self {
        let (mut items, mut places) = (Vec::<Item>::new(), HashMap::new());
        let mut by_path = HashMap::new();
        let mut walk = loaded.tree.walk();
        while let Some((path, node)) = walk.next() {
            let mut above = path.clone();
            above.pop();
            let parent = by_path.get(&above).copied().unwrap_or(0);
            let name = path.file_name().map(|name| name.as_bytes().to_vec()).unwrap_or_default();
            let at = items.len();
            by_path.insert(path.clone(), at);
            if at > 0 {
                places.insert((parent, name.clone()), at);
            }
            let is_dir = loaded.tree.node(node).is_dir();
            items.push(Item { node, parent, name, origin: path.clone(), is_dir });
        }
        Names { items, places }
    }

    /// Combines several targets of a file.
    fn target(&self, at: usize, targets: &[String]) -> Option<Move> {
        let item = &self.items[at];
        let (mut parent, mut name): (Option<usize>, Option<Vec<u8>>) = (None, None);
        for text in targets {
            let (found, rest) = self.walked(item.parent, text);
            if rest.len() > 1 {
                let why = format!("no such directory {}", String::from_utf8_lossy(&rest[0]));
                complain(&item.origin, text, &why);
                continue;
            }
            let leaf = rest.into_iter().next();
            let conflicts = leaf.is_some() && name.is_some() && leaf != name
                || found != item.parent && parent.is_some_and(|parent| parent != found);
            if conflicts {
                complain(&item.origin, text, "another move action moves it elsewhere");
                continue;
            }
            name = name.or(leaf);
            parent = parent.or((found != item.parent).then_some(found));
        }
        if parent.is_none() && name.is_none() {
            return None;
        }
        let parent = parent.unwrap_or(item.parent);
        let name = name.unwrap_or_else(|| item.name.clone());
        self.is_possible(at, parent, &name).then_some((at, parent, name))
    }

    /// Returns the last existing directory, and the remaining names.
    fn walked(&self, from: usize, path: &str) -> (usize, Vec<Vec<u8>>) {
        let mut at = if path.starts_with('/') { 0 } else { from };
        let mut parts = path.split('/').filter(|part| !part.is_empty() && *part != ".").peekable();
        while let Some(part) = parts.peek() {
            let found = match *part {
                ".." => Some(self.items[at].parent),
                part => self.places.get(&(at, part.as_bytes().to_vec())).copied(),
            };
            match found.filter(|found| self.items[*found].is_dir) {
                Some(found) => at = found,
                None => break,
            }
            parts.next();
        }
        (at, parts.map(|part| part.as_bytes().to_vec()).collect())
    }

    fn is_possible(&self, at: usize, parent: usize, name: &[u8]) -> bool {
        let shown = || format!("/{}/{}", self.path(parent), String::from_utf8_lossy(name));
        if self.places.contains_key(&(parent, name.to_vec())) {
            complain(&self.items[at].origin, &shown(), "destination already exists");
            return false;
        }
        let mut above = parent;
        while above != 0 && above != at {
            above = self.items[above].parent;
        }
        if above == at {
            complain(&self.items[at].origin, &shown(), "this is a subdirectory of itself");
        }
        above != at
    }

    fn make(&mut self, at: usize, parent: usize, name: Vec<u8>) {
        if !self.is_possible(at, parent, &name) {
            return;
        }
        let item = &mut self.items[at];
        self.places.remove(&(item.parent, item.name.clone()));
        (item.parent, item.name) = (parent, name.clone());
        self.places.insert((parent, name), at);
    }

    fn path(&self, mut at: usize) -> ImagePath {
        let mut names = Vec::new();
        while at != 0 {
            names.push(&self.items[at].name);
            at = self.items[at].parent;
        }
        let mut path = ImagePath::root();
        names.iter().rev().filter_map(|name| Name::new(name).ok()).for_each(|name| path.push(name));
        path
    }

    fn built(self, loaded: Loaded) -> Result<(Loaded, HashMap<ImagePath, ImagePath>)> {
        let tree = &loaded.tree;
        let mut edit = TreeEdit::new(tree, tree.node(NodeId::ROOT).meta);
        let mut origins = HashMap::new();
        let mut paths: Vec<(ImagePath, usize)> =
            (0..self.items.len()).map(|at| (self.path(at), at)).collect();
        // Directories precede their entries.
        paths.sort_by_key(|(path, _)| path.names().map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>());
        for (path, at) in paths {
            let item = &self.items[at];
            origins.insert(path.clone(), item.origin.clone());
            edit.keep(item.node, edit.edited(&path, item.node))?;
        }
        let loaded = Loaded { tree: edit.finish()?, ..loaded };
        Ok((loaded, origins))
    }
}
