//! Parts of every format's check: the report of findings, the names met on a walk of all
//! directories, overlapping data, and unused space.

mod entry_path;
mod hierarchy;
mod overlaps;
mod report;
mod space;
mod tally;

pub use entry_path::EntryPath;
pub use hierarchy::Hierarchy;
pub use overlaps::DataPlaces;
pub use report::Report;
pub use space::{check_behind, check_unused};
pub use tally::Tally;
