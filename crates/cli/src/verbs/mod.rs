//! One room a verb: its options (`Opts`), and its run.

pub mod cache;
pub mod cat;
pub mod check;
pub mod completions;
pub mod diff;
pub mod digest;
pub mod info;
pub mod lab;
pub mod ls;
pub mod man;
pub mod merge;
pub mod mount;
pub mod pack;
pub mod pack_shard;
pub mod plan;
pub mod protect;
pub mod repack;
pub mod repair;
pub mod serve;
pub mod sign;
pub mod stat;
pub mod tar;
pub mod umount;
pub mod unpack;
pub mod verify;
pub mod verity;
