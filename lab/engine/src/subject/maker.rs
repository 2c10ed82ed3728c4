//! Programs that make images.

use std::path::{Path, PathBuf};

use super::Found;
use super::table::Making;
use crate::process::Invocation;
use crate::results::{Missing, Program, Recipe};

/// Source of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A directory.
    Dir(PathBuf),
    /// A tar archive that is not compressed; given as standard input where the program takes one
    /// there.
    Tar(PathBuf),
}

/// A program that makes images.
pub type Maker = Found<Makes>;

/// The call of a program.
pub struct Makes(pub(super) How);

/// A row, or code for command lines that templates cannot express.
pub(super) enum How {
    Row(&'static Making),
    Code(fn(&Program, &Recipe, &Input, &Path, u32) -> Result<Invocation, Missing>),
}

impl Maker {
    /// Returns true if it makes images of tars only, never of directories.
    pub fn needs_tar(&self) -> bool {
        matches!(self.kind.0, How::Row(row) if row.dir.is_none())
    }

    /// Returns the command that makes `image`, which may exist and is replaced, in `jobs` threads;
    /// or why it cannot make this.
    ///
    /// It does what rivals do: nothing is read back for verification, nothing is waited for to be
    /// on the disk, nothing is told about progress. What the recipe leaves open is the program's
    /// own default, and its options come last.
    pub fn command(
        &self,
        recipe: &Recipe,
        input: &Input,
        image: &Path,
        jobs: u32,
    ) -> Result<Invocation, Missing> {
        match self.kind.0 {
            How::Row(row) => row.command(&self.program, recipe, input, image, jobs),
            How::Code(command) => command(&self.program, recipe, input, image, jobs),
        }
    }
}
