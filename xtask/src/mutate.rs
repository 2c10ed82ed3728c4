//! `cargo xtask mutate`: tests of mutated images in guarded processes.
//!
//! A program of `crates/hostile`, with the checks of debug builds, does the work; this verb only
//! builds and runs it.

mod rivals;

use std::process::Command;

use crate::failure::{Failure, Result};
use crate::{metadata, shell, workspace};

/// Test mutated images of each format
///
/// Opens, walks, lists, reads, checks, and unpacks each image in a worker process, and counts
/// panics, signals, runs above 10 s or 512 MiB, files written outside the target, and images that
/// pass the check but cannot be read. Findings are kept in target/mutated.
#[derive(clap::Args)]
pub struct Options {
    /// A format of filesystems, composefs, containers, disks, recovery, verity, or shards
    /// (default: all)
    kind: Option<String>,
    /// Mutated images for each format (default: 100000, of rivals 3000)
    #[arg(long, value_name = "N")]
    images: Option<usize>,
    /// Seed of the mutations
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: usize,
    /// Stop after N minutes for each format; the same command continues
    #[arg(long, value_name = "N")]
    minutes: Option<String>,
    /// Discard earlier progress
    #[arg(long)]
    afresh: bool,
    /// Repeat one case and keep its image
    #[arg(long, value_name = "N", requires = "kind")]
    case: Option<String>,
    /// Test rivals with the same images of squashfs and erofs instead; needs `cargo xtask peers`
    #[arg(long)]
    rivals: bool,
    /// Program of packfs to test beside them, which is built anew without it
    #[arg(long, value_name = "PATH")]
    packfs: Option<String>,
}

pub fn run(options: Options) -> Result<()> {
    let Options { kind, seed, minutes, case, .. } = options;
    let kinds = shell::capture(program("packfs-mutate").arg("kinds"))?;
    let is_chosen = |name: &&str| kind.as_deref().is_none_or(|kind| kind == *name);
    let formats: Vec<&str> = kinds.lines().filter(is_chosen).collect();
    if formats.is_empty() {
        return Err(Failure::usage(format!(
            "no kind of images; known are {}",
            kinds.lines().collect::<Vec<_>>().join(" ")
        )));
    }
    let images = options.images.unwrap_or(if options.rivals { 3000 } else { 100_000 });
    if options.rivals {
        let formats: Vec<&str> =
            formats.into_iter().filter(|format| ["squashfs", "erofs"].contains(format)).collect();
        return rivals::run(&formats, images, seed, options.packfs.as_deref());
    }

    let folder = workspace::target().join("mutated");
    workspace::make_dir(&folder)?;
    let mut faults = vec![];
    for format in formats {
        let state = folder.join(format!("{format}-{seed}.json"));
        if options.afresh {
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
