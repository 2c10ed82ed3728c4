//! OCI images: read, as sources, pushed, and converted.

mod chunk_index;
mod chunks;
mod config;
mod convert;
mod encode;
mod layers;
mod list;
mod merged;
mod open;
mod pull;
mod push;

pub use config::{ImageConfig, words};
pub use convert::{Convert, convert};
pub use encode::LayerEncoding;
pub(crate) use layers::load;
pub use list::list_images;
pub use open::place_of;
pub use packfs_remote::oci::{Descriptor, Digest, ErofsMedia, Listed, OciOptions, OciPlace, Platform};
pub use pull::{Pull, pull};
pub use push::{OciReport, Push, push};
