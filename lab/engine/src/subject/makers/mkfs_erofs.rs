//! mkfs.erofs of erofs-utils.

use std::path::Path;

use super::{Input, Maker, MakerCall, Makes, allow_format, cannot, level_within, no_level, unknown_codec};
use crate::process::Invocation;
use crate::programs::{Offers, Wanted};
use crate::results::{Missing, Program, Recipe};

pub(super) fn find() -> Result<Maker, Missing> {
    let from = "Debian package erofs-utils, or `cargo xtask peers`";
    Maker::find(Wanted { name: "mkfs.erofs", version_option: "-V", from }, Makes(MakerCall::Code(command)))
}

pub(super) fn command(
    program: &Program,
    recipe: &Recipe,
    input: &Input,
    image: &Path,
    jobs: u32,
) -> Result<Invocation, Missing> {
    allow_format(recipe, "erofs")?;
    let offers = program.offers();
    let lacks = |what: &str| cannot(recipe, format!("mkfs.erofs {} has no {what}", program.version));
    if recipe.codec != "none" && !offers.has(&recipe.codec) {
        return Err(lacks(&recipe.codec));
    }
    let mut command = program.invocation().args(codec_word(recipe, &offers)?);
    if let Some(len) = recipe.block_len.filter(|_| recipe.codec != "none") {
        command = command.arg(format!("-C{len}"));
    }
    // Those that cannot be told work in one thread.
    if offers.has("--workers") {
        command = command.arg(format!("--workers={jobs}"));
    }
    let command = command.arg("--quiet").args(&recipe.options);
    Ok(match input {
        Input::Dir(dir) => command.arg(image).arg(dir),
        Input::Tar(_) if !offers.has("--tar") => return Err(lacks("way to read a tar")),
        Input::Tar(tar) => command.arg("--tar=f").arg(image).arg(tar),
    })
}

/// None for what is stored as it is.
fn codec_word(recipe: &Recipe, offers: &Offers) -> Result<Option<String>, Missing> {
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
    // Before keys came, the level was all that could follow.
    let key = if offers.has("level=") { "level=" } else { "" };
    let level = level.map(|level| format!(",{key}{level}")).unwrap_or_default();
    Ok(Some(format!("-z{}{level}", recipe.codec)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{of_dir, of_tar};
    use super::*;

    /// A maker whose program answers any call with a help text.
    fn maker_that_says(folder: &Path, help: &str) -> Maker {
        let path = folder.join("mkfs.erofs");
        std::fs::write(folder.join("help"), help).unwrap();
        std::fs::write(&path, "#!/bin/sh\ncat \"${0%/*}/help\"\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).unwrap();
        let path = Some(path.to_str().unwrap().to_owned());
        let program = Program { name: "mkfs.erofs".into(), version: "1.5".into(), path };
        Maker { name: "mkfs.erofs", program, kind: Makes(MakerCall::Code(command)) }
    }

    #[test]
    fn an_old_version_gets_only_known_options() {
        let folder = tempfile::tempdir().unwrap();
        let help =
            " -zX[,Y]  X=compressor (Y=compression level)\n --quiet\nAvailable compressors are: lz4hc, lz4";
        let maker = maker_that_says(folder.path(), help);
        // It may be held open for writing by another test's child for a moment.
        while std::process::Command::new(folder.path().join("mkfs.erofs")).output().is_err() {}
        assert_eq!(
            of_dir(&maker, "erofs:lz4hc:12:4096").unwrap(),
            "mkfs.erofs -zlz4hc,12 -C4096 --quiet i d"
        );
        let why = of_dir(&maker, "erofs:zstd:3").unwrap_err().why;
        assert_eq!(why, "mkfs.erofs 1.5 has no zstd");
        let why = of_tar(&maker, "erofs:lz4").unwrap_err().why;
        assert_eq!(why, "mkfs.erofs 1.5 has no way to read a tar");
    }
}
