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
mod copy;
mod digest;
mod docker_archive;
mod docker_config;
mod erofs;
mod image;
mod layout;
mod list;
mod manifest;
mod place;
mod push;
mod registry;
mod target;

pub use crate::platform::{EROFS, OciOptions, Platform};
pub use blobs::{BlobFiles, archive_files, folder_files};
pub use copy::{Copied, saved_list};
pub use digest::{Digest, Hashing, Verified};
pub use erofs::{ErofsMedia, ErofsParts};
pub use image::{ChunkIndexBytes, OciImage, OciImages, OciLayer, inner};
pub use list::{Listed, list_files, list_registry};
pub use manifest::{Descriptor, Index, LayerKind, Manifest, REF_NAME};
pub use place::{ArchivePlace, OciPlace, Pin, RegistryPlace};
pub use target::{OciTarget, Unnamed};
