//! Parts of squashfs-tools-ng: the files that it reads, and its compressed output.

pub mod glob;
pub mod list;
pub mod sort;
pub mod streams;
pub mod words;
