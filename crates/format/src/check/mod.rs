//! What every format's check needs: findings told one by one or counted, the names met on a walk of
//! all directories, and data that overlap.

mod entry_path;
mod hierarchy;
mod overlaps;
mod report;
mod tally;

pub use entry_path::EntryPath;
pub use hierarchy::Hierarchy;
pub use overlaps::DataPlaces;
pub use report::Report;
pub use tally::Tally;
