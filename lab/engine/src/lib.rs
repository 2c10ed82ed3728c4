//! The lab: which filesystem image suits a tree on a device, found out by measuring.
//!
//! One direction: a plan names cells (a subject, a way to read it, a workload, a device), a session
//! runs them in turn and keeps each run as it comes, [`results`] is what a session leaves, and
//! everything that is shown is made from results alone, so a report can be made again from the
//! file, and two machines can be compared.
//!
//! Owns the programs that are measured, one file each, and what is done to them. It never guesses:
//! what could not be measured is named, with the reason, in [`results::Missing`].
#![forbid(unsafe_code)]

pub mod advise;
pub mod limits;
mod lookup;
pub mod machine;
pub mod plans;
pub mod process;
pub mod programs;
pub mod report;
pub mod results;
pub mod scratch;
pub mod seed;
pub mod session;
pub mod subject;
pub mod trees;
mod undo;
mod words;
pub mod workload;

pub use words::one_line;
