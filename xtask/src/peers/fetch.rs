//! Downloads the peers' packages with all they need, and unpacks them.
//!
//! A run that fails leaves what was there before: the new tree is made beside the old one and takes its place at the end.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{PACKAGES, Peer, SUITE, Stamp, root};
use crate::debian::Debootstrap;
use crate::failure::{Failure, Result};
use crate::{shell, workspace};

pub fn fetch() -> Result<Stamp> {
    let debootstrap = Debootstrap::find()?;
    let download = workspace::peers().join("download");
    workspace::remove_dir(&download)?;
    workspace::make_dir(&download)?;

    eprintln!("fetching packages of Debian {SUITE} from {}", debootstrap.mirror);
    let wanted: Vec<_> = PACKAGES.iter().map(|package| package.name).collect();
    debootstrap.run(&["--download-only"], &wanted, SUITE, &download)?;

    let archives = archives(&download.join("var/cache/apt/archives"))?;
    let unpacked = download.join("root");
    for archive in archives.values() {
        shell::run_quietly(Command::new("dpkg-deb").arg("--extract").arg(&archive.path).arg(&unpacked))?;
    }
    workspace::remove_dir(&root())?;
    std::fs::rename(&unpacked, root()).map_err(|error| Failure::io("move", &unpacked, error))?;
    workspace::remove_dir(&download)?;

    let stamp = Stamp { mirror: debootstrap.mirror, peers: peers(&archives)? };
    stamp.write()?;
    Ok(stamp)
}

/// A downloaded package.
struct Archive {
    path: PathBuf,
    version: String,
}

/// All downloaded packages by name.
fn archives(dir: &Path) -> Result<HashMap<String, Archive>> {
    let entries = std::fs::read_dir(dir).map_err(|error| Failure::io("list", dir, error))?;
    let mut archives = HashMap::new();
    for entry in entries {
        let path = entry.map_err(|error| Failure::io("list", dir, error))?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if let Some((package, version)) = name_and_version(&name) {
            archives.insert(package, Archive { path, version });
        }
    }
    Ok(archives)
}

/// Reads `squashfs-tools_1%3a4.7.5-1_amd64.deb` as `squashfs-tools` and `1:4.7.5-1`.
fn name_and_version(file_name: &str) -> Option<(String, String)> {
    let mut parts = file_name.strip_suffix(".deb")?.split('_');
    let (name, version) = (parts.next()?, parts.next()?);
    Some((name.to_owned(), version.replace("%3a", ":")))
}

fn peers(archives: &HashMap<String, Archive>) -> Result<Vec<Peer>> {
    let mut peers = vec![];
    for package in &PACKAGES {
        let archive = archives
            .get(package.name)
            .ok_or_else(|| Failure::new(format!("Debian {SUITE} has no package {}", package.name)))?;
        for program in package.programs {
            let (program, package) = ((*program).to_owned(), package.name.to_owned());
            peers.push(Peer { program, package, version: archive.version.clone() });
        }
    }
    Ok(peers)
}

#[cfg(test)]
mod tests {
    use super::name_and_version;

    #[test]
    fn reads_name_and_version_with_epoch_from_a_file_name() {
        let found = name_and_version("squashfs-tools_1%3a4.7.5-1_amd64.deb");
        assert_eq!(found, Some(("squashfs-tools".to_owned(), "1:4.7.5-1".to_owned())));
    }

    #[test]
    fn passes_over_files_that_are_no_packages() {
        assert_eq!(name_and_version("lock"), None);
    }
}
