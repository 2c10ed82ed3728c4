//! Images read where they are: by HTTP, from S3, and from OCI registries ([`oci`]).
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! [`RemoteImage`] is an [`packfs_core::Image`] over ranges of an object on a server. Its first two
//! requests, sent together, bring the head and the tail of the object; later ones bring blocks of
//! 64 KiB that are read, announced by [`packfs_core::Image::will_read`], or next in a sequence.
//! Blocks are held in memory, and on disk in a [`Store`] that processes share.
//!
//! No byte is returned that is not of the version that was opened: each range is requested on the
//! condition that the object is unchanged, and each answer is compared with the request.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::cast_possible_truncation, clippy::arithmetic_side_effects)
)]

mod answer;
mod blocks;
mod credentials;
mod download;
mod environment;
mod failure;
mod fetch;
mod headers;
mod image;
mod netrc;
mod no_answer;
mod object;
pub mod oci;
mod opening;
mod options;
mod origin;
mod plan;
mod platform;
mod proxies;
mod retry;
mod s3;
mod s3_folder;
mod s3_signature;
mod store;
mod stores;
mod transport;
mod version;

pub use download::Download;
pub use environment::Environment;
pub use image::RemoteImage;
pub use options::{RemoteOptions, Retries, TimeLimits};
pub use s3_folder::S3Folder;
pub use store::{Store, Stored, Verified};
pub use stores::{folder_at, image_at, object_at, reader_at};
