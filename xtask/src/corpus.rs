//! `cargo xtask corpus`: benchmark trees below `target/corpora`.
//!
//! All trees are real data, or pieces of files of a Debian root. Random choices have a fixed seed,
//! so the same Debian root gives the same trees. A note beside each tree, written last, marks it
//! as complete.

mod changed;
mod debian;
mod packages;
mod pieces;
mod stamp;

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::table::Table;
use crate::workspace;

use stamp::Counts;

const CORPORA: &str = "\
Corpora:
  debian      a debootstrapped Debian 12 root; needs root and debootstrap
  debian.tar  the same root as a tar archive by GNU tar, with extended attributes
  debian-changed  the same root with changes in 1 % of the files; needs root
  small100k   100,000 files of 100 bytes to 16 KiB in 1,000 folders, pieces of the Debian root's files
  releases    Debian roots of bullseye, bookworm, and trixie in three folders
  million     1,000,000 files like those of small100k in 10,000 folders; 4 GB of disk
  same60k     60,000 different files of 2,000 bytes in 60 folders, pieces of the Debian root's files
  large       one file of 500 MiB, pieces of 4 KiB to 4 MiB of the Debian root's files
  bullseye-tar  a folder with one file: the bullseye root of releases as a tar archive by GNU tar
  desktop     files of Debian 11 with XFCE, unpacked by mmdebstrap; needs root; 3 GB
  linux       source tree of Linux 6.1 in Debian 12
  media       incompressible files of Debian 12: pictures, music, web fonts, and packages";

/// Build the benchmark trees in target/corpora
#[derive(clap::Args)]
#[command(after_help = CORPORA)]
pub struct Options {
    /// Names of the trees; all if none is named
    names: Vec<String>,
    /// Build them anew
    #[arg(long)]
    refresh: bool,
}

/// A corpus: a tree, or a file made from one.
#[derive(Clone, Copy)]
pub struct Corpus {
    pub name: &'static str,
    from: Option<&'static str>,
    /// Makes it at the second path from the first.
    make: fn(&Path, &Path) -> Result<()>,
}

const fn corpus(
    name: &'static str,
    from: Option<&'static str>,
    make: fn(&Path, &Path) -> Result<()>,
) -> Corpus {
    Corpus { name, from, make }
}

/// All corpora; each is made from earlier ones.
const ALL: [Corpus; 12] = [
    corpus("debian", None, |_, path| workspace::replace(path, |new| debian::make_root("bookworm", new))),
    corpus("debian.tar", Some("debian"), debian::make_tar),
    corpus("debian-changed", Some("debian"), changed::make),
    corpus("small100k", Some("debian"), |from, path| pieces::make_small(from, 100_000, path)),
    corpus("million", Some("debian"), |from, path| pieces::make_small(from, 1_000_000, path)),
    corpus("same60k", Some("debian"), pieces::make_same),
    corpus("releases", None, |_, path| debian::make_releases(path)),
    corpus("large", Some("debian"), pieces::make_large),
    corpus("bullseye-tar", Some("releases"), |from, path| {
        workspace::replace(path, |new| {
            workspace::make_dir(new)?;
            debian::make_tar(&from.join("bullseye"), &new.join("bullseye.tar"))
        })
    }),
    corpus("desktop", None, |_, path| packages::desktop(path)),
    corpus("linux", None, |_, path| packages::linux(path)),
    corpus("media", None, |_, path| packages::media(path)),
];

pub fn named(name: &str) -> Result<Corpus> {
    let known = || ALL.map(|corpus| corpus.name).join(", ");
    let found = ALL.into_iter().find(|corpus| corpus.name == name);
    found.ok_or_else(|| Failure::usage(format!("no corpus {name:?}; there are {}", known())))
}

impl Corpus {
    pub fn path(self) -> PathBuf {
        workspace::corpora().join(self.name)
    }

    /// Returns the counts of the corpus; builds it first if it is missing.
    pub fn ensure(self) -> Result<Counts> {
        match stamp::read(self) {
            Some(counts) if self.path().exists() => Ok(counts),
            _ => self.make(),
        }
    }

    fn make(self) -> Result<Counts> {
        let from = self.from.map(named).transpose()?;
        from.map(Self::ensure).transpose()?;
        eprintln!("building corpus {}", self.name);
        stamp::remove(self)?;
        workspace::make_dir(&workspace::corpora())?;
        (self.make)(&from.map(Self::path).unwrap_or_default(), &self.path())?;
        let counts = Counts::of(&self.path())?;
        stamp::write(self, counts)?;
        Ok(counts)
    }
}

pub fn run(Options { names, refresh }: Options) -> Result<()> {
    let chosen = names.iter().map(|name| named(name)).collect::<Result<Vec<_>>>()?;
    let mut table = Table::new(&["corpus", "path", "entries", "bytes"], 2);
    let is_chosen =
        |corpus: &Corpus| chosen.is_empty() || chosen.iter().any(|chosen| chosen.name == corpus.name);
    for corpus in ALL.into_iter().filter(is_chosen) {
        let counts = if refresh { corpus.make()? } else { corpus.ensure()? };
        let path = corpus.path().display().to_string();
        table.row(vec![corpus.name.into(), path, counts.entries.to_string(), counts.bytes.to_string()]);
    }
    print!("{}", table.text());
    Ok(())
}
