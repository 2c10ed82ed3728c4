//! Parts that several tools share: the parser of command lines, help, progress, names of users,
//! times, patterns, changes of trees.

pub mod android;
pub mod block_list;
pub mod elf;
pub mod globs;
pub mod listing;
pub mod measured;
pub mod numbers;
pub mod parse;
pub mod selected;
pub mod sets;
pub mod teller;
pub mod trees;
pub mod usage;
pub mod users;
pub mod when;
