//! Rivals whose command lines are templates, as `subjects.toml` has them.

use std::ffi::OsString;
use std::path::Path;

use super::{Input, allow_format, cannot, level_within, no_level, unknown_codec};
use crate::process::Invocation;
use crate::results::{Missing, Program, Recipe};
use crate::subject::table::{Codec, Making};
use crate::subject::template::{call, word};

impl Making {
    /// Returns the command of a recipe, or the reason why it cannot make this.
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

#[cfg(test)]
mod tests {
    use super::super::tests::{of_dir, of_tar};
    use crate::subject::makers::MakerCall;
    use crate::subject::table::TABLE;
    use crate::subject::{Maker, Makes};

    fn maker(name: &'static str) -> Maker {
        let row = TABLE.makers.iter().find(|row| row.name == name).unwrap();
        Maker::in_bin(name, Makes(MakerCall::Row(&row.kind)))
    }

    #[test]
    fn mksquashfs_spells_recipes() {
        let maker = maker("mksquashfs");
        let rest = "-processors 4 -no-progress -quiet";
        assert_eq!(
            of_dir(&maker, "squashfs gzip:9 4096").unwrap(),
            format!("mksquashfs d i -noappend -comp gzip -Xcompression-level 9 -b 4096 {rest}")
        );
        assert_eq!(
            of_tar(&maker, "squashfs lz4hc:12").unwrap(),
            format!("mksquashfs - i -tar -noappend -comp lz4 -Xhc {rest} < t")
        );
        assert_eq!(
            of_dir(&maker, "squashfs none").unwrap(),
            format!("mksquashfs d i -noappend -noI -noD -noF -noX {rest}")
        );
        for of in ["erofs lz4", "squashfs gzip:12", "squashfs xz:6", "squashfs lz4hc:9", "squashfs deflate"] {
            let missing = of_dir(&maker, of).unwrap_err();
            assert!(missing.what.starts_with("mksquashfs") && !missing.why.is_empty(), "{missing:?}");
        }
    }

    #[test]
    fn tar2sqfs_spells_recipes() {
        let maker = maker("tar2sqfs");
        assert_eq!(of_tar(&maker, "squashfs xz").unwrap(), "tar2sqfs -c xz -j 4 -f -q i < t");
        assert_eq!(
            of_tar(&maker, "squashfs zstd:15 131072").unwrap(),
            "tar2sqfs -c zstd -X level=15 -b 131072 -j 4 -f -q i < t"
        );
        assert_eq!(of_tar(&maker, "squashfs lz4hc").unwrap(), "tar2sqfs -c lz4 -X hc -j 4 -f -q i < t");
        assert!(of_dir(&maker, "squashfs gzip").unwrap_err().why.contains("tars only"));
        assert!(of_tar(&maker, "squashfs none").is_err() && of_tar(&maker, "erofs lz4").is_err());
        assert!(of_tar(&maker, "squashfs zstd:23").unwrap_err().why.contains("1 to 22"));
    }

    #[test]
    fn mkfs_cramfs_spells_recipes() {
        let maker = maker("mkfs.cramfs");
        assert_eq!(of_dir(&maker, "cramfs gzip").unwrap(), "mkfs.cramfs d i");
        assert!(of_dir(&maker, "cramfs none").is_err() && of_tar(&maker, "cramfs gzip").is_err());
    }

    #[test]
    fn mkdwarfs_spells_recipes() {
        let maker = maker("mkdwarfs");
        let rest = "-N 4 --no-progress --log-level=error --with-devices --with-specials";
        assert_eq!(
            of_dir(&maker, "dwarfs zstd:22 16777216").unwrap(),
            format!("mkdwarfs -i d -o i --force -C zstd:level=22 -S 24 {rest}")
        );
        assert_eq!(
            of_dir(&maker, "dwarfs none").unwrap(),
            format!("mkdwarfs -i d -o i --force -C null {rest}")
        );
        assert!(of_tar(&maker, "dwarfs zstd").is_err());
        assert!(of_dir(&maker, "dwarfs lz4 100000").unwrap_err().why.contains("powers of two"));
    }
}
