//! Programs that make images: a row each, or a file where templates do not suffice.

mod mkfs_erofs;
mod packfs;
mod rows;
mod tar;

use std::path::{Path, PathBuf};

use super::Installed;
use super::table::{Making, Row, TABLE};
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
pub type Maker = Installed<Makes>;

/// The call of a program.
pub struct Makes(pub(super) MakerCall);

pub(super) enum MakerCall {
    Row(&'static Making),
    Code(fn(&Program, &Recipe, &Input, &Path, u32) -> Result<Invocation, Missing>),
}

impl Maker {
    /// Returns true if it makes images of tars only, never of directories.
    pub fn needs_tar(&self) -> bool {
        matches!(self.kind.0, MakerCall::Row(row) if row.dir.is_none())
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
            MakerCall::Row(row) => row.command(&self.program, recipe, input, image, jobs),
            MakerCall::Code(command) => command(&self.program, recipe, input, image, jobs),
        }
    }
}

pub(super) fn find(packfs: &Path) -> Vec<Result<Maker, Missing>> {
    let row = |row: &'static Row<Making>| {
        let Installed { name, program, kind } = row.find()?;
        Ok(Maker { name, program, kind: Makes(MakerCall::Row(kind)) })
    };
    let mut makers: Vec<_> =
        std::iter::once(packfs::find(packfs)).chain(TABLE.makers.iter().map(row)).collect();
    // Those of SquashFS stand first.
    makers.splice(3..3, [tar::find(), mkfs_erofs::find()]);
    makers
}

fn cannot(recipe: &Recipe, why: impl Into<String>) -> Missing {
    let what = format!("{} {} {}", recipe.maker, recipe.format, recipe.codec_and_level());
    Missing { what, why: why.into() }
}

/// Refuses a format that is not the program's own, and what only writable file systems have.
fn allow_format(recipe: &Recipe, format: &str) -> Result<(), Missing> {
    if recipe.format != format {
        return Err(cannot(recipe, format!("{} makes {format} only", recipe.maker)));
    }
    allow_plain(recipe)
}

/// Refuses encryption: images reach encrypted devices by a copy.
fn allow_plain(recipe: &Recipe) -> Result<(), Missing> {
    if recipe.luks {
        return Err(cannot(recipe, "only writable file systems are measured on LUKS"));
    }
    Ok(())
}

fn level_within(recipe: &Recipe, range: std::ops::RangeInclusive<i32>) -> Result<Option<i32>, Missing> {
    match recipe.level {
        Some(level) if !range.contains(&level) => {
            let (first, last) = range.into_inner();
            Err(cannot(recipe, format!("{} has levels {first} to {last} for {}", recipe.maker, recipe.codec)))
        }
        level => Ok(level),
    }
}

fn no_level(recipe: &Recipe) -> Result<(), Missing> {
    match recipe.level {
        Some(_) => Err(cannot(recipe, format!("{} has no levels for {}", recipe.maker, recipe.codec))),
        None => Ok(()),
    }
}

/// That a program does not know a codec.
fn unknown_codec(recipe: &Recipe) -> Missing {
    cannot(recipe, format!("{} does not know {}", recipe.maker, recipe.codec))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::session::parse_recipe;

    /// `format:codec[:level[:block]]`, as `of` has it.
    pub(in crate::subject) fn recipe(maker: &str, of: &str) -> Recipe {
        parse_recipe(&format!("{maker}:{of}")).unwrap()
    }

    /// Returns the command that makes `i` of the directory `d` in four threads.
    pub(super) fn of_dir(maker: &Maker, of: &str) -> Result<String, Missing> {
        let input = Input::Dir("d".into());
        maker.command(&recipe(maker.name(), of), &input, Path::new("i"), 4).map(|it| it.spelled())
    }

    /// The same of a tar `t`.
    pub(super) fn of_tar(maker: &Maker, of: &str) -> Result<String, Missing> {
        let input = Input::Tar("t".into());
        maker.command(&recipe(maker.name(), of), &input, Path::new("i"), 4).map(|it| it.spelled())
    }

    /// A maker on no machine.
    pub(in crate::subject) fn named(name: &'static str) -> Maker {
        let call = match name {
            "packfs" => MakerCall::Code(packfs::command),
            "tar" => MakerCall::Code(tar::command),
            "mkfs.erofs" => MakerCall::Code(mkfs_erofs::command),
            _ => MakerCall::Row(&TABLE.makers.iter().find(|row| row.name == name).unwrap().kind),
        };
        Maker::in_bin(name, Makes(call))
    }
}
