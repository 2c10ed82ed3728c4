//! `cargo xtask mutate`: what becomes of very many mutated images, each tried under guard.
//!
//! The work is done by a program of `crates/hostile`, with the checks of debug builds; here is only
//! what is asked of it.

mod rivals;

use std::process::Command;

use crate::args;
use crate::failure::{Failure, Result};
use crate::{metadata, shell, workspace};

pub const HELP: &str = "\
Usage: cargo xtask mutate [KIND] [OPTIONS]

  KIND                squashfs squashfs-legacy erofs cramfs iso9660 romfs containers recovery verity [all]
  --images N          mutated images of each format [100000]
  --seed N            other images than those of seed 1
  --minutes N         stop after so long for each format; the same command goes on where it stopped
  --afresh            forget what was done before
  --case N            try one case again, and keep its image
  --rivals            give 3000 of the same images (or --images) of squashfs and erofs to programs of others instead; needs
                      `cargo xtask peers`
  --packfs PATH       the program that stands beside them [built anew]

Opens, walks, lists, reads, checks and unpacks each image in a worker process and counts how that ends: panics, signals, more than
10 s, more than 512 MiB, anything written outside of the target, anything checked clean that cannot be read. What is found is kept in
target/mutated.";

/// What mutated inputs are made of: images, and what vouches for images.
const KINDS: [&str; 9] = [
    "squashfs",
    "squashfs-legacy",
    "erofs",
    "cramfs",
    "iso9660",
    "romfs",
    "containers",
    "recovery",
    "verity",
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

/// A program of `crates/hostile`, to be built and run.
pub fn program(name: &str) -> Command {
    let mut command = metadata::cargo();
    command.current_dir(workspace::root());
    command.args(["run", "--quiet", "--package", "packfs-hostile", "--bin", name, "--"]);
    command
}
