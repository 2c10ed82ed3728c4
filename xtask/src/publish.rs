//! `cargo xtask publish`: the crates as crates.io would have them, and a program that depends on
//! them.

use std::path::Path;
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::{metadata, shell, workspace};

/// Package all crates, build the packages, and run a program that depends on them
///
/// Publishes nothing: `cargo publish --workspace` does. The program is that of integration/crates;
/// files below target/publish.
#[derive(clap::Args)]
pub struct Options;

pub fn run(Options: Options) -> Result<()> {
    let folder = workspace::target().join("publish");
    let mut publish = metadata::cargo();
    publish.args(["publish", "--workspace", "--dry-run", "--quiet", "--target-dir"]).arg(&folder);
    shell::run(publish.current_dir(workspace::root()))?;
    let outside = folder.join("outside");
    workspace::remove_dir(&outside)?;
    workspace::make_dir(&outside.join("crates"))?;
    let program = workspace::root().join("integration/crates");
    shell::run(
        Command::new("cp").arg("-r").args([program.join("Cargo.toml"), program.join("src")]).arg(&outside),
    )?;
    let mut run = metadata::cargo();
    run.args(["run", "--quiet"]).current_dir(&outside);
    for package in unpack(&folder.join("package"), &outside.join("crates"))? {
        run.args(["--config", &package]);
    }
    shell::run(&mut run)
}

/// Unpacks the packages below a folder into another; returns a patch of crates.io for each.
fn unpack(from: &Path, to: &Path) -> Result<Vec<String>> {
    let is_package = |path: &&std::path::PathBuf| path.extension().is_some_and(|it| it == "crate");
    let mut files = workspace::files_below(from)?;
    // Cargo has a second copy of each, in a registry.
    files.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    files.dedup_by(|a, b| a.file_name() == b.file_name());
    let packages = files.iter().filter(is_package).map(|file| {
        shell::run(Command::new("tar").arg("-xzf").arg(file).arg("-C").arg(to))?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (name, _) = stem.rsplit_once('-').ok_or_else(|| Failure::new(format!("{stem}: no version")))?;
        Ok(format!("patch.crates-io.{name}.path='{}'", to.join(&stem).display()))
    });
    packages.collect()
}
