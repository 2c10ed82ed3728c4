//! `cargo xtask peers`: the newest SquashFS and EROFS tools of Debian sid below `target/peers`.
//!
//! Packages are downloaded and unpacked, never installed, so the host does not change and root is
//! not needed. A script in `target/peers/bin` runs each program with the dynamic loader and the
//! libraries that it was built for.

mod fetch;
mod stamp;
mod wrapper;

use std::ffi::OsString;
use std::path::PathBuf;

use crate::failure::{Failure, Result};
use crate::table::Table;
use crate::{args, workspace};

pub use stamp::{Peer, Stamp};

pub const HELP: &str = "\
Usage: cargo xtask peers [--refresh]

  --refresh   fetch the current packages of Debian again

Writes target/peers/bin/{mksquashfs,unsquashfs,...}, which run on any Linux of this architecture.
Needs debootstrap; as root, installs it with apt-get if it is missing.";

/// Suite of Debian with the newest versions.
const SUITE: &str = "sid";

/// A package with its programs, and the option that prints their version.
struct Package {
    name: &'static str,
    programs: &'static [&'static str],
    version_option: &'static str,
}

const PACKAGES: [Package; 5] = [
    Package {
        name: "squashfs-tools",
        programs: &["mksquashfs", "unsquashfs", "sqfstar", "sqfscat"],
        version_option: "-version",
    },
    Package {
        name: "squashfs-tools-ng",
        programs: &["gensquashfs", "rdsquashfs", "tar2sqfs", "sqfs2tar", "sqfsdiff"],
        version_option: "--version",
    },
    Package {
        name: "erofs-utils",
        programs: &["mkfs.erofs", "fsck.erofs", "dump.erofs"],
        version_option: "--version",
    },
    Package { name: "erofsfuse", programs: &["erofsfuse"], version_option: "--version" },
    // It has no such option; the usage text it prints instead has the version.
    Package { name: "squashfuse", programs: &["squashfuse", "squashfuse_ll"], version_option: "--version" },
];

pub fn run(mut args: args::Args) -> Result<()> {
    let refresh = args.switch("--refresh");
    args.finish_empty()?;
    let stamp = match Stamp::read() {
        Some(stamp) if !refresh && stamp.peers.iter().all(wrapper::is_unpacked) => stamp,
        _ => fetch::fetch()?,
    };
    for peer in &stamp.peers {
        // Written each time: a script has absolute paths, and the checkout may have moved.
        wrapper::write(peer)?;
        wrapper::check(peer)?;
    }
    print!("{}", listing(&stamp));
    Ok(())
}

/// Returns a command that runs a peer without the script, for measurements.
pub fn command(program: &str) -> Result<(Vec<OsString>, Peer)> {
    let stamp = Stamp::read().ok_or_else(|| no_peer(program))?;
    let peer =
        stamp.peers.into_iter().find(|peer| peer.program == program).ok_or_else(|| no_peer(program))?;
    Ok((wrapper::command(program)?, peer))
}

fn no_peer(program: &str) -> Failure {
    Failure::new(format!("cannot find {program}\nhint: run `cargo xtask peers` first"))
}

/// Returns the folder of the unpacked packages.
fn root() -> PathBuf {
    workspace::peers().join("root")
}

fn listing(stamp: &Stamp) -> String {
    let mut table = Table::new(&["peer", "version", "path"], 3);
    for peer in &stamp.peers {
        let path = peer.wrapper().display().to_string();
        table.row(vec![peer.program.clone(), peer.version.clone(), path]);
    }
    table.text()
}
