//! mkfs.erofs of erofs-utils.

use std::path::Path;

use super::{Input, Maker, Makes, allow_format, level_within, no_level, unknown_codec};
use crate::process::Invocation;
use crate::programs::Wanted;
use crate::results::{Missing, Program, Recipe};

pub(super) fn find() -> Result<Maker, Missing> {
    let from = "Debian package erofs-utils, or `cargo xtask peers`";
    Maker::find(
        Wanted { name: "mkfs.erofs", version_option: "--version", from },
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
    allow_format(recipe, "erofs")?;
    let mut command = program.invocation().args(codec_word(recipe)?);
    if let Some(len) = recipe.block_len.filter(|_| recipe.codec != "none") {
        command = command.arg(format!("-C{len}"));
    }
    let command = command.arg(format!("--workers={jobs}")).arg("--quiet").args(&recipe.options);
    Ok(match input {
        Input::Dir(dir) => command.arg(image).arg(dir),
        Input::Tar(tar) => command.arg("--tar=f").arg(image).arg(tar),
    })
}

/// None for what is stored as it is.
fn codec_word(recipe: &Recipe) -> Result<Option<String>, Missing> {
    let level = match recipe.codec.as_str() {
        "none" => return no_level(recipe).map(|()| None),
        "lz4" => no_level(recipe).map(|()| None)?,
        "lz4hc" => level_within(recipe, 0..=12)?,
        // From 100 on they are xz's extreme ones.
        "lzma" => level_within(recipe, 0..=109)?,
        "deflate" => level_within(recipe, 0..=9)?,
        "zstd" => level_within(recipe, 0..=22)?,
        _ => return Err(unknown_codec(recipe)),
    };
    let level = level.map(|level| format!(",level={level}")).unwrap_or_default();
    Ok(Some(format!("-z{}{level}", recipe.codec)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{of_dir, of_tar};
    use super::*;

    #[test]
    fn spells_recipes() {
        let maker = Maker::in_bin("mkfs.erofs", Makes { command, needs_tar: false });
        let rest = "--workers=4 --quiet";
        assert_eq!(
            of_dir(&maker, "erofs lz4hc:12 65536").unwrap(),
            format!("mkfs.erofs -zlz4hc,level=12 -C65536 {rest} i d")
        );
        assert_eq!(of_dir(&maker, "erofs none 4096").unwrap(), format!("mkfs.erofs {rest} i d"));
        assert_eq!(of_tar(&maker, "erofs zstd").unwrap(), format!("mkfs.erofs -zzstd {rest} --tar=f i t"));
    }

    #[test]
    fn says_what_it_cannot() {
        let maker = Maker::in_bin("mkfs.erofs", Makes { command, needs_tar: false });
        for of in ["squashfs lz4", "erofs xz", "erofs lz4:3", "erofs deflate:12"] {
            assert!(of_dir(&maker, of).is_err(), "{of}");
        }
    }
}
