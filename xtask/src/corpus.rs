//! `cargo xtask corpus`: benchmark trees below `target/corpora`.
//!
//! All trees are real data, or pieces of files of a Debian root. Random choices have a fixed seed,
//! so the same Debian root gives the same trees. A note beside each tree, written last, marks it
//! as complete.

mod changed;
mod debian;
mod desktop;
mod linux;
mod media;
mod pieces;
mod random;
mod stamp;

use std::path::PathBuf;

use crate::failure::{Failure, Result};
use crate::table::Table;
use crate::{args, workspace};

use stamp::Counts;

pub const HELP: &str = "\
Usage: cargo xtask corpus [--refresh] [NAME...]

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
  media       incompressible files of Debian 12: pictures, music, web fonts, and packages

Without names, all are built. --refresh builds them anew.";

/// A corpus: a tree, or a file made from one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Corpus {
    Debian,
    DebianTar,
    DebianChanged,
    Small100k,
    Million,
    Same60k,
    Releases,
    Large,
    BullseyeTar,
    Desktop,
    Linux,
    Media,
}

impl Corpus {
    /// All corpora; each is made from earlier ones.
    pub const ALL: [Self; 12] = [
        Self::Debian,
        Self::DebianTar,
        Self::DebianChanged,
        Self::Small100k,
        Self::Million,
        Self::Same60k,
        Self::Releases,
        Self::Large,
        Self::BullseyeTar,
        Self::Desktop,
        Self::Linux,
        Self::Media,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Debian => "debian",
            Self::DebianTar => "debian.tar",
            Self::DebianChanged => "debian-changed",
            Self::Small100k => "small100k",
            Self::Million => "million",
            Self::Same60k => "same60k",
            Self::Releases => "releases",
            Self::Large => "large",
            Self::BullseyeTar => "bullseye-tar",
            Self::Desktop => "desktop",
            Self::Linux => "linux",
            Self::Media => "media",
        }
    }

    pub fn named(name: &str) -> Result<Self> {
        let known = || Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|corpus| corpus.name() == name)
            .ok_or_else(|| Failure::usage(format!("no corpus {name:?}; there are {}", known())))
    }

    pub fn path(self) -> PathBuf {
        workspace::corpora().join(self.name())
    }

    /// Returns the counts of the corpus; builds it first if it is missing.
    pub fn ensure(self) -> Result<Counts> {
        match stamp::read(self) {
            Some(counts) if self.path().exists() => Ok(counts),
            _ => self.make(),
        }
    }

    fn make(self) -> Result<Counts> {
        match self {
            Self::Debian | Self::Releases | Self::Desktop | Self::Linux | Self::Media => {}
            Self::BullseyeTar => drop(Self::Releases.ensure()?),
            _ => drop(Self::Debian.ensure()?),
        }
        eprintln!("building corpus {}", self.name());
        stamp::remove(self)?;
        workspace::make_dir(&workspace::corpora())?;
        match self {
            Self::Debian => debian::make_tree(&self.path())?,
            Self::Releases => debian::make_releases(&self.path())?,
            Self::DebianTar => debian::make_tar(&Self::Debian.path(), &self.path())?,
            Self::DebianChanged => changed::make(&Self::Debian.path(), &self.path())?,
            Self::Small100k => pieces::make_small(&Self::Debian.path(), 100_000, &self.path())?,
            Self::Million => pieces::make_small(&Self::Debian.path(), 1_000_000, &self.path())?,
            Self::Same60k => pieces::make_same(&Self::Debian.path(), &self.path())?,
            Self::Large => pieces::make_large(&Self::Debian.path(), &self.path())?,
            Self::BullseyeTar => {
                debian::make_tar_folder(&Self::Releases.path().join("bullseye"), &self.path())?
            }
            Self::Desktop => desktop::make(&self.path())?,
            Self::Linux => linux::make(&self.path())?,
            Self::Media => media::make(&self.path())?,
        }
        let counts = Counts::of(&self.path())?;
        stamp::write(self, counts)?;
        Ok(counts)
    }
}

pub fn run(mut args: args::Args) -> Result<()> {
    let refresh = args.switch("--refresh");
    let names = args.finish()?;
    let named = names.iter().map(|name| Corpus::named(name)).collect::<Result<Vec<_>>>()?;
    let mut table = Table::new(&["corpus", "path", "entries", "bytes"], 2);
    for corpus in Corpus::ALL.into_iter().filter(|corpus| named.is_empty() || named.contains(corpus)) {
        let counts = if refresh { corpus.make()? } else { corpus.ensure()? };
        let path = corpus.path().display().to_string();
        table.row(vec![corpus.name().into(), path, counts.entries.to_string(), counts.bytes.to_string()]);
    }
    print!("{}", table.text());
    Ok(())
}
