//! Attributes of a source that a format cannot represent, reported before anything is written.

use crate::{ImagePath, NodeId, Tree};

/// Most further examples of nodes to be excluded.
const MORE_MAX: usize = 20;

/// Attribute that the format cannot represent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Loss {
    /// The attribute, and its substitute.
    pub what: String,
    /// Number of files concerned.
    pub count: u64,
    /// One of them.
    #[cfg_attr(feature = "serde", serde(flatten, serialize_with = "serialize_example"))]
    #[cfg_attr(feature = "schema", schemars(with = "crate::json::Bytes<'_, Example>"))]
    pub example: ImagePath,
    /// True if packing must stop unless the user accepts the loss; else it is only mentioned.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub refused: bool,
    /// True if packing must stop even then, because the nodes cannot be stored at all.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub fatal: bool,
    /// Further examples of a fatal loss, because each has to be excluded by name.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub more: Vec<ImagePath>,
}

#[cfg(feature = "serde")]
crate::byte_key!(Example, "example", "Path of one of them.");

#[cfg(feature = "serde")]
fn serialize_example<S: serde::Serializer>(example: &ImagePath, serializer: S) -> Result<S::Ok, S::Error> {
    serde::Serialize::serialize(&crate::json::Bytes::<Example>::new(example.as_bytes()), serializer)
}

/// Losses of one tree, collected by kind.
pub struct Losses<'t> {
    tree: &'t Tree,
    found: Vec<Loss>,
}

impl<'t> Losses<'t> {
    /// Creates an empty collection.
    pub fn new(tree: &'t Tree) -> Self {
        Losses { tree, found: Vec::new() }
    }

    /// Adds a loss that is reported and never refused.
    pub fn tolerable(&mut self, what: &str, concerns: impl Fn(NodeId) -> bool) {
        self.of_nodes(what, (false, false), concerns);
    }

    /// Adds a loss that is refused unless accepted.
    pub fn refused(&mut self, what: &str, concerns: impl Fn(NodeId) -> bool) {
        self.of_nodes(what, (true, false), concerns);
    }

    /// Adds a loss that is always refused.
    pub fn fatal(&mut self, what: &str, concerns: impl Fn(NodeId) -> bool) {
        self.of_nodes(what, (true, true), concerns);
    }

    /// Adds fatal losses of names, not nodes, because a node may have several.
    pub fn fatal_names(&mut self, what: &str, concerns: impl Fn(&[u8]) -> bool) {
        let mut walk = self.tree.walk();
        let (mut paths, mut count) = (Vec::new(), 0);
        while let Some((path, _)) = walk.next() {
            if path.file_name().is_some_and(|name| concerns(name.as_bytes())) {
                count += 1;
                if paths.len() <= MORE_MAX {
                    paths.push(path.clone());
                }
            }
        }
        self.add(what, (true, true), count, paths);
    }

    /// Returns all losses in the order added.
    pub fn finish(self) -> Vec<Loss> {
        self.found
    }

    fn of_nodes(&mut self, what: &str, weight: (bool, bool), concerns: impl Fn(NodeId) -> bool) {
        let shown = if weight.1 { MORE_MAX + 1 } else { 1 };
        let (mut paths, mut count) = (Vec::new(), 0);
        for (id, _) in self.tree.nodes().filter(|(id, _)| concerns(*id)) {
            count += 1;
            if paths.len() < shown {
                paths.push(self.tree.path(id));
            }
        }
        self.add(what, weight, count, paths);
    }

    fn add(&mut self, what: &str, (refused, fatal): (bool, bool), count: u64, paths: Vec<ImagePath>) {
        let mut paths = paths.into_iter();
        if let Some(example) = paths.next() {
            let more = paths.collect();
            self.found.push(Loss { what: what.into(), count, example, refused, fatal, more });
        }
    }
}
