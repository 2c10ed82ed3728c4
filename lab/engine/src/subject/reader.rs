//! Those who show an image as a tree.

use std::path::Path;

use packfs::Result;

use super::Found;
use super::readers::kernel;
use super::table::Mounting;
use super::template::{call, word};
use crate::process::Within;
use crate::scratch::Mounted;

/// Shows images as trees.
pub type Reader = Found<Mounts>;

/// A way to mount: a FUSE server, or the kernel's drivers.
pub struct Mounts(pub(super) Option<&'static Mounting>);

impl Reader {
    /// Returns true if it reads images of this format, as packfs names formats.
    pub fn reads(&self, format: &str) -> bool {
        self.kind.0.map_or_else(|| kernel::reads(format), |server| server.reads(format))
    }

    /// Mounts `image`, a file or a block device, on `at`, a directory that exists, and returns when
    /// it answers.
    ///
    /// The kernel mounts a file through a loop device, also where it could mount EROFS straight
    /// from the file: what is compared are formats, and each meets the same device below it.
    ///
    /// A server runs `within` a limit; the kernel does its work for whoever reads, or in threads
    /// that nothing limits.
    ///
    /// Errors: a format that it does not read, and those of whoever mounts.
    pub fn mount(&self, format: &str, image: &Path, at: &Path, within: &Within) -> Result<Mounted> {
        let Some(server) = self.kind.0 else { return kernel::mount(format, image, at) };
        let command = call(&self.program, &server.mount, &[word("image", image), word("at", at)]);
        Mounted::served(&within.of(&command), at)
    }
}
