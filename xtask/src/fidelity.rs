//! `cargo xtask fidelity`: writes docs/guide/fidelity.md.

use crate::failure::Result;
use crate::{metadata, shell, workspace};

/// Write docs/guide/fidelity.md
///
/// Packs a tree with all metadata that Linux supports into every format, reads it back in every
/// way, and writes the differences. The test of the same name fails if that file is out of date.
/// Needs root, /dev/fuse, and a minute.
#[derive(clap::Args)]
pub struct Options;

pub fn run(_: Options) -> Result<()> {
    let mut cargo = metadata::cargo();
    cargo.args(["test", "--package", "packfs", "--test", "packfs", "fidelity::"]);
    cargo.env("PACKFS_WRITE_DOCUMENTS", "1");
    shell::run(cargo.current_dir(workspace::root()))
}
