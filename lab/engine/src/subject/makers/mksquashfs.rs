//! mksquashfs of squashfs-tools.

use std::path::Path;

use super::{Input, Maker, Makes, allow_format, cannot, level_within, no_level, unknown_codec};
use crate::process::Invocation;
use crate::programs::Wanted;
use crate::results::{Missing, Program, Recipe};

/// LZ4 in its thorough mode is an option of LZ4 here, and always at this level.
const LZ4HC_LEVEL: i32 = 12;

pub(super) fn find() -> Result<Maker, Missing> {
    let from = "Debian package squashfs-tools, or `cargo xtask peers`";
    Maker::find(
        Wanted { name: "mksquashfs", version_option: "-version", from },
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
    allow_format(recipe, "squashfs")?;
    let command = match input {
        Input::Dir(dir) => program.invocation().arg(dir).arg(image),
        Input::Tar(tar) => program.invocation().arg("-").arg(image).arg("-tar").stdin(tar),
    };
    let mut command = command.arg("-noappend").args(codec_words(recipe)?);
    if let Some(len) = recipe.block_len {
        command = command.args(["-b", &len.to_string()]);
    }
    let command = command.args(["-processors", &jobs.to_string()]).args(["-no-progress", "-quiet"]);
    Ok(command.args(&recipe.options))
}

fn codec_words(recipe: &Recipe) -> Result<Vec<String>, Missing> {
    let named = |name: &str| vec!["-comp".to_owned(), name.to_owned()];
    let with_level = |range| {
        let mut words = named(&recipe.codec);
        if let Some(level) = level_within(recipe, range)? {
            words.extend(["-Xcompression-level".to_owned(), level.to_string()]);
        }
        Ok(words)
    };
    match recipe.codec.as_str() {
        "gzip" | "lzo" => with_level(1..=9),
        "zstd" => with_level(1..=22),
        "lz4" | "xz" | "lzma" => no_level(recipe).map(|()| named(&recipe.codec)),
        "lz4hc" if recipe.level.is_none_or(|level| level == LZ4HC_LEVEL) => {
            Ok([named("lz4"), vec!["-Xhc".into()]].concat())
        }
        "lz4hc" => Err(cannot(recipe, format!("mksquashfs has lz4hc at level {LZ4HC_LEVEL} only"))),
        "none" => {
            no_level(recipe)?;
            Ok(["-noI", "-noD", "-noF", "-noX"].map(String::from).to_vec())
        }
        _ => Err(unknown_codec(recipe)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{of_dir, of_tar};
    use super::*;

    #[test]
    fn spells_recipes() {
        let maker = Maker::in_bin("mksquashfs", Makes { command, needs_tar: false });
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
    }

    #[test]
    fn says_what_it_cannot() {
        let maker = Maker::in_bin("mksquashfs", Makes { command, needs_tar: false });
        for of in ["erofs lz4", "squashfs gzip:12", "squashfs xz:6", "squashfs lz4hc:9", "squashfs deflate"] {
            let missing = of_dir(&maker, of).unwrap_err();
            assert!(missing.what.starts_with("mksquashfs") && !missing.why.is_empty(), "{missing:?}");
        }
    }
}
