//! `cargo xtask fidelity`: writes docs/guide/fidelity.md.

use crate::args::Args;
use crate::failure::Result;
use crate::{metadata, shell, workspace};

pub const HELP: &str = "\
Usage: sudo cargo xtask fidelity

Packs a tree with all metadata that Linux supports into every format, reads it back in every way, and
writes the differences to docs/guide/fidelity.md. The test of the same name fails if that file is out
of date. Needs root, /dev/fuse, and a minute.";

/// Runs the test in the mode that writes the document.
pub fn run(args: Args) -> Result<()> {
    args.finish_empty()?;
    let mut cargo = metadata::cargo();
    cargo.args(["test", "--package", "packfs", "--test", "fidelity"]).env("PACKFS_WRITE_DOCUMENTS", "1");
    shell::run(cargo.current_dir(workspace::root()))
}
