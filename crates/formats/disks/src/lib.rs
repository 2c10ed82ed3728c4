//! Virtual disks: Android sparse images, VHD, VHDX, VMDK, and VDI. Each is a file with a map of one
//! disk, whose blocks it holds as they are, compressed, or not at all.
//!
//! A folder for each format has all that knows how it is built; `volume` has what is the same for
//! all: a container whose one file is the disk. Read only.
#![forbid(unsafe_code)]
// Every figure is read from an image: none is cut, and no place is taken for granted.
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

/// The name of the one file in an image: the disk.
pub(crate) const DISK_NAME: &str = "disk.img";

/// Refuses to make an image; `command` makes one.
fn not_written(name: &str, command: &str) -> Result<Box<dyn PackFormat>> {
    Err(Error::unsupported("format", format!("{name} is read, not written"))
        .hint(format!("{command} makes one of a raw disk")))
}

/// Refuses an image of this format whose meaning is not known; `command` makes a raw disk of it.
fn unsupported(subject: &str, what: impl std::fmt::Display) -> Error {
    Error::unsupported(subject, what)
        .hint("qemu-img convert -O raw FILE disk.img makes a disk that packfs reads, if QEMU knows it")
}
