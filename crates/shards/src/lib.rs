//! Shards of a directory that is too large for one process: a plan cuts it into lists of entries,
//! workers anywhere pack a list each, and a merge takes what a store has of all.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! `listing` reads lists that users made, `sort` brings entries into the order of a tree, `cut`
//! writes a list for each shard, and `plan` describes them. `store` holds packed shards, and
//! `sidecar` the proof that one is complete. Packing and merging are the caller's: no format is
//! known here. Plans, lists, and sidecars are untrusted input.
#![forbid(unsafe_code)]

mod cut;
mod cuts;
mod digest;
mod dir_store;
mod emit;
mod entry;
mod json;
mod links;
mod list;
mod listing;
mod plan;
mod planner;
mod recipe;
mod sidecar;
mod sort;

pub use cuts::{Cut, Shards};
pub use digest::{Ends, digest_of, ends_of};
pub use dir_store::DirStore;
pub use emit::Engine;
pub use list::{Listed, read_list};
pub use listing::ListFormat;
pub use plan::{Plan, PlannedShard, Totals};
pub use planner::{PlanSource, Planning, plan};
pub use recipe::Recipe;
pub use sidecar::Sidecar;

/// Version of packfs, which plans and sidecars name: another one may write other bytes.
pub const TOOL_VERSION: &str = env!("CARGO_PKG_VERSION");
