//! `cargo xtask fidelity`: writes docs/guide/fidelity.md.

use crate::args::Args;
use crate::failure::Result;
use crate::{metadata, shell, workspace};

pub const HELP: &str = "\
Usage: sudo cargo xtask fidelity

Takes a tree of everything that Linux can hold into images and out of them again in every way, and writes what survives as
docs/guide/fidelity.md. The same test fails where that file is not what it finds. Needs root, /dev/fuse and a minute.";

/// Runs the test that finds out, and lets it write.
pub fn run(args: Args) -> Result<()> {
    args.finish_empty()?;
    let mut cargo = metadata::cargo();
    cargo.args(["test", "--package", "packfs", "--test", "fidelity"]).env("PACKFS_WRITE_DOCUMENTS", "1");
    shell::run(cargo.current_dir(workspace::root()))
}
