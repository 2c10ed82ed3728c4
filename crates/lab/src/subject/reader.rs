//! Those who show an image as a tree.

use std::path::Path;

use packfs::Result;

use crate::process::Within;
use crate::results::Program;
use crate::scratch::Mounted;

/// Shows images as trees.
pub trait Reader: Sync + Send {
    /// As measurements call it: `kernel`, `packfs-fuse`, `squashfuse_ll`.
    fn name(&self) -> &'static str;

    /// What was found; of the kernel its version.
    fn program(&self) -> &Program;

    /// Whether it reads images of this format, as packfs names formats.
    fn reads(&self, format: &str) -> bool;

    /// Mounts `image`, a file or a block device, on `at`, a directory that exists, and returns when it answers.
    ///
    /// The kernel mounts a file through a loop device, also where it could mount EROFS straight from the file: what is
    /// compared are formats, and each meets the same device below it.
    ///
    /// A server runs `within` a limit; the kernel does its work for whoever reads, or in threads that nothing limits.
    fn mount(&self, format: &str, image: &Path, at: &Path, within: &Within) -> Result<Mounted>;
}
