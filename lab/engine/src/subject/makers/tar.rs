//! GNU tar and a compressor: what images are compared with, not one that is mounted.

use std::path::Path;

use super::{Input, Maker, MakerCall, Makes, allow_format, cannot, level_within, no_level, unknown_codec};
use crate::process::Invocation;
use crate::programs::{self, Wanted};
use crate::results::{Missing, Program, Recipe};

pub(super) fn find() -> Result<Maker, Missing> {
    let from = "Debian package tar";
    Maker::find(Wanted { name: "tar", version_option: "--version", from }, Makes(MakerCall::Code(command)))
}

pub(super) fn command(
    tar: &Program,
    recipe: &Recipe,
    input: &Input,
    image: &Path,
    jobs: u32,
) -> Result<Invocation, Missing> {
    allow_format(recipe, "tar")?;
    if recipe.block_len.is_some() {
        return Err(cannot(recipe, "a tar has no blocks to choose"));
    }
    if !recipe.options.is_empty() {
        return Err(cannot(
            recipe,
            "neither tar nor its compressor is told anything further; leave options out",
        ));
    }
    let compressor = compressor(recipe, jobs)?;
    if let Some((program, _)) = &compressor {
        let missing = || cannot(recipe, format!("{program} is not on PATH"));
        programs::locate(program).ok_or_else(missing)?;
    }
    Ok(match input {
        Input::Dir(dir) => of_dir(tar, dir, compressor, image),
        Input::Tar(tar) => of_tar(tar, compressor, image),
    })
}

/// Tar runs the compressor itself and fails with it: of a pipe, a shell tells how its last program
/// ended, and no other.
fn of_dir(tar: &Program, dir: &Path, compressor: Option<(&str, String)>, image: &Path) -> Invocation {
    let mut command = tar.invocation().args(["--create", "--format=posix", "--sort=name"]);
    if let Some((program, options)) = compressor {
        command = command.arg(format!("--use-compress-program={program} {options}"));
    }
    command.arg("--file").arg(image).arg("--directory").arg(dir).arg(".")
}

fn of_tar(tar: &Path, compressor: Option<(&str, String)>, image: &Path) -> Invocation {
    let (program, options) = compressor.unwrap_or(("cat", String::new()));
    let line = format!("{program} {options} < \"$1\" > \"$2\"").replace("  ", " ");
    Invocation::shell(&line).arg("sh").arg(tar).arg(image)
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
    use crate::process;

    #[test]
    fn a_codec_is_a_program_that_compresses() {
        let tell = |codec: &str| compressor(&recipe("tar", &format!("tar:{codec}")), 2).unwrap();
        assert_eq!(tell("none"), None);
        assert_eq!(tell("lz4hc"), Some(("lz4", "-qc -12".into())));
        assert_eq!(tell("xz:6"), Some(("xz", "-cT2 -6".into())));
    }

    #[test]
    fn a_folder_is_compressed_by_tar_and_a_tar_by_the_program_alone() {
        let maker = Maker::in_bin("tar", Makes(MakerCall::Code(command)));
        if programs::locate("gzip").is_none() {
            return packfs_testkit::skip("no gzip");
        }
        let packed = of_dir(&maker, "tar:gzip:1").unwrap();
        assert!(
            packed.contains(" '--use-compress-program=gzip -nc -1' --file i --directory d ."),
            "{packed}"
        );
        let packed = super::super::tests::of_tar(&maker, "tar:gzip").unwrap();
        assert_eq!(packed, "sh -c 'gzip -nc < \"$1\" > \"$2\"' sh t i");
    }

    #[test]
    fn a_tree_that_is_not_there_is_a_failure_though_the_compressor_succeeds() {
        if programs::locate("tar").and(programs::locate("gzip")).is_none() {
            return packfs_testkit::skip("no tar or gzip");
        }
        let dir = tempfile::tempdir().unwrap();
        let maker = find().unwrap_or_else(|missing| panic!("{missing:?}"));
        std::fs::create_dir(dir.path().join("tree")).unwrap();
        for (name, is_there) in [("tree", true), ("none", false)] {
            let recipe = recipe("tar", "tar:gzip");
            for input in [Input::Dir(dir.path().join(name)), Input::Tar(dir.path().join(name))] {
                let is_made = is_there && matches!(input, Input::Dir(_));
                let command = maker.command(&recipe, &input, &dir.path().join("image"), 1).unwrap();
                assert_eq!(process::capture(&command, false).is_ok(), is_made, "{}", command.spelled());
            }
        }
    }
}
