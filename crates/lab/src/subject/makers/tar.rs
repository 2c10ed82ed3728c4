//! GNU tar and a compressor: what images are compared with, not one that is mounted.

use std::path::Path;

use super::{Input, Maker, Makes, allow_format, cannot, level_within, no_level, unknown_codec};
use crate::process::Invocation;
use crate::programs::{self, Wanted};
use crate::results::{Missing, Program, Recipe};

pub(super) fn find() -> Result<Maker, Missing> {
    let from = "Debian package tar";
    Maker::find(Wanted { name: "tar", version_option: "--version", from }, Makes { command })
}

fn command(
    _: &Program,
    recipe: &Recipe,
    input: &Input,
    image: &Path,
    jobs: u32,
) -> Result<Invocation, Missing> {
    allow_format(recipe, "tar")?;
    if recipe.block_len.is_some() {
        return Err(cannot(recipe, "a tar has no blocks to choose"));
    }
    let (source, from) = match input {
        Input::Dir(dir) => ("tar --create --format=posix --sort=name --directory \"$1\" .", dir),
        Input::Tar(tar) => ("cat \"$1\"", tar),
    };
    let line = match compressor(recipe, jobs)? {
        None => format!("{source} > \"$2\""),
        Some((program, options)) => {
            let missing = || cannot(recipe, format!("{program} is not on PATH"));
            programs::locate(program).ok_or_else(missing)?;
            format!("{source} | {program} {options} > \"$2\"")
        }
    };
    Ok(Invocation::shell(&line).arg("sh").arg(from).arg(image).args(&recipe.options))
}

/// The program that compresses, and what it is told; none for what is stored as it is.
fn compressor(recipe: &Recipe, jobs: u32) -> Result<Option<(&'static str, String)>, Missing> {
    let level = |range| {
        let level = level_within(recipe, range)?;
        Ok(level.map(|level| format!(" -{level}")).unwrap_or_default())
    };
    Ok(Some(match recipe.codec.as_str() {
        "none" => return no_level(recipe).map(|()| None),
        "gzip" => ("gzip", format!("-nc{}", level(1..=9)?)),
        "xz" => ("xz", format!("-cT{jobs}{}", level(0..=9)?)),
        "zstd" => ("zstd", format!("-qcT{jobs}{}", level(1..=19)?)),
        "lz4" => no_level(recipe).map(|()| ("lz4", "-qc -1".to_owned()))?,
        "lz4hc" => {
            let level = level(3..=12)?;
            ("lz4", format!("-qc{}", if level.is_empty() { " -12" } else { &level }))
        }
        _ => return Err(unknown_codec(recipe)),
    }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{of_dir, recipe};
    use super::*;

    #[test]
    fn a_codec_is_a_program_behind_a_pipe() {
        let tell = |codec: &str| compressor(&recipe("tar", &format!("tar {codec}")), 2).unwrap();
        assert_eq!(tell("none"), None);
        assert_eq!(tell("lz4hc"), Some(("lz4", "-qc -12".into())));
        assert_eq!(tell("xz:6"), Some(("xz", "-cT2 -6".into())));
    }

    #[test]
    fn says_what_it_cannot() {
        let maker = Maker::in_bin("tar", Makes { command });
        for of in ["tar lzo", "squashfs xz", "tar xz 4096", "tar lz4:3"] {
            assert!(of_dir(&maker, of).is_err(), "{of}");
        }
    }
}
