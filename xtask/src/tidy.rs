//! `cargo xtask tidy`: rules of the house that a program can check, one table of them with reasons.
//!
//! The import table is read from ARCHITECTURE.md and the list of unsafe files from SECURITY.md, so
//! the documents and the rules cannot differ. A rule that is not kept everywhere yet has a most
//! number of faults, which may only become lower.

mod circles;
mod counts;
mod documents;
mod format_names;
mod imports;
mod product;
mod pure_formats;
mod sources;
mod table;

use std::path::Path;

use crate::failure::{Failure, Result};
use crate::{args, metadata, workspace};

pub const HELP: &str = "\
Usage: cargo xtask tidy [--list]

Checks the rules of the house: imports between crates and between modules, unsafe code,
names of formats, lengths, and paths in documents.

  --list   print the rules and their reasons";

/// A rule, and the faults it finds.
struct Rule {
    name: &'static str,
    why: &'static str,
    faults: fn(&Subject<'_>) -> Result<Vec<String>>,
}

/// The sources that rules look at.
struct Subject<'a> {
    root: &'a Path,
    workspace: &'a metadata::Workspace,
    files: &'a [sources::File],
}

const RULES: [Rule; 10] = [
    Rule {
        name: "imports between crates",
        why: "everything flows one way; the table of ARCHITECTURE.md says which",
        faults: |subject| Ok(imports::check(subject.workspace, &table::read(subject.root)?)),
    },
    Rule {
        name: "product",
        why: "the program packfs links nothing of lab/",
        faults: |subject| product::check(subject.root),
    },
    Rule {
        name: "circles of modules",
        why: "a module that needs another needs nothing of those that need it",
        faults: |subject| Ok(circles::check(subject.files)),
    },
    Rule {
        name: "forbidden unsafe code",
        why: "crates without C libraries and system calls need none",
        faults: |subject| sources::forbid(subject.workspace, subject.root),
    },
    Rule {
        name: "listed unsafe code",
        why: "SECURITY.md lists every file with unsafe code, and no other",
        faults: |subject| sources::unsafe_files(subject.root, subject.files),
    },
    Rule {
        name: "pure formats",
        why: "formats map bytes: no thread, no file of the host, no figure of an image that is cut or an index",
        faults: |subject| Ok(pure_formats::check(subject.files)),
    },
    Rule {
        name: "names of formats",
        why: "a format is told by FormatInfo; a name in other code makes it a special case",
        faults: |subject| Ok(format_names::check(subject.files)),
    },
    Rule {
        name: "length of files",
        why: "a longer file holds more than one idea",
        faults: |subject| Ok(sources::too_long(subject.files)),
    },
    Rule {
        name: "counts",
        why: "short functions, narrow comments, and sentences that begin with their subject or verb",
        faults: |subject| Ok(counts::check(subject.files)),
    },
    Rule {
        name: "paths in documents",
        why: "a document that names a file that is gone is wrong elsewhere, too",
        faults: |subject| documents::check(subject.root),
    },
];

pub fn run(mut args: args::Args) -> Result<()> {
    let lists = args.switch("--list");
    args.finish_empty()?;
    if lists {
        RULES.iter().for_each(|rule| println!("{}: {}", rule.name, rule.why));
        return Ok(());
    }
    let (root, workspace) = (workspace::root(), metadata::Workspace::read()?);
    let files = sources::read_all(&root)?;
    let subject = Subject { root: &root, workspace: &workspace, files: &files };
    let mut faults = vec![];
    for rule in &RULES {
        faults.extend((rule.faults)(&subject)?.into_iter().map(|fault| format!("{}: {fault}", rule.name)));
    }
    if faults.is_empty() {
        println!("tidy: {} files keep to {} rules", files.len(), RULES.len());
        return Ok(());
    }
    Err(Failure::new(format!("{} faults\n  {}", faults.len(), faults.join("\n  "))))
}
