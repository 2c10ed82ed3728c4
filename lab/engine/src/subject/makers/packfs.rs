//! packfs itself, as its own program: what users run is what is measured.

use std::path::Path;

use super::{Input, Maker, MakerCall, Makes, allow_plain};
use crate::process::Invocation;
use crate::results::{Missing, Program, Recipe};
use crate::subject::own::program;

/// `packfs pack` by the program at a path.
pub(super) fn find(path: &Path) -> Result<Maker, Missing> {
    Ok(Maker { name: "packfs", program: program(path)?, kind: Makes(MakerCall::Code(command)) })
}

pub(super) fn command(
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
