//! `cargo xtask matrix`: which reader of EROFS finds in which image what went in, for packfs and
//! for mkfs.erofs.
//!
//! The work is done by a test of packfs that ordinary runs leave out; this names its trees and puts
//! its tables together.

use std::path::{Path, PathBuf};

use crate::corpus::Corpus;
use crate::failure::{Failure, Result};
use crate::{args, metadata, shell, workspace};

pub const HELP: &str = "\
Usage: cargo xtask matrix [OPTIONS]

  --tree WHICH      only this one: debian, a Debian root, or odd, a tree of odd things
  --rows 'A;B'      only these rows, by the names in the table
  --markdown FILE   where the page is written [docs/formats/interop-erofs.md]

Needs root, `cargo xtask peers` and the Debian root of `cargo xtask corpus`.";

/// What stands above the tables.
const INTRODUCTION: &str = "\
# Who reads whose EROFS images

`cargo xtask matrix` writes this page. Each row is one way to make an image of a tree, asked of mkfs.erofs and of packfs. Each
reader then walks or extracts all of it, and what it finds is compared with the tree: names, types, modes, owners, times to the
nanosecond (erofsfuse tells whole seconds only), link counts and which names are one file, extended attributes, and the SHA-256
of every file. packfs reads all by its library, checks the structure as `packfs check` does and unpacks as `packfs unpack` does;
each of these has to be right.

`ok` means that there is no difference. `differs` means that the reader says that all went well and finds something else; `fails`
means that it gives up. The notes say who is wrong: no such cell is a fault of packfs. The test behind this page knows each of
these cells and fails when one of them changes, whichever way; a part of the second table that leaves no option out is tried in
every run of the tests.

fsck.erofs 1.9.4 with `--extract --xattrs` also loses, in every row and with exit status 0, capabilities and all attributes of an
inode behind one whose value is empty. That is not shown as a difference; all else that it extracts has to be right.
";

/// A tree that is packed: how it is asked for, and the heading of its table.
const TREES: [(&str, &str); 2] = [("debian", "A Debian root"), ("odd", "A tree of odd things")];

pub fn run(mut args: args::Args) -> Result<()> {
    let only = args.option("--tree")?;
    let rows = args.option("--rows")?.unwrap_or_default();
    let page = args.option("--markdown")?.map(PathBuf::from);
    args.finish_empty()?;
    if !shell::is_root() {
        return Err(Failure::new("mounting and owners need root"));
    }
    let is_asked = |name: &str| only.as_deref().is_none_or(|only| only == name);
    if !TREES.iter().any(|(name, _)| is_asked(name)) {
        return Err(Failure::usage("--tree: debian or odd is allowed"));
    }
    let page = page.unwrap_or_else(|| workspace::root().join("docs/formats/interop-erofs.md"));

    let mut text = format!("{INTRODUCTION}\n{}\n", readers()?);
    for (name, heading) in TREES.into_iter().filter(|(name, _)| is_asked(name)) {
        text += &format!("\n## {heading}\n\n{}", table(name, &rows)?);
    }
    std::fs::write(&page, text).map_err(|error| Failure::io("write", &page, error))?;
    println!("{}", page.display());
    Ok(())
}

/// Who reads, in a sentence.
fn readers() -> Result<String> {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy();
    let kernel = release.split('.').take(2).collect::<Vec<_>>().join(".");
    let mkfs = workspace::peers().join("bin/mkfs.erofs");
    let said = shell::capture(std::process::Command::new(&mkfs).arg("--version"))?;
    let version = said.lines().next().unwrap_or_default().trim();
    Ok(format!(
        "Written here by {version} and packfs, read by Linux {kernel}, the same erofs-utils and packfs."
    ))
}

/// The table of one tree, from the test that makes it.
fn table(tree: &str, rows: &str) -> Result<String> {
    let path = match tree {
        "debian" => {
            Corpus::Debian.ensure()?;
            Corpus::Debian.path()
        }
        odd => Path::new(odd).to_owned(),
    };
    // The test runs in another folder.
    let table = std::path::absolute(workspace::target().join(format!("erofs-matrix-{tree}.md")))
        .map_err(|error| Failure::io("find", &workspace::target(), error))?;
    let mut command = metadata::cargo();
    command.args(["test", "--quiet", "--package", "packfs", "--test", "erofs_matrix", "--"]);
    command.args(["--ignored", "--exact", "table", "--nocapture"]).current_dir(workspace::root());
    command.env("PACKFS_MATRIX_TREE", path).env("PACKFS_MATRIX_TABLE", &table);
    command.env("PACKFS_MATRIX_ROWS", rows).env("PACKFS_PEERS", "required");
    shell::run(&mut command)?;
    std::fs::read_to_string(&table).map_err(|error| Failure::io("read", &table, error))
}
