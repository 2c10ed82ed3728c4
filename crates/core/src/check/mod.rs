//! What every format's check needs: findings told one by one or counted, and the names met on a walk of all directories.

mod hierarchy;
mod report;
mod tally;

pub use hierarchy::Hierarchy;
pub use report::Report;
pub use tally::Tally;
