//! The source with all crates that it depends on, for builds without a network.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::archive;
use crate::failure::{Failure, Result};
use crate::{metadata, shell, workspace};

/// Folder of the crates, as Buildroot calls it: an archive that has it is not vendored again.
const VENDOR: &str = "VENDOR";

/// Packs the last commit with its crates into `folder`.
pub fn pack(folder: &Path, version: &str, time: u64) -> Result<PathBuf> {
    let name = format!("packfs-{version}");
    let tree = folder.join(&name);
    workspace::remove_dir(&tree)?;
    workspace::make_dir(&tree)?;
    let mut git = Command::new("git");
    git.args(["archive", "--format=tar", "HEAD"]).current_dir(workspace::root()).stdout(Stdio::piped());
    let mut child = git.spawn().map_err(|error| Failure::new(format!("cannot run git: {error}")))?;
    let output = child.stdout.take().ok_or_else(|| Failure::new("git archive has no output"))?;
    let mut tar = Command::new("tar");
    let unpacked = tar.arg("-x").arg("-C").arg(&tree).stdin(output).status();
    let archived = child.wait().map_err(|error| Failure::new(format!("git archive: {error}")))?;
    if !archived.success() || !unpacked.is_ok_and(|status| status.success()) {
        return Err(Failure::new("git archive failed"));
    }
    let mut cargo = metadata::cargo();
    cargo.args(["vendor", "--locked", VENDOR]).current_dir(&tree);
    // Cargo prints the settings that make builds use the folder.
    let settings = shell::capture(&mut cargo)?;
    let config = tree.join(".cargo/config.toml");
    let mut file = std::fs::OpenOptions::new();
    let appended = file
        .append(true)
        .open(&config)
        .and_then(|mut file| file.write_all(format!("\n{settings}").as_bytes()));
    appended.map_err(|error| Failure::io("write", &config, error))?;
    let packed = archive::pack(folder, &name, &["tar.gz"], time)?.remove(0);
    let target = folder.join(format!("{name}-vendored.tar.gz"));
    std::fs::rename(&packed, &target).map_err(|error| Failure::io("move", &packed, error))?;
    workspace::remove_dir(&tree)?;
    Ok(target)
}
