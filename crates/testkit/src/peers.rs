//! Other people's tools: the newest ones if `cargo xtask peers` fetched them, else what is installed.

use std::path::PathBuf;
use std::process::{Command, Output};

/// A tool that is there.
#[derive(Clone, Debug)]
pub struct Peer {
    path: PathBuf,
}

impl Peer {
    /// Runs it. Panics if it cannot be started or fails, with what it printed.
    #[track_caller]
    pub fn run(&self, arguments: &[&dyn AsRef<std::ffi::OsStr>]) -> Output {
        let output = self.command(arguments).output().unwrap_or_else(|e| panic!("{:?}: {e}", self.path));
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?} failed with {}: {text}", self.path, output.status);
        output
    }

    /// Prepares to run it.
    pub fn command(&self, arguments: &[&dyn AsRef<std::ffi::OsStr>]) -> Command {
        let mut command = Command::new(&self.path);
        command.args(arguments);
        command
    }
}

/// Finds a tool. If it is missing the test is skipped visibly, or fails where `PACKFS_PEERS=required`.
pub fn peer(name: &str) -> Option<Peer> {
    let fetched = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers/bin")).join(name);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    let found =
        [fetched].into_iter().chain(folders.map(|folder| folder.join(name))).find(|path| path.is_file());
    if found.is_none() {
        skip(&format!("{name} is missing; `cargo xtask peers` fetches it"));
    }
    found.map(|path| Peer { path })
}

/// Says that a test is skipped, or fails it where `PACKFS_PEERS=required`.
pub fn skip(why: &str) {
    assert!(std::env::var("PACKFS_PEERS").as_deref() != Ok("required"), "PACKFS_PEERS=required, but {why}");
    eprintln!("skipped: {why}");
}

/// Whether the test runs as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
