//! `cargo xtask mutate`: tests of mutated images in guarded processes.
//!
//! A program of `crates/hostile`, with the checks of debug builds, does the work; this verb only
//! builds and runs it.

mod rivals;

use std::process::Command;

use crate::args;
use crate::failure::{Failure, Result};
use crate::{metadata, shell, workspace};

pub const HELP: &str = "\
Usage: cargo xtask mutate [KIND] [OPTIONS]

  KIND                squashfs squashfs-legacy erofs composefs cramfs iso9660 romfs udf
                      ext4 btrfs xfs containers disks recovery verity shards [all]
  --images N          mutated images for each format [100000]
  --seed N            seed of the mutations [1]
  --minutes N         stop after N minutes for each format; the same command continues
  --afresh            discard earlier progress
  --case N            repeat one case and keep its image
  --rivals            test rivals with 3000 of the same images (or --images) of squashfs and erofs
                      instead; needs `cargo xtask peers`
  --packfs PATH       program of packfs to test beside them [built anew]

Opens, walks, lists, reads, checks, and unpacks each image in a worker process, and counts panics,
signals, runs above 10 s or 512 MiB, files written outside the target, and images that pass the check
but cannot be read. Findings are kept in target/mutated.";

/// Kinds of mutated inputs: images, integrity data of images, and packed shards with their plan.
const KINDS: [&str; 16] = [
    "squashfs",
    "squashfs-legacy",
    "erofs",
    "composefs",
    "cramfs",
    "iso9660",
    "romfs",
    "udf",
    "ext4",
    "xfs",
    "btrfs",
    "containers",
    "disks",
    "recovery",
    "verity",
    "shards",
];

pub fn run(mut args: args::Args) -> Result<()> {
    let formats: Vec<&str> = match KINDS.into_iter().find(|name| args.first_word(name)) {
        Some(format) => vec![format],
        None => KINDS.into(),
    };
    let has_rivals = args.switch("--rivals");
    let packfs = args.option("--packfs")?;
    let images = args.number("--images", if has_rivals { 3000 } else { 100_000 })?;
    let seed = args.number("--seed", 1)?;
    let minutes = args.option("--minutes")?;
    let case = args.option("--case")?;
    let afresh = args.switch("--afresh");
    args.finish_empty()?;
    if case.is_some() && formats.len() > 1 {
        return Err(Failure::usage("--case needs a kind"));
    }
    if has_rivals {
        let formats: Vec<&str> =
            formats.into_iter().filter(|format| ["squashfs", "erofs"].contains(format)).collect();
        return rivals::run(&formats, images, seed, packfs.as_deref());
    }

    let folder = workspace::target().join("mutated");
    workspace::make_dir(&folder)?;
    let mut faults = vec![];
    for format in formats {
        let state = folder.join(format!("{format}-{seed}.json"));
        if afresh {
            let _ = std::fs::remove_file(&state);
        }
        let mut command = program("packfs-mutate");
        command.arg(format).args(["--seed", &seed.to_string(), "--images", &images.to_string()]);
        command.arg("--state").arg(&state).arg("--findings").arg(&folder);
        for (name, value) in [("--minutes", &minutes), ("--case", &case)] {
            if let Some(value) = value {
                command.args([name, value]);
            }
        }
        if let Err(fault) = shell::run(&mut command) {
            faults.push(format!("{format}: {fault}"));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(Failure::new(faults.join("\n"))) }
}

/// Returns a command that builds and runs a program of `crates/hostile`.
pub fn program(name: &str) -> Command {
    let mut command = metadata::cargo();
    command.current_dir(workspace::root());
    command.args(["run", "--quiet", "--package", "packfs-hostile", "--bin", name, "--"]);
    command
}
