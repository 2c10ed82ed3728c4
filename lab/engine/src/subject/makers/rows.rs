//! Rivals whose command lines are templates: a row each.

use std::ffi::OsString;
use std::path::Path;

use super::{How, Input, Maker, Makes, allow_format, cannot, level_within, no_level, unknown_codec};
use crate::process::Invocation;
use crate::programs::Wanted;
use crate::results::{Missing, Program, Recipe};
use crate::subject::template::{call, word};

/// A program that makes images of one format.
pub(in crate::subject) struct Row {
    wanted: Wanted,
    format: &'static str,
    /// Arguments for a directory; none if it takes tars only. Templates of `{input}`, `{image}`, `{codec}`, `{block}`, `{jobs}`
    /// and `{options}`.
    dir: Option<&'static str>,
    /// Arguments for a tar on standard input; none if it takes directories only.
    tar: Option<&'static str>,
    block: Block,
    /// Codecs, their levels and words.
    codecs: &'static [(&'static str, Levels, &'static str)],
}

/// The option for the block, and its unit.
#[derive(Clone, Copy)]
enum Block {
    Bytes(&'static str),
    Log2(&'static str),
}

/// Levels of a codec.
#[derive(Clone, Copy)]
enum Levels {
    /// The level is not for the user to choose.
    No,
    /// One level, which the codec always has.
    Only(i32),
    /// A range, and what follows the codec's words for a level `{}`.
    Range(i32, i32, &'static str),
    /// The codec cannot be chosen: the reason takes the place of its words.
    Refused,
}

use Levels::{No, Only, Range, Refused};

const MKSQUASHFS_LEVEL: &str = " -Xcompression-level {}";

/// LZ4 in its thorough mode is an option of LZ4, for this one and tar2sqfs.
const MKSQUASHFS: Row = Row {
    wanted: Wanted {
        name: "mksquashfs",
        version_option: "-version",
        from: "Debian package squashfs-tools, or `cargo xtask peers`",
    },
    format: "squashfs",
    dir: Some("{input} {image} -noappend {codec} {block} -processors {jobs} -no-progress -quiet {options}"),
    tar: Some("- {image} -tar -noappend {codec} {block} -processors {jobs} -no-progress -quiet {options}"),
    block: Block::Bytes("-b"),
    codecs: &[
        ("gzip", Range(1, 9, MKSQUASHFS_LEVEL), "-comp gzip"),
        ("lzo", Range(1, 9, MKSQUASHFS_LEVEL), "-comp lzo"),
        ("zstd", Range(1, 22, MKSQUASHFS_LEVEL), "-comp zstd"),
        ("lz4", No, "-comp lz4"),
        ("xz", No, "-comp xz"),
        ("lzma", No, "-comp lzma"),
        ("lz4hc", Only(12), "-comp lz4 -Xhc"),
        ("none", No, "-noI -noD -noF -noX"),
    ],
};

const TAR2SQFS_LEVEL: &str = " -X level={}";

const TAR2SQFS: Row = Row {
    wanted: Wanted {
        name: "tar2sqfs",
        version_option: "--version",
        from: "Debian package squashfs-tools-ng, or `cargo xtask peers`",
    },
    format: "squashfs",
    dir: None,
    tar: Some("{codec} {block} -j {jobs} -f -q {options} {image}"),
    block: Block::Bytes("-b"),
    codecs: &[
        ("gzip", Range(1, 9, TAR2SQFS_LEVEL), "-c gzip"),
        ("lzo", Range(1, 9, TAR2SQFS_LEVEL), "-c lzo"),
        ("xz", Range(0, 9, TAR2SQFS_LEVEL), "-c xz"),
        ("lzma", Range(0, 9, TAR2SQFS_LEVEL), "-c lzma"),
        ("zstd", Range(1, 22, TAR2SQFS_LEVEL), "-c zstd"),
        ("lz4", No, "-c lz4"),
        ("lz4hc", Only(12), "-c lz4 -X hc"),
        ("none", Refused, "tar2sqfs has no way to store everything as it is"),
    ],
};

/// Its LZMA is that of xz. It keeps everything that a tree holds, as the others do.
const MKDWARFS: Row = Row {
    wanted: Wanted {
        name: "mkdwarfs",
        version_option: "--help",
        from: "https://github.com/mhx/dwarfs/releases",
    },
    format: "dwarfs",
    dir: Some(
        "-i {input} -o {image} --force {codec} {block} -N {jobs} --no-progress --log-level=error --with-devices \
         --with-specials {options}",
    ),
    tar: None,
    block: Block::Log2("-S"),
    codecs: &[
        ("none", No, "-C null"),
        ("lz4", No, "-C lz4"),
        ("lz4hc", Range(0, 12, ":level={}"), "-C lz4hc"),
        ("xz", Range(0, 9, ":level={}"), "-C lzma"),
        ("lzma", Range(0, 9, ":level={}"), "-C lzma"),
        ("zstd", Range(1, 22, ":level={}"), "-C zstd"),
        ("brotli", Range(0, 11, ":quality={}"), "-C brotli"),
    ],
};

/// It knows one codec, and has no name for it.
const MKFS_CRAMFS: Row = Row {
    wanted: Wanted {
        name: "mkfs.cramfs",
        version_option: "--version",
        from: "Debian package util-linux-extra",
    },
    format: "cramfs",
    dir: Some("{block} {options} {input} {image}"),
    tar: None,
    block: Block::Bytes("-b"),
    codecs: &[("gzip", No, "")],
};

/// All of them.
pub(super) static ROWS: [Row; 4] = [MKSQUASHFS, TAR2SQFS, MKDWARFS, MKFS_CRAMFS];

impl Row {
    pub(super) fn find(&'static self) -> Result<Maker, Missing> {
        Maker::find(self.wanted, Makes(How::Row(self)))
    }

    /// Returns true if it makes images of tars only.
    pub(in crate::subject) fn needs_tar(&self) -> bool {
        self.dir.is_none()
    }

    /// Returns the command of a recipe, or the reason why it cannot make this.
    pub(in crate::subject) fn command(
        &self,
        program: &Program,
        recipe: &Recipe,
        input: &Input,
        image: &Path,
        jobs: u32,
    ) -> Result<Invocation, Missing> {
        allow_format(recipe, self.format)?;
        let name = &recipe.maker;
        let (template, path) = match input {
            Input::Dir(dir) => (self.dir, dir),
            Input::Tar(tar) => (self.tar, tar),
        };
        let only = if self.needs_tar() { "tars" } else { "directories" };
        let template =
            template.ok_or_else(|| cannot(recipe, format!("{name} makes images of {only} only")))?;
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
        let codec = self.codecs.iter().find(|(codec, ..)| *codec == recipe.codec);
        let (codec, levels, words) = codec.ok_or_else(|| unknown_codec(recipe))?;
        let suffix = match *levels {
            No => no_level(recipe).map(|()| None)?,
            Only(only) if recipe.level.is_some_and(|level| level != only) => {
                return Err(cannot(recipe, format!("{} has {codec} at level {only} only", recipe.maker)));
            }
            Only(_) => None,
            Range(first, last, suffix) => {
                level_within(recipe, first..=last)?.map(|level| suffix.replace("{}", &level.to_string()))
            }
            Refused => return Err(cannot(recipe, *words)),
        };
        Ok(format!("{words}{}", suffix.unwrap_or_default()))
    }

    fn block(&self, recipe: &Recipe) -> Result<Vec<String>, Missing> {
        let Some(len) = recipe.block_len else { return Ok(Vec::new()) };
        match self.block {
            Block::Bytes(option) => Ok(vec![option.into(), len.to_string()]),
            Block::Log2(option) if len.is_power_of_two() => Ok(vec![option.into(), len.ilog2().to_string()]),
            Block::Log2(_) => {
                Err(cannot(recipe, format!("{} has blocks of powers of two only", recipe.maker)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{of_dir, of_tar};
    use super::*;

    fn maker(name: &'static str) -> Maker {
        let row = ROWS.iter().find(|row| row.wanted.name == name).unwrap();
        Maker::in_bin(name, Makes(How::Row(row)))
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
