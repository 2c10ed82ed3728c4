//! Programs that decode a whole image without a mount.

use std::path::{Path, PathBuf};

use super::Found;
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
pub type Unpacker = Found<Unpacks>;

/// What is decoded, and how a program is asked to.
pub struct Unpacks {
    /// See [`Unpacker::reads`].
    pub(super) reads: fn(&str) -> bool,
    /// See [`Unpacker::command`].
    pub(super) command: fn(&Program, &Unpack, &Path, u32) -> Option<Invocation>,
}

impl Unpacker {
    /// Whether it reads images of this format, as packfs names formats.
    pub fn reads(&self, format: &str) -> bool {
        (self.kind.reads)(format)
    }

    /// What to run, in `jobs` threads where it can be told; none if it does no such thing.
    pub fn command(&self, task: &Unpack, image: &Path, jobs: u32) -> Option<Invocation> {
        (self.kind.command)(&self.program, task, image, jobs)
    }
}
