//! Shares parts of clusters between files: data that occurred in an earlier file, from the start of
//! a stored cluster on.
//!
//! First, all files are hashed ([`Regions`]). Before a piece is handed to a worker, the clusters in
//! the regions that it shares are looked up ([`mod@candidates`]). All pieces they belong to are
//! placed by then, so the result does not depend on the speed of threads. The worker compares bytes
//! and cuts the data between shared clusters ([`Matcher`]).

mod candidates;
mod cdc;
mod matcher;
mod regions;

pub(super) use candidates::{Candidate, Origin, candidates};
pub(super) use matcher::Matcher;
pub(super) use regions::{Position, Region, Regions};
