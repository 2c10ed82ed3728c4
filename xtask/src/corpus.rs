//! `cargo xtask corpus`: the trees that benchmarks pack, below `target/corpora`.
//!
//! All are real data: a Debian root and pieces of its files. What is drawn is drawn from a fixed
//! seed, so the same Debian root gives the same trees. A note beside each tree, written last, says
//! that it is complete.

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
  debian.tar  the same as GNU tar packs it, with extended attributes
  debian-changed  the same with a change in one file of a hundred; needs root
  small100k   100,000 files of 100 bytes to 16 KiB in 1,000 folders, pieces of the Debian root's files
  releases    the Debian roots of bullseye, bookworm and trixie in three folders of one tree
  million     1,000,000 such files in 10,000 folders; 4 GB of disk
  same60k     60,000 different files of 2,000 bytes each in 60 folders, pieces of the same files
  large       one file of 500 MiB, pieces of 4 KiB to 4 MiB of the same files
  bullseye-tar  a folder with one file in it: the bullseye root of releases as GNU tar packs it
  desktop     the files of a Debian 11 with XFCE, unpacked by mmdebstrap; needs root; 3 GB
  linux       the source tree of Linux 6.1 as Debian 12 has it
  media       pictures, music, web fonts and packages of Debian 12, none of which compress

Without names all are made. --refresh makes them anew.";

/// One corpus: a tree, or a file made from one.
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
    /// In an order in which each can be made from those before it.
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

    /// What it holds, making it first if it is not there.
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
        eprintln!("making corpus {}", self.name());
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
