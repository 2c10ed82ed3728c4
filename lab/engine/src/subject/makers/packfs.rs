//! packfs itself, as its own program: what users run is what is measured.

use std::path::Path;

use super::{Input, Maker, MakerCall, Makes, allow_plain};
use crate::process::{self, Invocation};
use crate::results::{Missing, Program, Recipe};

/// `packfs pack` by the program at a path.
pub(super) fn find(path: &Path) -> Result<Maker, Missing> {
    Ok(Maker { name: "packfs", program: program(path)?, kind: Makes(MakerCall::Code(command)) })
}

/// The program at a path, which has to be packfs.
pub(in crate::subject) fn program(path: &Path) -> Result<Program, Missing> {
    let missing = |why: String| Missing { what: "packfs".into(), why };
    let said = process::capture(&Invocation::new(path).arg("--version"), false)
        .map_err(|error| missing(format!("{path:?} does not run: {error}")))?;
    match said.split_once(' ') {
        Some(("packfs", version)) => Ok(Program {
            name: "packfs".into(),
            version: version.trim().into(),
            path: Some(path.to_string_lossy().into_owned()),
        }),
        _ => Err(missing(format!("{path:?} is not packfs"))),
    }
}

fn command(
    program: &Program,
    recipe: &Recipe,
    input: &Input,
    image: &Path,
    jobs: u32,
) -> Result<Invocation, Missing> {
    allow_plain(recipe)?;
    // Whether a format is there and knows a codec, the program says best.
    let command = program.invocation().arg("pack");
    let command = match input {
        Input::Dir(dir) => command.arg(dir),
        Input::Tar(tar) => command.arg("-").stdin(tar),
    };
    let mut command = command.arg(image).args(["--format", &recipe.format]);
    // What packfs chooses for a format and a goal is spelled `default`.
    if recipe.codec != "default" {
        command = command.args(["--codec", &recipe.codec_and_level()]);
    }
    if let Some(len) = recipe.block_len {
        command = command.args(["--block-size", &len.to_string()]);
    }
    let command = command.args(["--jobs", &jobs.to_string()]).args(["--no-verify", "--no-sync", "--quiet"]);
    Ok(command.args(&recipe.options))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{of_dir, of_tar, recipe, spelled};
    use super::*;

    #[test]
    fn spells_recipes() {
        let maker = Maker::in_bin("packfs", Makes(MakerCall::Code(command)));
        let rest = "--jobs 4 --no-verify --no-sync --quiet";
        assert_eq!(
            of_dir(&maker, "squashfs zstd:15 131072").unwrap(),
            format!("packfs pack d i --format squashfs --codec zstd:15 --block-size 131072 {rest}")
        );
        assert_eq!(
            of_tar(&maker, "erofs lz4hc").unwrap(),
            format!("packfs pack - i --format erofs --codec lz4hc {rest} < t")
        );
        let mut recipe = recipe("packfs", "erofs none");
        recipe.options = vec!["-O".into(), "fragments=off".into()];
        assert_eq!(
            spelled(&maker, &recipe, &Input::Dir("d".into())).unwrap(),
            format!("packfs pack d i --format erofs --codec none {rest} -O fragments=off")
        );
        recipe.luks = true;
        assert!(spelled(&maker, &recipe, &Input::Dir("d".into())).is_err());
    }
}
