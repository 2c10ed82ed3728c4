//! Images that were packed apart and merged are the image that was packed in one piece.

#[path = "../common/mod.rs"]
mod common;
mod devices;
mod erofs;
mod hostile;
mod kernels;
mod limits;
mod rivals;
mod rules;
mod shards;
mod squashfs;
