//! The table: a row a fact, a column a way.

use packfs_core::{FileType, escaped};
use packfs_testkit::{Fact, Field, Row, Snapshot};
use std::fmt::Write;

/// A way out of an image of a format.
pub struct Column {
    pub format: &'static str,
    pub way: &'static str,
    /// Losses reported for it.
    pub losses: Vec<String>,
}

/// Result of a way.
struct Found {
    column: Column,
    /// For each fact how many names there are, and which of them differ.
    rows: Vec<(usize, Vec<String>)>,
    /// Differences that belong to no fact.
    others: Vec<String>,
}

/// See the module.
pub struct Table {
    facts: &'static [Fact],
    found: Vec<Found>,
    said: Vec<(&'static str, Vec<String>)>,
}

/// Tells each name and field that differs; of a name that only one of them has, its type.
pub fn differences(here: &Snapshot, there: &Snapshot, mut tell: impl FnMut(&[u8], Field)) {
    let (mut a, mut b) = (here.0.iter().peekable(), there.0.iter().peekable());
    while let Some(path) = [a.peek(), b.peek()].into_iter().flatten().map(|(path, _)| *path).min() {
        match (a.next_if(|(own, _)| *own == path), b.next_if(|(own, _)| *own == path)) {
            (Some((_, a)), Some((_, b))) => {
                Field::ALL
                    .into_iter()
                    .filter(|field| !is_same(a, b, *field))
                    .for_each(|field| tell(path, field));
            }
            _ => tell(path, Field::Type),
        }
    }
}

fn is_same(a: &Row, b: &Row, field: Field) -> bool {
    let is_dir = a.file_type == FileType::Directory;
    match field {
        Field::Type => a.file_type == b.file_type,
        // Linux has no permissions on symbolic links.
        Field::Mode => a.file_type == FileType::Symlink || a.mode == b.mode,
        Field::Owner => a.owner == b.owner,
        Field::Seconds => a.mtime.seconds == b.mtime.seconds,
        Field::Fraction => a.mtime.nanos == b.mtime.nanos,
        Field::Content => a.content == b.content && (is_dir || a.len == b.len),
        Field::Device => a.device == b.device,
        Field::Xattrs => a.xattrs == b.xattrs,
        // Not every file system counts the names of directories.
        Field::Links => is_dir || (a.links, &a.first_name) == (b.links, &b.first_name),
        Field::Holes => match (a.stored_len, b.stored_len) {
            // Formats round up to chunks of their own; what is short has no holes worth the name.
            (Some(a_len), Some(b_len)) if a.len >= 2 << 20 && a_len < a.len / 2 => {
                b_len <= a_len + (a.len / 4).min(64 << 20)
            }
            _ => true,
        },
    }
}

fn is_under(path: &[u8], dir: &str) -> bool {
    match dir {
        "" => path.is_empty(),
        _ => path.strip_prefix(dir.as_bytes()).is_some_and(|rest| rest.is_empty() || rest[0] == b'/'),
    }
}

impl Table {
    pub fn new(facts: &'static [Fact]) -> Self {
        Table { facts, found: Vec::new(), said: Vec::new() }
    }

    /// Reports of the packer for a format.
    pub fn said(&mut self, format: &'static str, losses: Vec<String>) {
        self.said.push((format, losses));
    }

    pub fn add(&mut self, column: Column, here: &Snapshot, there: &Snapshot) {
        let mut rows: Vec<(usize, Vec<String>)> = self
            .facts
            .iter()
            .map(|fact| (here.0.keys().filter(|path| is_under(path, fact.under)).count(), Vec::new()))
            .collect();
        let mut others = Vec::new();
        differences(here, there, |path, field| {
            let is_of = |fact: &&Fact| fact.field == field && is_under(path, fact.under);
            // What is not there belongs to the first fact that tells of its directory.
            let is_near = |fact: &&Fact| field == Field::Type && is_under(path, fact.under);
            let fact = self.facts.iter().find(is_of).or_else(|| self.facts.iter().find(is_near));
            let index = fact.and_then(|fact| self.facts.iter().position(|other| std::ptr::eq(fact, other)));
            match index {
                Some(index) => rows[index].1.push(escaped(path).to_string()),
                None => others.push(format!("{field:?} of {:.200}", escaped(path).to_string())),
            }
        });
        self.found.push(Found { column, rows, others });
    }

    /// Panics for whatever is lost without having been told.
    pub fn judge(&self) {
        for Found { column, rows, others } in &self.found {
            let way = format!("{} by {}", column.format, column.way);
            assert!(
                others.is_empty(),
                "{way}: {} differ: {:?}",
                others.len(),
                &others[..others.len().min(20)]
            );
            for (fact, (_, lost)) in self.facts.iter().zip(rows) {
                let told =
                    fact.loss.is_some_and(|words| column.losses.iter().any(|loss| loss.contains(words)));
                // Sockets stand in many places.
                let sockets = column.way == "tar" && lost.iter().all(|name| name.ends_with("socket"));
                // What a compressed file of EROFS takes is not told by the server; what it holds
                // is.
                let unasked = (column.format, column.way, fact.field) == ("erofs", "FUSE", Field::Holes);
                assert!(
                    lost.is_empty() || told || sockets || unasked,
                    "{way}: {}: {} are lost: {:?}",
                    fact.name,
                    lost.len(),
                    &lost[..lost.len().min(10)]
                );
            }
        }
    }

    /// All of it as a document.
    pub fn document(&self) -> String {
        let mut text = String::from(
            "# Fidelity\n\n\
             A tree with all metadata that Linux supports is packed from a directory into an image, and read back: by the kernel's mount, through\n\
             `packfs mount --fuse`, by `packfs unpack`, and by `packfs tar`. Every fact of every name is compared with the directory.\n\
             `cargo xtask fidelity` writes this page, and a test compares it with its findings; a cell with a loss counts the names that lost the fact. SquashFS with zstd,\n\
             EROFS with LZ4. Compressed files of EROFS store holes as clusters of zeros, and a tar of them contains\n\
             zeros, unless nearly all of the file is a hole ([packing.md](../design/packing.md#holes)).\n\n\
             | |",
        );
        for found in &self.found {
            // Writing to a string cannot fail.
            let _ = write!(text, " {}, {} |", found.column.format, found.column.way);
        }
        text.push_str("\n|---|");
        text.push_str(&"---|".repeat(self.found.len()));
        text.push('\n');
        for (index, fact) in self.facts.iter().enumerate() {
            let _ = write!(text, "| {} |", fact.name);
            for found in &self.found {
                let (names, lost) = &found.rows[index];
                let _ = match lost.len() {
                    0 => write!(text, " yes |"),
                    lost => write!(text, " **no**: {lost} of {names} |"),
                };
            }
            text.push('\n');
        }
        text.push_str("| everything else of these names |");
        text.push_str(&" yes |".repeat(self.found.len()));
        text.push_str("\n\n## Reported losses\n\nBefore anything is written, `packfs pack` reports each kind of loss on standard error, once, with the number of names and an\nexample, for any source. For this tree, it ends with exit code 1 without `--lossy` and reports:\n");
        for (format, losses) in &self.said {
            let _ = write!(text, "\n- {format}:");
            if losses.is_empty() {
                text.push_str(" nothing");
            }
            for loss in losses {
                let _ = write!(text, "\n  - {loss}");
            }
        }
        text.push_str(
            "\n\nA tar has no sockets: `packfs tar` warns with their number. Permissions of symbolic links and the link counts of directories\n\
             are not compared, because Linux has none of the former and filesystems differ in the latter. Holes are those\n\
             that a file reports, by its allocated space or by `SEEK_HOLE`; through FUSE, compressed files of EROFS report none.\n",
        );
        text
    }
}
