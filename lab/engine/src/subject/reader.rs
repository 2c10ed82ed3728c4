//! Those who show an image as a tree.

use std::path::Path;

use packfs::Result;

use super::Found;
use super::found::is_read;
use super::readers::kernel;
use super::template::{call, word};
use crate::process::Within;
use crate::scratch::Mounted;

/// Shows images as trees.
pub type Reader = Found<Mounts>;

/// Ways to mount.
pub enum Mounts {
    /// The kernel's drivers.
    Kernel,
    /// A FUSE server of one format, or of all formats of packfs; and its arguments, a template of `{image}` and `{at}`.
    Server(Option<&'static str>, &'static str),
}

impl Reader {
    /// Returns true if it reads images of this format, as packfs names formats.
    pub fn reads(&self, format: &str) -> bool {
        match self.kind {
            Mounts::Kernel => kernel::reads(format),
            Mounts::Server(own, _) => is_read(own, format),
        }
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
        match self.kind {
            Mounts::Kernel => kernel::mount(format, image, at),
            Mounts::Server(_, arguments) => {
                let command = call(&self.program, arguments, &[word("image", image), word("at", at)]);
                Mounted::served(&within.of(&command), at)
            }
        }
    }
}
