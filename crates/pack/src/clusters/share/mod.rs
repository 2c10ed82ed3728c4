//! Shares parts of clusters between files: what a file has in common with an earlier one, from
//! where a stored cluster of that one starts.
//!
//! First all files are hashed ([`Regions`]). Then, before a piece of a file is handed to a worker,
//! the clusters that lie in the regions it shares are looked up ([`mod@candidates`]): by then all
//! pieces they belong to are placed, so what is found does not depend on which thread was faster.
//! The worker compares bytes and cuts what lies between ([`Matcher`]).

mod candidates;
mod cdc;
mod matcher;
mod regions;

pub(super) use candidates::{Candidate, Origin, candidates};
pub(super) use matcher::Matcher;
pub(super) use regions::{Region, Regions, Spot};
