//! What every format's check needs: findings told one by one or counted, the names met on a walk of all directories, and data that
//! overlap.

mod hierarchy;
mod overlaps;
mod report;
mod tally;

pub use hierarchy::Hierarchy;
pub use overlaps::note_overlaps;
pub use report::Report;
pub use tally::Tally;
