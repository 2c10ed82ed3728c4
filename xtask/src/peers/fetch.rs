//! Downloads the packages of the peers with their dependencies, and unpacks them.
//!
//! The new tree is written beside the old one and replaces it at the end, so a failed run keeps the
//! old tree.

use std::collections::HashMap;

use super::{PACKAGES, Peer, SUITE, Stamp, root};
use crate::debian::{self, Archive, Debootstrap};
use crate::failure::{Failure, Result};
use crate::workspace;

pub fn fetch() -> Result<Stamp> {
    let debootstrap = Debootstrap::find()?;
    let download = workspace::peers().join("download");
    workspace::remove_dir(&download)?;
    workspace::make_dir(&download)?;

    eprintln!("fetching packages of Debian {SUITE} from {}", debootstrap.mirror);
    let wanted: Vec<_> = PACKAGES.iter().map(|package| package.name).collect();
    debootstrap.run(&["--download-only"], &wanted, SUITE, &download)?;

    let archives = debian::downloaded(&download)?;
    let unpacked = download.join("root");
    for archive in archives.values() {
        debian::extract(archive, &unpacked)?;
    }
    workspace::remove_dir(&root())?;
    std::fs::rename(&unpacked, root()).map_err(|error| Failure::io("move", &unpacked, error))?;
    workspace::remove_dir(&download)?;

    let stamp = Stamp { mirror: debootstrap.mirror, peers: peers(&archives)? };
    stamp.write()?;
    Ok(stamp)
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
