//! `cargo xtask peers`: the newest tools of filesystems of Debian sid below `target/peers`.
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
use crate::workspace;

pub use stamp::{Peer, Stamp};

/// Fetch Debian's newest SquashFS and EROFS tools
///
/// Writes target/peers/bin/{mksquashfs,unsquashfs,...}, which run on any Linux of this
/// architecture. Needs debootstrap; as root, installs it with apt-get if it is missing.
#[derive(clap::Args, Default)]
pub struct Options {
    /// Fetch the current packages of Debian again
    #[arg(long)]
    refresh: bool,
}

/// Suite of Debian with the newest versions.
const SUITE: &str = "sid";

struct Package {
    name: &'static str,
    programs: &'static [&'static str],
    /// `None` for programs that state no version.
    version_option: Option<&'static str>,
}

const PACKAGES: [Package; 9] = [
    Package {
        name: "squashfs-tools",
        programs: &["mksquashfs", "unsquashfs", "sqfstar", "sqfscat"],
        version_option: Some("-version"),
    },
    Package {
        name: "squashfs-tools-ng",
        programs: &["gensquashfs", "rdsquashfs", "tar2sqfs", "sqfs2tar", "sqfsdiff"],
        version_option: Some("--version"),
    },
    Package {
        name: "erofs-utils",
        programs: &["mkfs.erofs", "fsck.erofs", "dump.erofs"],
        version_option: Some("--version"),
    },
    Package { name: "erofsfuse", programs: &["erofsfuse"], version_option: Some("--version") },
    // It has no such option; the usage text it prints instead has the version.
    Package {
        name: "squashfuse",
        programs: &["squashfuse", "squashfuse_ll"],
        version_option: Some("--version"),
    },
    // Filesystems that are read: their newest features are not in the tools of older distributions.
    Package { name: "e2fsprogs", programs: &["mke2fs", "debugfs", "e2fsck"], version_option: Some("-V") },
    Package { name: "xfsprogs", programs: &["mkfs.xfs", "xfs_db", "xfs_repair"], version_option: Some("-V") },
    Package { name: "composefs", programs: &["mkcomposefs", "composefs-info"], version_option: None },
    Package { name: "btrfs-progs", programs: &["mkfs.btrfs", "btrfs"], version_option: Some("--version") },
];

pub fn run(Options { refresh }: Options) -> Result<()> {
    let stamp = match Stamp::read() {
        Some(stamp) if !refresh && is_complete(&stamp) => stamp,
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

/// Returns true if every program was fetched and is still there.
fn is_complete(stamp: &Stamp) -> bool {
    let mut programs = PACKAGES.iter().flat_map(|package| package.programs);
    let is_there = |peer: &Peer| wrapper::is_unpacked(peer);
    programs.all(|&program| stamp.peers.iter().any(|peer| peer.program == program && is_there(peer)))
}

pub fn fetches(program: &str) -> bool {
    PACKAGES.iter().any(|package| package.programs.contains(&program))
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
