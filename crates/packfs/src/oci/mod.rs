//! OCI images: read, as sources, and pushed.

mod open;

pub use packfs_oci::{
    ImageConfig, LayerEncoding, OciReport, Pull, Push, list_images, place_of, pull, push, words,
};
pub use packfs_remote::oci::{Descriptor, Digest, ErofsMedia, Listed, OciOptions, OciPlace, Platform};
