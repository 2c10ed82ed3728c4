//! The tests of erofs-utils: shell scripts that mount images by the kernel's driver.

use std::path::Path;
use std::process::Command;

use super::Outcome;
use super::run::{Side, Verdict, verdict};
use crate::failure::{Failure, Result};
use crate::{shell, workspace};

/// A test takes some seconds, one that makes random files up to two minutes on a busy machine; one
/// that hangs is ended.
const SECONDS: u32 = 300;

/// Runs a helper that is linked with liblz4, and no tool.
const OF_LIBLZ4: &str = "007";

pub fn run(checkout: &Path, side: &Side) -> Result<Vec<Outcome>> {
    let tests = checkout.join("tests");
    helpers(&tests)?;
    let [scratch, scratch2] = ["scratch", "scratch2"].map(|name| side.folder().join(name));
    let results = side.folder().join("results");
    for folder in [&scratch, &scratch2, &results.join("erofs")] {
        workspace::make_dir(folder)?;
    }
    let listed =
        std::fs::read_dir(tests.join("erofs")).map_err(|error| Failure::io("list", &tests, error))?;
    let mut names: Vec<String> =
        listed.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    names.sort();
    names
        .into_iter()
        .map(|name| {
            let mut command = side.command("bash", SECONDS);
            command.arg(format!("./erofs/{name}")).current_dir(&tests).env("srcdir", ".");
            command.env("SCRATCH_MNT", &scratch).env("SCRATCH2_MNT", &scratch2).env("RESULT_DIR", &results);
            for (variable, tool) in [
                ("MKFS_EROFS_PROG", "mkfs.erofs"),
                ("FSCK_EROFS_PROG", "fsck.erofs"),
                ("DUMP_EROFS_PROG", "dump.erofs"),
                ("EROFSFUSE_PROG", "erofsfuse"),
            ] {
                command.env(variable, side.tool(tool));
            }
            for codec in ["lz4", "lz4hc", "lzma", "deflate", "zstd"] {
                command.env(format!("{codec}_on"), "1");
            }
            let found = if name == OF_LIBLZ4 {
                Verdict::NotRun("it tests liblz4 alone".into())
            } else {
                verdict(&mut command)?
            };
            eprintln!("  {name}: {}", found.text());
            Ok(Outcome { test: name, verdict: found })
        })
        .collect()
}

fn helpers(tests: &Path) -> Result<()> {
    let src = tests.join("src");
    let config = src.join("config.h");
    std::fs::write(&config, "").map_err(|error| Failure::io("write", &config, error))?;
    let mut cc = Command::new("cc");
    cc.args([
        "-D_GNU_SOURCE",
        "-DHAVE_LINUX_TYPES_H",
        "-include",
        "sys/sysmacros.h",
        "-w",
        "-I",
        ".",
        "-I",
        "../../include",
        "-o",
        "fssum",
        "fssum.c",
        "../../lib/sha256.c",
    ]);
    shell::run_quietly(cc.current_dir(src))
}
