//! composefs images: made of any source or a dump, listed as a dump; their objects.

mod deposit;
mod listing;
mod making;

pub use listing::{ObjectUse, dump, dump_where, missing, objects};
pub use making::{ComposefsOptions, ComposefsReport, Made, ObjectCounts, make, make_of, make_of_dump};
pub use packfs_formats::composefs::{Escape, Versions, escape};
