//! mkdwarfs of DwarFS.

use std::path::Path;

use super::{Input, Maker, Makes, allow_format, cannot, level_within, no_level, unknown_codec};
use crate::process::Invocation;
use crate::programs::Wanted;
use crate::results::{Missing, Program, Recipe};

pub(super) fn find() -> Result<Maker, Missing> {
    let from = "https://github.com/mhx/dwarfs/releases";
    Maker::find(
        Wanted { name: "mkdwarfs", version_option: "--help", from },
        Makes { command, needs_tar: false },
    )
}

fn command(
    program: &Program,
    recipe: &Recipe,
    input: &Input,
    image: &Path,
    jobs: u32,
) -> Result<Invocation, Missing> {
    allow_format(recipe, "dwarfs")?;
    let Input::Dir(dir) = input else {
        return Err(cannot(recipe, "mkdwarfs makes images of directories only"));
    };
    let mut command = program.invocation().arg("-i").arg(dir).arg("-o").arg(image).arg("--force");
    command = command.args(["-C", &codec_word(recipe)?]);
    if let Some(len) = recipe.block_len {
        if !len.is_power_of_two() {
            return Err(cannot(recipe, "mkdwarfs has blocks of powers of two only"));
        }
        command = command.args(["-S", &len.ilog2().to_string()]);
    }
    let command = command.args(["-N", &jobs.to_string()]).args(["--no-progress", "--log-level=error"]);
    // Whatever a tree holds is kept, as the others do.
    let command = command.args(["--with-devices", "--with-specials"]);
    Ok(command.args(&recipe.options))
}

fn codec_word(recipe: &Recipe) -> Result<String, Missing> {
    let (name, level) = match recipe.codec.as_str() {
        "none" => ("null", no_level(recipe).map(|()| None)?),
        "lz4" => ("lz4", no_level(recipe).map(|()| None)?),
        "lz4hc" => ("lz4hc", level_within(recipe, 0..=12)?),
        // Its LZMA is that of xz.
        "xz" | "lzma" => ("lzma", level_within(recipe, 0..=9)?),
        "zstd" => ("zstd", level_within(recipe, 1..=22)?),
        "brotli" => ("brotli", level_within(recipe, 0..=11)?),
        _ => return Err(unknown_codec(recipe)),
    };
    // Brotli's levels are called qualities.
    let key = if name == "brotli" { "quality" } else { "level" };
    Ok(level.map_or_else(|| name.to_owned(), |level| format!("{name}:{key}={level}")))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{of_dir, of_tar};
    use super::*;

    #[test]
    fn spells_recipes() {
        let maker = Maker::in_bin("mkdwarfs", Makes { command, needs_tar: false });
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
