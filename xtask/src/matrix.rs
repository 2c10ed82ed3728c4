//! `cargo xtask matrix`: compatibility of EROFS readers with images of packfs and mkfs.erofs.
//!
//! An ignored test of packfs does the work; this verb names its trees and joins its tables.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::{corpus, metadata, shell, workspace};

/// Write docs/formats/interop-erofs.md
///
/// Needs root, `cargo xtask peers`, and the Debian root of `cargo xtask corpus`.
#[derive(clap::Args)]
pub struct Options {
    /// Use only this tree: debian, a Debian root, or odd, a tree of unusual files
    #[arg(long, value_name = "NAME")]
    tree: Option<String>,
    /// Use only these rows, by their names in the table
    #[arg(long, value_name = "A;B", default_value = "")]
    rows: String,
    /// Write the page to this file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// Text above the tables.
const INTRODUCTION: &str = "\
# EROFS compatibility

`cargo xtask matrix` writes this page. Each row is a layout, written by mkfs.erofs and by `packfs pack` with equivalent options. Each reader walks or extracts the whole image, and the result is compared with the tree: names, types, modes, owners, times in
nanoseconds (erofsfuse: whole seconds), link counts, hard links, extended attributes, and the SHA-256 of every file. packfs reads with its library, checks, and unpacks; all three must be correct.

All readers read all images without a difference, except for the exceptions below. `differs`: the reader reports success, but the result differs. `fails`: the reader reports an error. The notes name the faulty program; none is packfs. A test fails if an exception
changes, for better or worse; every test run includes rows that together cover every option.

fsck.erofs 1.9.4 with `--extract --xattrs` loses capabilities, and all attributes of an inode after one with an empty value, with exit status 0. This is not counted as an exception.
";

/// Trees by the name on the command line, with the heading of their table.
const TREES: [(&str, &str); 2] = [("debian", "A Debian root"), ("odd", "A tree of unusual files")];

pub fn run(Options { tree: only, rows, markdown: page }: Options) -> Result<()> {
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

fn readers() -> Result<String> {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy();
    let kernel = release.split('.').take(2).collect::<Vec<_>>().join(".");
    let mkfs = workspace::peers().join("bin/mkfs.erofs");
    let said = shell::capture(std::process::Command::new(&mkfs).arg("--version"))?;
    let version = said.lines().next().unwrap_or_default().trim();
    Ok(format!("Writers: {version} and packfs. Readers: Linux {kernel}, the same erofs-utils, and packfs."))
}

fn table(tree: &str, rows: &str) -> Result<String> {
    let path = match tree {
        "debian" => {
            let debian = corpus::named("debian")?;
            debian.ensure()?;
            debian.path()
        }
        odd => Path::new(odd).to_owned(),
    };
    // The path must be absolute, because the test runs in another folder.
    let table = std::path::absolute(workspace::target().join(format!("erofs-matrix-{tree}.md")))
        .map_err(|error| Failure::io("find", &workspace::target(), error))?;
    let mut command = metadata::cargo();
    command.args(["test", "--quiet", "--package", "packfs", "--test", "packfs", "--"]);
    command
        .args(["--ignored", "--exact", "erofs_matrix::table", "--nocapture"])
        .current_dir(workspace::root());
    command.env("PACKFS_MATRIX_TREE", path).env("PACKFS_MATRIX_TABLE", &table);
    command.env("PACKFS_MATRIX_ROWS", rows).env("PACKFS_PEERS", "required");
    shell::run(&mut command)?;
    std::fs::read_to_string(&table).map_err(|error| Failure::io("read", &table, error))
}
