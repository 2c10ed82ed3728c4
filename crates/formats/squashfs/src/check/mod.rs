//! Checks of images of all generations: the tree of directories and inodes, the tables that they
//! use, the unused space.
//!
//! Owns the walk and the findings that do not depend on a generation; each generation adds its own
//! by [`TreeRules`]. File data is not decoded. Invariant: ends for every image, in time and memory
//! bounded by what the image really holds.

mod order;
mod rules;
mod tables;
mod tree;

pub(crate) use rules::TreeRules;
pub(crate) use tables::{check_ids, check_tables};
pub(crate) use tree::check_tree;
