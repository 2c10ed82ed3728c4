//! OCI images as sources and targets: layers as trees, EROFS layers with chunk indexes, images that
//! are pushed and pulled. References, registries, and layouts are in `packfs_remote::oci`.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
#![forbid(unsafe_code)]

#[macro_use(setters)]
extern crate packfs_core;

mod chunk_index;
mod chunks;
mod config;
mod encode;
mod images;
mod layers;
mod list;
mod pull;
mod push;

pub use chunks::open_layer;
pub use config::{ImageConfig, with_layers, words};
pub use encode::LayerEncoding;
pub use images::{image, images, is_readable, not_mountable, place_of};
pub use layers::{Loading, load, of_image, once, tree_of, verified_image};
pub use list::list_images;
pub use pull::{Pull, pull};
pub use push::{Layers, OciReport, Push, push};
