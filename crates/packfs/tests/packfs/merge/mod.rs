//! Images that were packed apart and merged are the image that was packed in one piece.

mod changing;
mod devices;
mod erofs;
mod far;
mod far_shards;
mod hostile;
mod kernels;
mod limits;
mod many;
mod planned;
mod rivals;
mod rules;
mod shards;
mod squashfs;
