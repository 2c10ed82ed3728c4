//! Basic types of packfs, and bytes at an offset.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! [`Tree`] (a whole file hierarchy in memory) and its metadata, [`ImagePath`], [`Error`],
//! [`Limits`], [`Progress`], and [`Image`] with its implementations. No format, no codec, no
//! thread, no unsafe code.
//!
//! ```
//! use packfs_core::{Held, ImagePath, Meta, NodeKind, TreeBuilder, Xattrs};
//!
//! let (mut contents, mut tree) = (Held::default(), TreeBuilder::new(Meta::default()));
//! let path = ImagePath::parse(b"etc/hostname")?;
//! let kind = NodeKind::File { len: 8, content: contents.push(*b"example\n") };
//! tree.add(&path, kind, Meta { mode: 0o644, ..Meta::default() }, Xattrs::new())?;
//! let tree = tree.finish()?;
//! assert_eq!(tree.find(&path).map(|file| tree.node(file).meta.mode), Some(0o644));
//! # Ok::<(), packfs_core::Error>(())
//! ```
#![forbid(unsafe_code)]

mod civil;
mod content;
mod content_hash;
mod copy;
mod error;
mod escape;
mod glob;
mod goal;
mod hex;
#[cfg_attr(not(test), deny(clippy::arithmetic_side_effects, reason = "offsets come from images"))]
mod image;
#[cfg(feature = "serde")]
pub mod json;
#[cfg_attr(not(test), deny(clippy::arithmetic_side_effects, reason = "counts come from images"))]
mod limits;
mod loss;
mod meta;
pub mod new_file;
mod order;
pub mod overlay;
mod path;
mod place;
mod processors;
mod progress;
mod range;
mod setters;
mod similar;
mod size;
mod store;
mod tree;
mod tree_builder;
mod tree_edit;
mod words;

pub use civil::Civil;
pub use content::{ContentId, ContentReader, Contents, Held};
pub use content_hash::{ContentDigest, ContentHash, ContentHasher};
pub use copy::copy_exactly;
pub use error::{Error, ErrorKind, Result, ResultExt};
pub use escape::{acts_on_terminals, escaped, last_line, one_line, printable};
pub use glob::{Dialect, Glob};
pub use goal::Goal;
pub use hex::{from_hex, hex_byte, to_hex, uuid_text};
pub use image::{
    BeginningImage, Fetched, FileImage, Image, ImageReader, JoinedImage, MemoryImage, OverlayImage,
    ReaderImage, SliceImage,
};
pub use limits::{LIMITS, Limit, LimitRow, Limits, Meter};
pub use loss::{Loss, Losses};
pub use meta::{DeviceNumber, FileType, Implied, Meta, Owner, Timestamp, Xattrs};
pub use order::Order;
pub use path::{ImagePath, IntoImagePath, Name};
pub use place::{Place, PlaceKind, is_reference, schemes, shown_place, url_scheme, without_secrets};
pub use processors::{in_parallel, processor_count, thread_count};
pub use progress::{Progress, Silent, Stage, WithoutWarnings};
pub use range::{blocks_of, len_of, parts_of, range_at, round_down, u32_of, usize_of};
pub use similar::MostSimilar;
pub use size::parse_size;
pub use store::{Copied, Store};
pub use tree::{Entry, Node, NodeId, NodeKind, Tree, Walk, XattrsId};
pub use tree_builder::{BuildId, TreeBuilder};
pub use tree_edit::{Edited, TreeEdit};
pub use words::{Words, value_of};

// For the crates of packfs: no signature that users see has it.
#[doc(hidden)]
pub use rustix::io::Errno;
