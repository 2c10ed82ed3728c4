//! OCI images: read, as sources, pushed, and converted.

mod chunks;
mod convert;
mod layers;
mod merged;
mod open;
mod push;

pub use convert::{Convert, convert};
pub(crate) use layers::load;
pub use packfs_remote::oci::{Descriptor, Digest, ErofsMedia, OciOptions, OciPlace, Platform};
pub use push::{OciReport, Push, push};
