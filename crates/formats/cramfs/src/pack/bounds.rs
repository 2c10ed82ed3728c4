//! Limits of an image: metadata and length.

use packfs_core::Error;
use packfs_format::{Capabilities, Links, NO_XATTRS, Times};

/// Inodes have 16 bits for the user, 8 for the group, and no time.
pub(super) const CAPABILITIES: Capabilities = Capabilities {
    times: Times::Epoch,
    owner_bits: (16, 8),
    device_bits: (8, 8),
    links: Links::Split,
    xattr_losses: NO_XATTRS,
    data_identifies_files: true,
    ..Capabilities::ALL
};

pub(super) fn too_large() -> Error {
    Error::failed("the image would be too large: everything in a cramfs image has to start below 256 MiB")
}
