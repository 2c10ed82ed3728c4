//! Virtual disks: Android sparse images, VHD, VHDX, VMDK, and VDI. Each is a file with a map of one
//! disk, whose blocks are uncompressed, compressed, or not stored.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! A folder for each format contains everything specific to it; `volume` is common to all: a
//! container whose one file is the disk. Read only.
#![forbid(unsafe_code)]
// Every number is read from an image: casts are checked and access by index is avoided.
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::cast_possible_truncation, clippy::arithmetic_side_effects)
)]

mod guid;
mod runs;
mod sparse;
mod table;
#[cfg(test)]
mod tests;
mod vdi;
mod vhd;
mod vhdx;
mod vmdk;
mod volume;

pub use sparse::AndroidSparse;
pub use vdi::Vdi;
pub use vhd::Vhd;
pub use vhdx::Vhdx;
pub use vmdk::Vmdk;

use packfs_core::{Error, Result};
use packfs_format::PackFormat;

/// The only file of an image: the disk.
pub(crate) const DISK_NAME: &str = "disk.img";

/// Returns the error of packing; `command` is a tool that can.
fn not_written(name: &str, command: &str) -> Result<Box<dyn PackFormat>> {
    Err(Error::unsupported("format", format!("{name} is read, not written"))
        .hint(format!("{command} makes one of a raw disk")))
}

/// Returns the error of an unknown variant; `command` converts it to a raw disk.
fn unsupported(subject: &str, what: impl std::fmt::Display) -> Error {
    Error::unsupported(subject, what)
        .hint("qemu-img convert -O raw FILE disk.img makes a disk that packfs reads, if QEMU knows it")
}
