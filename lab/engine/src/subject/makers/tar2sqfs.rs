//! tar2sqfs of squashfs-tools-ng.

use std::path::Path;

use super::{Input, Maker, Makes, allow_format, cannot, level_within, no_level, unknown_codec};
use crate::process::Invocation;
use crate::programs::Wanted;
use crate::results::{Missing, Program, Recipe};

pub(super) fn find() -> Result<Maker, Missing> {
    let from = "Debian package squashfs-tools-ng, or `cargo xtask peers`";
    Maker::find(
        Wanted { name: "tar2sqfs", version_option: "--version", from },
        Makes { command, needs_tar: true },
    )
}

fn command(
    program: &Program,
    recipe: &Recipe,
    input: &Input,
    image: &Path,
    jobs: u32,
) -> Result<Invocation, Missing> {
    allow_format(recipe, "squashfs")?;
    let Input::Tar(tar) = input else {
        return Err(cannot(recipe, "tar2sqfs makes images of tars only"));
    };
    let mut command = program.invocation().args(codec_words(recipe)?);
    if let Some(len) = recipe.block_len {
        command = command.args(["-b", &len.to_string()]);
    }
    let command = command.args(["-j", &jobs.to_string()]).args(["-f", "-q"]).args(&recipe.options);
    Ok(command.arg(image).stdin(tar))
}

fn codec_words(recipe: &Recipe) -> Result<Vec<String>, Missing> {
    let named = |name: &str| vec!["-c".to_owned(), name.to_owned()];
    let with_level = |range| {
        let mut words = named(&recipe.codec);
        if let Some(level) = level_within(recipe, range)? {
            words.extend(["-X".to_owned(), format!("level={level}")]);
        }
        Ok(words)
    };
    match recipe.codec.as_str() {
        "gzip" | "lzo" => with_level(1..=9),
        "xz" | "lzma" => with_level(0..=9),
        "zstd" => with_level(1..=22),
        "lz4" => no_level(recipe).map(|()| named("lz4")),
        // The library's highest level, always.
        "lz4hc" if recipe.level.is_none_or(|level| level == 12) => {
            Ok([named("lz4"), vec!["-X".into(), "hc".into()]].concat())
        }
        "lz4hc" => Err(cannot(recipe, "tar2sqfs has lz4hc at level 12 only")),
        "none" => Err(cannot(recipe, "tar2sqfs has no way to store everything as it is")),
        _ => Err(unknown_codec(recipe)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{of_dir, of_tar};
    use super::*;

    #[test]
    fn spells_recipes() {
        let maker = Maker::in_bin("tar2sqfs", Makes { command, needs_tar: true });
        assert_eq!(of_tar(&maker, "squashfs xz").unwrap(), "tar2sqfs -c xz -j 4 -f -q i < t");
        assert_eq!(
            of_tar(&maker, "squashfs zstd:15 131072").unwrap(),
            "tar2sqfs -c zstd -X level=15 -b 131072 -j 4 -f -q i < t"
        );
        assert_eq!(of_tar(&maker, "squashfs lz4hc").unwrap(), "tar2sqfs -c lz4 -X hc -j 4 -f -q i < t");
    }

    #[test]
    fn says_what_it_cannot() {
        let maker = Maker::in_bin("tar2sqfs", Makes { command, needs_tar: true });
        assert!(of_dir(&maker, "squashfs gzip").unwrap_err().why.contains("tars only"));
        assert!(of_tar(&maker, "squashfs none").is_err() && of_tar(&maker, "erofs lz4").is_err());
        assert!(of_tar(&maker, "squashfs zstd:23").unwrap_err().why.contains("1 to 22"));
    }
}
