//! How a document is to be reproduced.

use super::SeedRow;
use crate::results::{CpuLimit, Recipe, Settings};
use crate::session::{Cell, Plan, PlannedTree};
use crate::workload::Workload;

/// Where the trees of a document are, and how much of it is measured.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Minutes, not hours: fewer cells, fewer runs, smaller trees.
    pub quick: bool,
    /// Bytes that trees are cut down to, if neither those of `quick` nor the document's will do.
    pub part: Option<u64>,
    /// Trees in the order of the document's own.
    pub roles: Roles,
    /// Devices instead of the document's own; empty for these.
    pub devices: Vec<String>,
    /// Measured runs of each cell; none for 1, or the document's.
    pub runs: Option<u32>,
    /// Most threads of a maker.
    pub jobs: u32,
    /// Where random choices begin.
    pub seed: u64,
    /// Whether file systems that are written are measured on LUKS, too.
    pub luks: bool,
    /// What programs have of the processors; none for all.
    pub cpu_limit: Option<CpuLimit>,
    /// The command line, for the record.
    pub command: String,
}

/// Trees by what they stand for.
#[derive(Clone, Debug, Default)]
pub struct Roles(pub Vec<PlannedTree>);

impl Roles {
    /// The `id` of the tree that stands for the document's tree of this number; of the first where there are fewer.
    pub fn id(&self, number: usize) -> &str {
        self.0.get(number).or(self.0.first()).map_or("", |tree| &tree.facts.id)
    }
}

impl Asked {
    /// Bytes that trees are cut down to; none for all of them.
    pub(super) fn tree_bytes(&self, row: &SeedRow) -> Option<u64> {
        self.part.or(if self.quick { Some(row.quick_bytes) } else { row.bytes })
    }

    /// A plan without a cell.
    pub(super) fn empty_plan(&self, row: &SeedRow) -> Plan {
        let runs = self.runs.unwrap_or(if self.quick { 1 } else { row.runs });
        let settings = Settings {
            command: self.command.clone(),
            quick: self.quick,
            runs,
            seed: self.seed,
            cpu_limit: self.cpu_limit.clone(),
            jobs: Some(self.jobs),
        };
        let mut plan = Plan { title: row.name.into(), settings, ..Plan::default() };
        for tree in &self.roles.0 {
            if plan.tree(&tree.facts.id).is_none() {
                plan.trees.push(tree.clone());
            }
        }
        plan
    }

    /// The devices, or the document's.
    pub(super) fn devices<'a>(&'a self, own: &[&'a str]) -> Vec<&'a str> {
        if self.devices.is_empty() { own.to_vec() } else { self.devices.iter().map(String::as_str).collect() }
    }
}

/// What every image of a document has: a maker, a format, a codec.
pub(super) fn recipe(maker: &str, format: &str, codec: &str) -> Recipe {
    let (codec, level) =
        codec.split_once(':').map_or((codec, None), |(codec, level)| (codec, level.parse().ok()));
    Recipe { maker: maker.into(), format: format.into(), codec: codec.into(), level, ..Recipe::default() }
}

/// Parts of a recipe that not all have.
pub(super) trait RecipeParts: Sized {
    /// With a block.
    fn block(self, len: u32) -> Self;
    /// With words of the maker's own.
    fn words(self, words: &[&str]) -> Self;
}

impl RecipeParts for Recipe {
    fn block(self, len: u32) -> Self {
        Self { block_len: Some(len), ..self }
    }

    fn words(mut self, words: &[&str]) -> Self {
        self.options.extend(words.iter().map(|&word| word.to_owned()));
        self
    }
}

/// A cell without threads.
pub(super) fn cell(
    tree: &str,
    recipe: &Recipe,
    reader: Option<&str>,
    workload: Workload,
    device: &str,
) -> Cell {
    Cell {
        tree: tree.into(),
        recipe: recipe.clone(),
        reader: reader.map(str::to_owned),
        workload,
        device: device.into(),
        jobs: None,
    }
}
