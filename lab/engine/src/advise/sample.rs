//! Parts of a tree that stand for the whole.
//!
//! The tree is laid out along its order as stretches of neighbouring small files, and pieces of
//! long ones: two strata. Of each, every so-many-th is taken, beginning at a seeded place, so that
//! all directories have their share; what lies side by side stays side by side, so order by
//! similarity and shared blocks find what they find in the whole. Pieces of a long file begin at
//! whole blocks of every size, and are files of their own in the sample.

use crate::workload::Random;
use packfs::source::{Loaded, Notes};
use packfs::{
    BuildId, ContentId, ContentReader, Contents, Error, Name, Node, NodeId, NodeKind, Result, Tree,
    TreeBuilder,
};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// Files as long as two of these are taken in pieces.
const PIECE_LEN: u64 = 2 << 20;
/// Small files beside each other that are taken together, in bytes.
const STRETCH_LEN: u64 = 1 << 20;
/// Weight of a node besides its bytes, so that a million empty files are many.
const NODE_WEIGHT: u64 = 512;

pub(crate) struct Sample {
    pub(crate) loaded: Arc<Loaded>,
    /// Length of its files, in bytes.
    pub(crate) bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Unit {
    /// Every node in the range but long files.
    Stretch(Range<u32>),
    /// A part of a long file.
    Piece { node: NodeId, number: u64 },
}

#[derive(Default)]
struct Strata {
    stretches: Vec<Unit>,
    stretch_weight: u64,
    pieces: Vec<Unit>,
    piece_weight: u64,
}

/// Returns the weight of a tree: bytes, and something for each node. A tree no heavier than a
/// budget needs no sample.
pub(crate) fn weight(tree: &Tree) -> u64 {
    tree.bytes_total().saturating_add(u64::from(tree.node_count()).saturating_mul(NODE_WEIGHT))
}

/// Takes about so many bytes of a tree, in `groups` samples that have nothing in common and stand
/// for the whole each.
///
/// Errors: those of building a tree, which do not come of a tree that was built.
pub(crate) fn take(loaded: &Arc<Loaded>, budget: u64, groups: usize, seed: u64) -> Result<Vec<Sample>> {
    let strata = strata(&loaded.tree);
    let mut taken = strata.taken(budget, groups, seed);
    taken.retain(|units| !units.is_empty());
    taken.iter().map(|units| build(loaded, units, &[])).collect()
}

/// About so many bytes of a tree as one sample, which has the files `kept` besides, whole and under
/// their own names.
///
/// Errors: as [`take`].
pub(crate) fn part(loaded: &Arc<Loaded>, budget: u64, kept: &[NodeId], seed: u64) -> Result<Sample> {
    let strata = strata(&loaded.tree);
    let units: Vec<&Unit> = strata.taken(budget, 1, seed).into_iter().flatten().collect();
    build(loaded, &units, kept)
}

impl Strata {
    /// Units of about so many bytes in so many groups, some of which may be empty; stretches before
    /// pieces.
    fn taken(&self, budget: u64, groups: usize, seed: u64) -> Vec<Vec<&Unit>> {
        let mut random = Random(seed);
        let mut taken: Vec<Vec<&Unit>> = vec![Vec::new(); groups.max(1)];
        let all = (self.stretch_weight + self.piece_weight).max(1);
        for (units, weight) in [(&self.stretches, self.stretch_weight), (&self.pieces, self.piece_weight)] {
            let start = random.fraction();
            if units.is_empty() {
                continue;
            }
            let wanted = units.len() as f64 * budget as f64 / all as f64;
            // Of whatever there is, every group has something, as far as it lasts.
            let wanted = (wanted.round() as usize).max(groups).min(units.len());
            let share = weight as f64 / all as f64;
            let wanted = if share < 0.01 { wanted.min(groups) } else { wanted };
            for index in 0..wanted {
                let at = ((index as f64 + start) * units.len() as f64 / wanted as f64) as usize;
                taken[index % groups].push(&units[at.min(units.len() - 1)]);
            }
        }
        taken
    }
}

fn strata(tree: &Tree) -> Strata {
    let mut strata = Strata::default();
    let (mut start, mut weight) = (0, 0);
    for (id, node) in tree.nodes() {
        match node.kind {
            NodeKind::File { len, .. } if len >= 2 * PIECE_LEN => {
                let pieces = len.div_ceil(PIECE_LEN);
                strata.pieces.extend((0..pieces).map(|number| Unit::Piece { node: id, number }));
                strata.piece_weight = strata.piece_weight.saturating_add(len);
            }
            NodeKind::File { len, .. } => weight += len + NODE_WEIGHT,
            _ => weight += NODE_WEIGHT,
        }
        if weight >= STRETCH_LEN {
            strata.stretches.push(Unit::Stretch(start..id.0 + 1));
            strata.stretch_weight += weight;
            (start, weight) = (id.0 + 1, 0);
        }
    }
    if start < tree.node_count() {
        strata.stretches.push(Unit::Stretch(start..tree.node_count()));
        strata.stretch_weight += weight;
    }
    strata
}

fn build(loaded: &Arc<Loaded>, units: &[&Unit], kept: &[NodeId]) -> Result<Sample> {
    let tree = &loaded.tree;
    let mut building = Building {
        tree,
        builder: TreeBuilder::new(tree.node(NodeId::ROOT).meta),
        dirs: HashMap::from([(NodeId::ROOT, BuildId::ROOT)]),
        parts: Vec::new(),
        kept: kept.iter().copied().collect(),
    };
    for &id in kept {
        building.add_whole(id)?;
    }
    for unit in units {
        match unit {
            Unit::Stretch(range) => {
                for id in range.clone().map(NodeId) {
                    building.add(id)?;
                }
            }
            Unit::Piece { node, number } => building.add_piece(*node, *number)?,
        }
    }
    let Building { builder, parts, .. } = building;
    let contents: Arc<dyn Contents> = Arc::new(Parts { of: Arc::clone(&loaded.contents), parts });
    let tree = builder.finish()?;
    let bytes = tree.bytes_total();
    Ok(Sample { loaded: Arc::new(Loaded { tree, contents, notes: Notes::default() }), bytes })
}

struct Building<'a> {
    tree: &'a Tree,
    builder: TreeBuilder,
    dirs: HashMap<NodeId, BuildId>,
    parts: Vec<Part>,
    /// Files that are there as a whole before anything else is added.
    kept: HashSet<NodeId>,
}

impl Building<'_> {
    fn add(&mut self, id: NodeId) -> Result<()> {
        match self.tree.node(id).kind {
            NodeKind::File { len, .. } if len >= 2 * PIECE_LEN => Ok(()),
            _ if self.kept.contains(&id) => Ok(()),
            _ => self.add_whole(id),
        }
    }

    fn add_whole(&mut self, id: NodeId) -> Result<()> {
        let node = self.tree.node(id);
        match node.kind {
            NodeKind::Directory => self.dir(id).map(|_| ()),
            NodeKind::File { len, content } => {
                let kind = self.part(content, 0..len);
                self.put(node, self.tree.first_name(id), kind)
            }
            _ => self.put(node, self.tree.first_name(id), node.kind.clone()),
        }
    }

    fn add_piece(&mut self, id: NodeId, number: u64) -> Result<()> {
        let node = self.tree.node(id);
        let NodeKind::File { len, content } = node.kind else { return Ok(()) };
        if self.kept.contains(&id) {
            return Ok(());
        }
        let start = number * PIECE_LEN;
        let kind = self.part(content, start..(start + PIECE_LEN).min(len));
        let name = self.name_of_piece(id, number)?;
        self.put(node, &name, kind)
    }

    /// A name for a piece that nothing in the tree has, whether it was taken or not: what is added
    /// replaces its namesake.
    fn name_of_piece(&mut self, id: NodeId, number: u64) -> Result<Vec<u8>> {
        let dir = self.tree.node(id).parent();
        let parent = self.dir(dir)?;
        let mut dots = String::from(".");
        loop {
            let suffix = format!("{dots}{number}");
            let mut name = self.tree.first_name(id).to_vec();
            // Names have an end; which one it was does not matter.
            name.truncate(255_usize.saturating_sub(suffix.len()));
            name.extend_from_slice(suffix.as_bytes());
            if self.tree.lookup(dir, &name).is_none() && !self.builder.has_child(parent, &name) {
                return Ok(name);
            }
            dots.push('.');
        }
    }

    fn part(&mut self, content: ContentId, range: Range<u64>) -> NodeKind {
        let len = range.end - range.start;
        self.parts.push(Part { content, range });
        NodeKind::File { len, content: ContentId(self.parts.len() as u64 - 1) }
    }

    fn put(&mut self, node: &Node, name: &[u8], kind: NodeKind) -> Result<()> {
        let parent = self.dir(node.parent())?;
        let name = Name::new(name).map_err(Error::failed)?;
        self.builder.add_child(parent, name, kind, node.meta, self.tree.xattrs(node.xattrs).clone());
        Ok(())
    }

    /// The directory in the sample, made with all above it if need be.
    fn dir(&mut self, id: NodeId) -> Result<BuildId> {
        let mut missing = Vec::new();
        let mut at = id;
        let mut parent = loop {
            if let Some(&found) = self.dirs.get(&at) {
                break found;
            }
            missing.push(at);
            at = self.tree.node(at).parent();
        };
        for dir in missing.into_iter().rev() {
            let node = self.tree.node(dir);
            let name = Name::new(self.tree.first_name(dir)).map_err(Error::failed)?;
            let xattrs = self.tree.xattrs(node.xattrs).clone();
            parent = self.builder.add_child(parent, name, NodeKind::Directory, node.meta, xattrs);
            self.dirs.insert(dir, parent);
        }
        Ok(parent)
    }
}

struct Part {
    content: ContentId,
    range: Range<u64>,
}

/// Contents that are ranges of others; named by their index.
struct Parts {
    of: Arc<dyn Contents>,
    parts: Vec<Part>,
}

impl Contents for Parts {
    fn open(&self, id: ContentId) -> Result<Box<dyn ContentReader + '_>> {
        let part = usize::try_from(id.0).ok().and_then(|index| self.parts.get(index));
        let part = part.ok_or_else(|| Error::failed(format!("no contents with id {}", id.0)))?;
        Ok(Box::new(PartReader { of: self.of.open(part.content)?, range: part.range.clone() }))
    }
}

struct PartReader<'a> {
    of: Box<dyn ContentReader + 'a>,
    range: Range<u64>,
}

impl ContentReader for PartReader<'_> {
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.of.read_exact_at(self.range.start.saturating_add(offset), buf)
    }

    fn next_data(&mut self, offset: u64) -> Result<Option<Range<u64>>> {
        let Range { start, end } = self.range;
        let found = self.of.next_data(start.saturating_add(offset))?;
        let within = found.map(|run| run.start.saturating_sub(start)..run.end.min(end).saturating_sub(start));
        Ok(within.filter(|run| run.start < run.end))
    }

    fn check_unchanged(&mut self) -> Result<()> {
        self.of.check_unchanged()
    }
}
