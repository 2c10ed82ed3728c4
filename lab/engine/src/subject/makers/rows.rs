//! Rivals whose command lines are templates, as `subjects.toml` has them.

use std::ffi::OsString;
use std::path::Path;

use super::{Input, allow_format, cannot, level_within, no_level, unknown_codec};
use crate::process::Invocation;
use crate::results::{Missing, Program, Recipe};
use crate::subject::table::{Codec, Making};
use crate::subject::template::{call, word};

impl Making {
    pub(in crate::subject) fn command(
        &self,
        program: &Program,
        recipe: &Recipe,
        input: &Input,
        image: &Path,
        jobs: u32,
    ) -> Result<Invocation, Missing> {
        allow_format(recipe, &self.format)?;
        let (template, path) = match input {
            Input::Dir(dir) => (&self.dir, dir),
            Input::Tar(tar) => (&self.tar, tar),
        };
        let only = if self.dir.is_none() { "tars" } else { "directories" };
        let refused = || cannot(recipe, format!("{} makes images of {only} only", recipe.maker));
        let template = template.as_ref().ok_or_else(refused)?;
        let values = [
            word("input", path),
            word("image", image),
            word("jobs", jobs.to_string()),
            ("codec", self.codec(recipe)?.split_whitespace().map(OsString::from).collect()),
            ("block", self.block(recipe)?.into_iter().map(OsString::from).collect()),
            ("options", recipe.options.iter().map(OsString::from).collect()),
        ];
        let command = call(program, template, &values);
        Ok(if matches!(input, Input::Tar(_)) { command.stdin(path) } else { command })
    }

    fn codec(&self, recipe: &Recipe) -> Result<String, Missing> {
        let name = &recipe.codec;
        let Codec { words, levels, only, level, why } =
            self.codecs.get(name).ok_or_else(|| unknown_codec(recipe))?;
        if let Some(why) = why {
            return Err(cannot(recipe, why));
        }
        let chosen = match (*levels, *only) {
            (Some((first, last)), _) => level_within(recipe, first..=last)?,
            (None, Some(only)) if recipe.level.is_some_and(|level| level != only) => {
                return Err(cannot(recipe, format!("{} has {name} at level {only} only", recipe.maker)));
            }
            (None, Some(_)) => None,
            (None, None) => no_level(recipe).map(|()| None)?,
        };
        let added = level.as_ref().unwrap_or(&self.level);
        let added = chosen.map(|chosen| added.replace("{}", &chosen.to_string())).unwrap_or_default();
        Ok(format!("{words}{added}"))
    }

    fn block(&self, recipe: &Recipe) -> Result<Vec<String>, Missing> {
        let Some(len) = recipe.block_len else { return Ok(Vec::new()) };
        let value = match self.block_log2 {
            false => len,
            true if len.is_power_of_two() => len.ilog2(),
            true => {
                return Err(cannot(recipe, format!("{} has blocks of powers of two only", recipe.maker)));
            }
        };
        Ok(vec![self.block.clone(), value.to_string()])
    }
}
