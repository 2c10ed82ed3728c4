//! Parts of squashfs-tools: options of both packers, sources, pseudo files, actions, and printed
//! superblocks.

pub mod action_tree;
pub mod actions;
pub mod expressions;
pub mod follow;
pub mod help;
pub mod modes;
pub mod moves;
pub mod options;
pub mod programs;
pub mod pseudo;
pub mod sources;
pub mod streamed;
pub mod superblock;
pub mod unpseudo;
