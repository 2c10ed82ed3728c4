//! Parts of erofs-utils: extents, images whose data stays elsewhere, digests, hints.

pub mod digests;
pub mod extents;
pub mod hints;
pub mod layers;
