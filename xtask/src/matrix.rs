//! `cargo xtask matrix`: which reader of EROFS finds in which image what went in, for packfs and for mkfs.erofs.
//!
//! The work is done by a test of packfs that ordinary runs leave out; this names its tree and where its table goes.

use std::path::PathBuf;

use crate::corpus::Corpus;
use crate::failure::{Failure, Result};
use crate::{args, metadata, shell, workspace};

pub const HELP: &str = "\
Usage: cargo xtask matrix [OPTIONS]

  --odd             every row with a tree of odd things instead of some with a Debian root
  --rows 'A;B'      only these rows, by the names in the table
  --markdown FILE   where the table is written [target/erofs-matrix.md]

Needs root, `cargo xtask peers` and the Debian root of `cargo xtask corpus`.";

pub fn run(mut args: args::Args) -> Result<()> {
    let is_odd = args.switch("--odd");
    let rows = args.option("--rows")?.unwrap_or_default();
    let table = args.option("--markdown")?.map(PathBuf::from);
    args.finish_empty()?;
    if !shell::is_root() {
        return Err(Failure::new("mounting and owners need root"));
    }
    let tree = if is_odd {
        PathBuf::from("odd")
    } else {
        Corpus::Debian.ensure()?;
        Corpus::Debian.path()
    };
    let table = table.unwrap_or_else(|| workspace::target().join("erofs-matrix.md"));
    // The test runs in another folder.
    let table = std::path::absolute(&table).map_err(|error| Failure::io("find", &table, error))?;

    let mut command = metadata::cargo();
    command.args(["test", "--quiet", "--package", "packfs", "--test", "erofs_matrix", "--"]);
    command.args(["--ignored", "--exact", "table", "--nocapture"]).current_dir(workspace::root());
    command.env("PACKFS_MATRIX_TREE", tree).env("PACKFS_MATRIX_TABLE", &table);
    command.env("PACKFS_MATRIX_ROWS", rows).env("PACKFS_PEERS", "required");
    shell::run(&mut command)?;
    println!("{}", table.display());
    Ok(())
}
