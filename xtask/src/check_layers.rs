//! `cargo xtask check-layers`: the shape of the workspace is the one its documents tell.
//!
//! The import table is read from ARCHITECTURE.md itself, so what the file says and what is enforced cannot differ.

mod documents;
mod imports;
mod product;
mod sources;
mod table;

use crate::failure::{Failure, Result};
use crate::{args, metadata, workspace};

pub const HELP: &str = "\
Usage: cargo xtask check-layers

Checks that
  - each crate imports only what the import table of ARCHITECTURE.md allows;
  - the program packfs links nothing of lab/;
  - every crate but codec, image and mount forbids unsafe code;
  - SECURITY.md lists each file with unsafe code, and no other;
  - every path that README.md and ARCHITECTURE.md name exists;
  - no source file is longer than 800 lines.";

pub fn run(args: args::Args) -> Result<()> {
    args.finish_empty()?;
    let workspace = metadata::Workspace::read()?;
    let root = workspace::root();
    let mut faults = imports::check(&workspace, &table::read(&root)?);
    faults.extend(product::check(&root)?);
    faults.extend(sources::check(&workspace, &root)?);
    faults.extend(documents::check(&root)?);
    if faults.is_empty() {
        println!("layers: {} crates keep to ARCHITECTURE.md", workspace.members().count());
        return Ok(());
    }
    Err(Failure::new(format!("{} faults\n  {}", faults.len(), faults.join("\n  "))))
}
