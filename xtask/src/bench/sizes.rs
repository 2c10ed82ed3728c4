//! `cargo xtask bench sizes`: the two size tables that EROFS's own tools published when they compared themselves with
//! SquashFS, made anew with today's tools and packfs beside them.
//!
//! Only sizes are taken, so nothing runs twice. The options are those of the published tables, and packfs is asked for an
//! image of the same things: without extended attributes and times where the rival leaves them out.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::case::spell_block_len;
use super::outcome;
use super::scratch::Scratch;
use super::summary::len_ratio;
use super::{measure, session};
use crate::args;
use crate::corpus::Corpus;
use crate::failure::{Failure, Result};
use crate::rivals::{self, MkfsErofs, Mksquashfs, Packfs};
use crate::table::Table;

pub const HELP: &str = "\
Usage: cargo xtask bench sizes [OPTIONS]

  --packfs PATH       measure this program instead of building one
  --scratch DIR       where images are written [/dev/shm]
  --markdown FILE     write the tables and all commands

Packs a Debian bullseye root, and one large file (a tar of it), uncompressed and with LZ4 in blocks of 4K to 128K, as
SquashFS and as EROFS, by mksquashfs, mkfs.erofs and packfs.";

/// What is packed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// The tree of a small Debian root.
    Root,
    /// One file.
    File,
}

impl Subject {
    fn corpus(self) -> Corpus {
        if self == Self::Root { Corpus::Releases } else { Corpus::BullseyeTar }
    }

    fn path(self) -> PathBuf {
        let path = self.corpus().path();
        if self == Self::Root { path.join("bullseye") } else { path }
    }
}

/// One row of a table: four images.
struct Row {
    subject: Subject,
    /// None where nothing is compressed.
    cluster_len: Option<u32>,
}

const CLUSTER_LENS: [u32; 4] = [4 << 10, 16 << 10, 64 << 10, 128 << 10];

fn rows() -> Vec<Row> {
    let compressed = |subject| CLUSTER_LENS.map(|len| Row { subject, cluster_len: Some(len) });
    let uncompressed = Row { subject: Subject::Root, cluster_len: None };
    std::iter::once(uncompressed).chain(compressed(Subject::Root)).chain(compressed(Subject::File)).collect()
}

impl Row {
    fn mksquashfs(&self) -> Vec<String> {
        let base = match self.cluster_len {
            None => "-noD -noI -noX -noF -no-duplicates".to_owned(),
            Some(len) => format!("-b {len} -comp lz4 -Xhc"),
        };
        let times = if self.subject == Subject::Root { " -all-time 0" } else { "" };
        split(&format!("-noappend {base} -no-xattrs{times} -no-progress -quiet"))
    }

    fn packfs_squashfs(&self) -> Vec<String> {
        let base = match self.cluster_len {
            None => "--codec lz4 --option uncompressed=all --option duplicates=keep".to_owned(),
            Some(len) => format!("--codec lz4hc:12 --block-size {len}"),
        };
        split(&format!("--format squashfs {base} --no-xattrs{} --quiet", self.packfs_times()))
    }

    fn mkfs_erofs(&self) -> Vec<String> {
        let base = match (self.cluster_len, self.subject) {
            (None, _) => "-T0".to_owned(),
            (Some(len), Subject::Root) => format!("-zlz4hc,12 -C{len} -Efragments -T0"),
            (Some(len), Subject::File) => format!("-zlz4hc,12 -C{len}"),
        };
        split(&format!("--quiet {base}"))
    }

    fn packfs_erofs(&self) -> Vec<String> {
        let base = match (self.cluster_len, self.subject) {
            (None, _) => "--codec none".to_owned(),
            (Some(len), Subject::Root) => {
                format!("--codec lz4hc:12 --block-size {len} --option fragments=tails")
            }
            (Some(len), Subject::File) => {
                format!("--codec lz4hc:12 --block-size {len} --option fragments=off")
            }
        };
        split(&format!("--format erofs {base}{} --quiet", self.packfs_times()))
    }

    fn packfs_times(&self) -> &'static str {
        if self.subject == Subject::Root { " --mtime @0" } else { "" }
    }
}

fn split(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The lengths of a row's four images, and the commands that made them.
struct Sized {
    subject: Subject,
    cluster_len: Option<u32>,
    /// mksquashfs and packfs.
    squashfs: [u64; 2],
    /// mkfs.erofs and packfs.
    erofs: [u64; 2],
    commands: Vec<String>,
}

struct Programs<'a> {
    mksquashfs: Mksquashfs,
    mkfs_erofs: MkfsErofs,
    packfs: &'a Packfs,
}

pub fn run(mut args: args::Args) -> Result<()> {
    let program = args.option("--packfs")?.map(PathBuf::from);
    let (scratch, markdown) = (args.option("--scratch")?, args.option("--markdown")?);
    args.finish_empty()?;
    let packfs = Packfs::named(program)?;
    let programs =
        Programs { mksquashfs: Mksquashfs::find()?, mkfs_erofs: MkfsErofs::find()?, packfs: &packfs };
    session::ensure(vec![Corpus::Releases, Corpus::BullseyeTar])?;
    let scratch = Scratch::new(scratch.as_deref().map(Path::new))?;
    let sized = rows().iter().map(|row| programs.size(row, &scratch)).collect::<Result<Vec<_>>>()?;
    let tables = [Subject::Root, Subject::File].map(|subject| table(&sized, subject));
    println!("{}", tables.each_ref().map(Table::text).join("\n"));
    if let Some(path) = markdown {
        let commands: Vec<_> = sized.iter().flat_map(|row| &row.commands).map(String::as_str).collect();
        let page = outcome::page(&tables.each_ref().map(Table::markdown).join("\n"), &commands);
        super::write(Path::new(&path), &page)?;
    }
    let larger: Vec<_> = sized.iter().flat_map(Sized::larger).collect();
    outcome::verdict("larger than the rival's", &larger)
}

impl Programs<'_> {
    fn size(&self, row: &Row, scratch: &Scratch) -> Result<Sized> {
        let (source, image) = (row.subject.path(), scratch.path("image"));
        let places = [source.clone().into_os_string(), image.clone().into_os_string()];
        let reversed = [image.clone().into_os_string(), source.into_os_string()];
        let command = |start: &[OsString], words: Vec<String>, places: &[OsString; 2], first: bool| {
            let words = words.into_iter().map(OsString::from);
            let places = places.iter().cloned();
            let rest: Vec<_> =
                if first { places.chain(words).collect() } else { words.chain(places).collect() };
            [start, &rest].concat()
        };
        let packfs = self.packfs.start_packing();
        let made = [
            command(self.mksquashfs.start(), row.mksquashfs(), &places, true),
            command(&packfs, row.packfs_squashfs(), &places, true),
            command(self.mkfs_erofs.start(), row.mkfs_erofs(), &reversed, false),
            command(&packfs, row.packfs_erofs(), &places, true),
        ];
        let mut lens = [0; 4];
        for (words, len) in made.iter().zip(&mut lens) {
            super::session::remove(&image)?;
            measure::run(words, None)?;
            *len = image.metadata().map_err(|error| Failure::io("look at", &image, error))?.len();
            eprintln!("{len:>10}  {}", rivals::spelled(words));
        }
        let dir = scratch.dir.display().to_string();
        let commands = made.iter().map(|words| rivals::spelled(words).replace(&dir, "SCRATCH")).collect();
        let [a, b, c, d] = lens;
        let (subject, cluster_len) = (row.subject, row.cluster_len);
        Ok(Sized { subject, cluster_len, squashfs: [a, b], erofs: [c, d], commands })
    }
}

impl Sized {
    fn name(&self) -> String {
        self.cluster_len.map_or_else(|| "uncompressed".to_owned(), spell_block_len)
    }

    /// What of it is larger than what the rival made.
    fn larger(&self) -> Vec<String> {
        let pairs = [("SquashFS", self.squashfs), ("EROFS", self.erofs)];
        let larger = pairs.into_iter().filter(|(_, [theirs, ours])| ours > theirs);
        larger
            .map(|(format, [theirs, ours])| format!("{format} {}: {ours} > {theirs}", self.name()))
            .collect()
    }
}

fn table(sized: &[Sized], subject: Subject) -> Table {
    let mut table =
        Table::new(&["clusters", "mksquashfs", "packfs", "ratio", "mkfs.erofs", "packfs", "ratio"], 1);
    for row in sized.iter().filter(|row| row.subject == subject) {
        let figures = |[theirs, ours]: [u64; 2]| {
            [theirs.to_string(), ours.to_string(), format!("{:.4}", len_ratio(ours, theirs))]
        };
        table.row([&[row.name()][..], &figures(row.squashfs), &figures(row.erofs)].concat());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_for_what_the_published_tables_asked_for() {
        let rows = rows();
        assert_eq!(rows.len(), 9);
        let at = |index: usize| &rows[index];
        let words = |words: Vec<String>| words.join(" ");
        assert_eq!(
            words(at(1).mksquashfs()),
            "-noappend -b 4096 -comp lz4 -Xhc -no-xattrs -all-time 0 -no-progress -quiet"
        );
        assert_eq!(words(at(4).mkfs_erofs()), "--quiet -zlz4hc,12 -C131072 -Efragments -T0");
        assert_eq!(words(at(5).mkfs_erofs()), "--quiet -zlz4hc,12 -C4096");
    }

    #[test]
    fn names_what_is_larger_than_the_rivals() {
        let sized = Sized {
            subject: Subject::Root,
            cluster_len: Some(4096),
            squashfs: [100, 100],
            erofs: [100, 101],
            commands: vec![],
        };
        assert_eq!(sized.larger(), ["EROFS 4K: 101 > 100"]);
    }
}
