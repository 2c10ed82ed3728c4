//! Programs that make images.

use std::path::{Path, PathBuf};

use super::Found;
use crate::process::Invocation;
use crate::results::{Missing, Program, Recipe};

/// What an image is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A directory.
    Dir(PathBuf),
    /// A tar archive that is not compressed; given as standard input where the program takes one there.
    Tar(PathBuf),
}

/// A program that makes images.
pub type Maker = Found<Makes>;

/// How a program is asked to make an image.
pub struct Makes {
    /// See [`Maker::command`].
    pub(super) command: fn(&Program, &Recipe, &Input, &Path, u32) -> Result<Invocation, Missing>,
    /// See [`Maker::needs_tar`].
    pub(super) needs_tar: bool,
}

impl Maker {
    /// Whether it makes images of tars only, never of directories.
    pub fn needs_tar(&self) -> bool {
        self.kind.needs_tar
    }

    /// What to run to make `image`, which may exist and is replaced, in `jobs` threads; or why it cannot make this.
    ///
    /// It does what rivals do: nothing is read back for verification, nothing is waited for to be on the disk, nothing is
    /// told about progress. What the recipe leaves open is the program's own default, and its options come last.
    pub fn command(
        &self,
        recipe: &Recipe,
        input: &Input,
        image: &Path,
        jobs: u32,
    ) -> Result<Invocation, Missing> {
        (self.kind.command)(&self.program, recipe, input, image, jobs)
    }
}
