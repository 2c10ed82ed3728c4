//! Programs that decode a whole image without a mount.

use std::path::{Path, PathBuf};

use crate::process::Invocation;
use crate::results::Program;

/// Where what an image holds goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpack {
    /// To standard output, as a tar.
    Tar,
    /// Into a directory, which does not exist yet.
    Dir(PathBuf),
}

/// Decodes whole images.
pub trait Unpacker: Sync + Send {
    /// As measurements call it.
    fn name(&self) -> &'static str;

    /// What was found.
    fn program(&self) -> &Program;

    /// Whether it reads images of this format, as packfs names formats.
    fn reads(&self, format: &str) -> bool;

    /// What to run, in `jobs` threads where it can be told; none if it does no such thing.
    fn command(&self, task: &Unpack, image: &Path, jobs: u32) -> Option<Invocation>;
}
