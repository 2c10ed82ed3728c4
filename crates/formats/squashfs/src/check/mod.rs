//! Checks of images of all versions: the tree of directories and inodes, the tables that they use,
//! and unused space.
//!
//! Owns the walk and the findings common to all versions; each version adds its own by
//! [`TreeRules`]. File data is not decoded. Invariant: ends for every image, in time and memory
//! bounded by the contents of the image.

mod order;
mod rules;
mod tables;
mod tree;

pub(crate) use rules::TreeRules;
pub(crate) use tables::{check_ids, check_tables};
pub(crate) use tree::check_tree;
