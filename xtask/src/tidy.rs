//! `cargo xtask tidy`: a table of project rules that a program can check, with reasons.
//!
//! The import table comes from ARCHITECTURE.md and the list of unsafe files from SECURITY.md, so
//! documents and rules cannot differ. A rule with remaining faults has a maximum number of them,
//! which may only decrease.

mod circles;
mod counts;
mod documents;
mod falling;
mod format_names;
mod imports;
mod marks;
mod measures;
mod option_names;
mod product;
mod pure_formats;
mod schemes;
mod sources;
mod table;

use std::path::Path;

use crate::failure::{Failure, Result};
use crate::{changelog, metadata, workspace};

/// Check imports, unsafe code, lengths, and paths in documents
///
/// Checks project rules: imports between crates and modules, unsafe code, names of formats,
/// lengths, and paths in documents.
#[derive(clap::Args, Default)]
pub struct Options {
    /// Print the rules and their reasons
    #[arg(long)]
    list: bool,
    /// Write the measures that have fallen to xtask/falling.txt
    #[arg(long, conflicts_with = "list")]
    lower: bool,
}

struct Rule {
    name: &'static str,
    why: &'static str,
    faults: fn(&Subject<'_>) -> Result<Vec<String>>,
}

struct Subject<'a> {
    root: &'a Path,
    workspace: &'a metadata::Workspace,
    files: &'a [sources::File],
}

const RULES: &[Rule] = &[
    Rule {
        name: "imports between crates",
        why: "dependencies have one direction, that of the table in ARCHITECTURE.md",
        faults: |subject| Ok(imports::check(subject.workspace, &table::read(subject.root)?)),
    },
    Rule {
        name: "product",
        why: "the program packfs links no crate of lab/",
        faults: |subject| product::check(subject.root),
    },
    Rule {
        name: "circles of modules",
        why: "modules do not depend on each other in cycles",
        faults: |subject| Ok(circles::check(subject.files)),
    },
    Rule {
        name: "forbidden unsafe code",
        why: "crates without C libraries and system calls need no unsafe code",
        faults: |subject| sources::forbid(subject.workspace, subject.root),
    },
    Rule {
        name: "listed unsafe code",
        why: "SECURITY.md lists every file with unsafe code, and no other",
        faults: |subject| sources::unsafe_files(subject.root, subject.files),
    },
    Rule {
        name: "pure formats",
        why: "formats only map bytes: no threads, no host files, no truncating casts or indexing with image data",
        faults: |subject| Ok(pure_formats::check(subject.files)),
    },
    Rule {
        name: "names of formats",
        why: "FormatInfo describes a format; its name in other code is a special case",
        faults: |subject| Ok(format_names::check(subject.files)),
    },
    Rule {
        name: "marks of layers",
        why: "what hides an entry of a lower layer is said once, for all that put layers over each other",
        faults: |subject| Ok(marks::check(subject.files)),
    },
    Rule {
        name: "schemes",
        why: "a scheme of places is named once, so that a new one is a row and a file",
        faults: |subject| Ok(schemes::check(subject.files)),
    },
    Rule {
        name: "names of options",
        why: "an option is a row of a table; its name in other code is a second place to keep up to date",
        faults: |subject| Ok(option_names::check(subject.files)),
    },
    Rule {
        name: "length of files",
        why: "a longer file holds more than one idea",
        faults: |subject| Ok(sources::too_long(subject.files)),
    },
    Rule {
        name: "counts",
        why: "functions are short, comments narrow and impersonal, and doc comments open with a noun or verb",
        faults: |subject| Ok(counts::check(subject.files)),
    },
    Rule {
        name: "falling",
        why: "code, comments on private items, words of the dialect and other faults of a crate only get fewer",
        faults: |subject| falling::check(subject.root, subject.files),
    },
    Rule {
        name: "changes",
        why: "a file of changelog.d becomes a part of CHANGELOG.md as it is",
        faults: |subject| changelog::check(subject.root),
    },
    Rule {
        name: "paths in documents",
        why: "a document that names a missing file is out of date",
        faults: |subject| documents::check(subject.root),
    },
];

pub fn run(Options { list, lower }: Options) -> Result<()> {
    if list {
        RULES.iter().for_each(|rule| println!("{}: {}", rule.name, rule.why));
        return Ok(());
    }
    let (root, workspace) = (workspace::root(), metadata::Workspace::read()?);
    let files = sources::read_all(&root)?;
    if lower {
        return falling::lower(&root, &files);
    }
    let subject = Subject { root: &root, workspace: &workspace, files: &files };
    let mut faults = vec![];
    for rule in RULES {
        faults.extend((rule.faults)(&subject)?.into_iter().map(|fault| format!("{}: {fault}", rule.name)));
    }
    if faults.is_empty() {
        println!("tidy: {} files keep to {} rules", files.len(), RULES.len());
        return Ok(());
    }
    Err(Failure::new(format!("{} faults\n  {}", faults.len(), faults.join("\n  "))))
}
