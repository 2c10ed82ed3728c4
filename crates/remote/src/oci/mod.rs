//! OCI images: references, registries, layouts, and archives.
//!
//! An [`OciPlace`] names an image in a registry, in a folder with the OCI image layout, or in an
//! archive. [`OciImage::open`] resolves it to the manifest of one platform; each [`OciLayer`] opens
//! as an [`packfs_core::Image`], that of a registry by ranges. [`OciTarget`] takes blobs and
//! manifests.
//!
//! Sources: the OCI image and distribution specifications 1.1; erofs-image-spec (a draft).

mod auth;
mod blobs;
mod digest;
mod docker_archive;
mod docker_config;
mod erofs;
mod image;
mod layout;
mod manifest;
mod place;
mod platform;
mod push;
mod registry;
mod target;

pub use blobs::BlobFiles;
pub use digest::{Digest, Hashing, Verified};
pub use erofs::{EROFS, ErofsMedia};
pub use image::{OciImage, OciLayer};
pub use manifest::{Descriptor, LayerKind, Manifest};
pub use place::{ArchivePlace, OciPlace, Pin, RegistryPlace};
pub use platform::Platform;
pub(crate) use registry::RegistryOrigin;
pub use target::OciTarget;

/// Settings of OCI images.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OciOptions {
    /// Platform to choose from an index; `None`: Linux on the architecture of this machine.
    pub platform: Option<Platform>,
    /// Set to talk to registries without TLS; loopback addresses never have it.
    pub plain_http: bool,
}
