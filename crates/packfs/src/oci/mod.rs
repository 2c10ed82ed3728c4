//! OCI images: read, as sources, and pushed.
//!
//! A place is a registry, a folder with an image layout, or an archive. [`crate::open()`] opens
//! images of EROFS layers, [`crate::pack()`] packs any.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("root.erofs");
//! # packfs::pack_files([("etc/hostname", "example\n")], &path)?.run()?;
//! use packfs::oci::{OciPlace, push};
//!
//! let layout = format!("oci-layout:{}:v1", dir.path().join("layout").display());
//! push([&path], OciPlace::parse(&layout)?).run(&packfs::Silent)?;
//! assert_eq!(packfs::open(&layout)?.read("etc/hostname")?, b"example\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod open;

pub use packfs_oci::{
    ImageConfig, LayerEncoding, OciReport, Pull, Push, list_images, place_of, pull, push, words,
};
pub use packfs_remote::oci::{
    ArchivePlace, Descriptor, Digest, ErofsMedia, Listed, OciOptions, OciPlace, Pin, Platform, RegistryPlace,
};
