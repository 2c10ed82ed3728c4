//! Those who show an image as a tree.

use std::path::Path;

use packfs::Result;

use super::Found;
use crate::process::Within;
use crate::results::Program;
use crate::scratch::Mounted;

/// Shows images as trees.
pub type Reader = Found<Mounts>;

/// What is mounted, and how.
pub struct Mounts {
    /// See [`Reader::reads`].
    pub(super) reads: fn(&str) -> bool,
    /// See [`Reader::mount`].
    pub(super) mount: fn(&Program, &str, &Path, &Path, &Within) -> Result<Mounted>,
}

impl Reader {
    /// Whether it reads images of this format, as packfs names formats.
    pub fn reads(&self, format: &str) -> bool {
        (self.kind.reads)(format)
    }

    /// Mounts `image`, a file or a block device, on `at`, a directory that exists, and returns when it answers.
    ///
    /// The kernel mounts a file through a loop device, also where it could mount EROFS straight from the file: what is
    /// compared are formats, and each meets the same device below it.
    ///
    /// A server runs `within` a limit; the kernel does its work for whoever reads, or in threads that nothing limits.
    ///
    /// Errors: a format that it does not read, and those of whoever mounts.
    pub fn mount(&self, format: &str, image: &Path, at: &Path, within: &Within) -> Result<Mounted> {
        (self.kind.mount)(&self.program, format, image, at, within)
    }
}
