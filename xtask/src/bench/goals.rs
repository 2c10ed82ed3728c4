//! `cargo xtask bench goals`: how small images get, and how soon they are made, with what packfs chooses for a goal, against the
//! rival that is asked for the same codec and block.
//!
//! Both run in turn, once to warm up is enough: what is compared are bytes, and times that differ by more than noise.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::measure::{self, Sample};
use super::outcome;
use super::scratch::Scratch;
use super::session;
use super::summary::{Summary, len_ratio, ratio};
use crate::args;
use crate::corpus::Corpus;
use crate::failure::{Failure, Result};
use crate::rivals::{self, MkfsErofs, Mksquashfs, Packfs};
use crate::table::Table;

pub const HELP: &str = "\
Usage: cargo xtask bench goals [OPTIONS] [WORD...]

  --runs N            measured runs of each program [1]
  --packfs PATH       measure this program instead of building one
  --scratch DIR       where images are written [/dev/shm]
  --markdown FILE     write the table and all commands

Packs a Debian bullseye root, three releases in one tree, a desktop's root, and files that do not compress, for a goal of
packfs's and with the rival's own options. WORDs choose the rows in whose names all of them are.";

/// What is packed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Root,
    Releases,
    Desktop,
    Media,
}

impl Subject {
    fn name(self) -> &'static str {
        match self {
            Self::Root => "bullseye",
            Self::Releases => "releases",
            Self::Desktop => "desktop",
            Self::Media => "media",
        }
    }

    fn corpus(self) -> Corpus {
        match self {
            Self::Root | Self::Releases => Corpus::Releases,
            Self::Desktop => Corpus::Desktop,
            Self::Media => Corpus::Media,
        }
    }

    fn path(self) -> PathBuf {
        let path = self.corpus().path();
        if self == Self::Root { path.join("bullseye") } else { path }
    }
}

/// What an image is held against.
#[derive(Clone, Copy)]
enum Against {
    /// mksquashfs with these options; most of its size, and of its time.
    Mksquashfs(&'static str, f64, f64),
    /// The same for mkfs.erofs.
    MkfsErofs(&'static str, f64, f64),
    /// A number of bytes.
    Bytes(u64),
}

struct Row {
    name: &'static str,
    subject: Subject,
    packfs: &'static str,
    against: Against,
}

/// What mkdwarfs -l7 made of the root and of the three releases, in bytes.
const MKDWARFS: [u64; 2] = [35_900_000, 82_000_000];

const fn row(name: &'static str, subject: Subject, packfs: &'static str, against: Against) -> Row {
    Row { name, subject, packfs, against }
}

static ROWS: [Row; 17] = {
    use Against::{Bytes, MkfsErofs, Mksquashfs};
    use Subject::{Desktop, Media, Releases, Root};
    [
        row(
            "squashfs gzip size",
            Root,
            "-f squashfs --codec gzip --optimize size",
            Mksquashfs("-comp gzip", 0.93, 1.0),
        ),
        row(
            "squashfs gzip build",
            Root,
            "-f squashfs --codec gzip --optimize build",
            Mksquashfs("-comp gzip", 0.98, 0.25),
        ),
        row("squashfs gzip 128K", Root, "-f squashfs -b 128K", Mksquashfs("-comp gzip -b 128K", 0.97, 0.9)),
        row("squashfs gzip 1M", Root, "-f squashfs -b 1M", Mksquashfs("-comp gzip -b 1M", 0.92, 0.9)),
        row(
            "squashfs zstd:15 128K",
            Root,
            "-f squashfs --codec zstd:15 -b 128K",
            Mksquashfs("-comp zstd -b 128K", 0.97, 0.9),
        ),
        row(
            "squashfs zstd:15 1M",
            Root,
            "-f squashfs --codec zstd:15 -b 1M",
            Mksquashfs("-comp zstd -b 1M", 0.92, 0.9),
        ),
        row(
            "erofs zstd:3 fragments",
            Root,
            "-f erofs --codec zstd:3",
            MkfsErofs("-zzstd,3 -C65536 -Efragments", 0.97, 0.4),
        ),
        row(
            "erofs lz4hc fragments",
            Root,
            "-f erofs --codec lz4hc:12",
            MkfsErofs("-zlz4hc,12 -C65536 -Efragments", 0.97, 0.6),
        ),
        row(
            "erofs deflate fragments",
            Root,
            "-f erofs --codec deflate:9",
            MkfsErofs("-zdeflate,9 -C65536 -Efragments", 0.97, 0.4),
        ),
        row(
            "squashfs zstd:3 128K",
            Desktop,
            "-f squashfs --codec zstd:3 -b 128K",
            Mksquashfs("-comp zstd -Xcompression-level 3 -b 128K", 0.97, 0.9),
        ),
        row(
            "squashfs zstd:3 1M",
            Desktop,
            "-f squashfs --codec zstd:3 -b 1M",
            Mksquashfs("-comp zstd -Xcompression-level 3 -b 1M", 0.92, 0.9),
        ),
        row(
            "erofs zstd:3 fragments",
            Desktop,
            "-f erofs --codec zstd:3",
            MkfsErofs("-zzstd,3 -C65536 -Efragments", 0.97, 0.4),
        ),
        row(
            "erofs lz4hc fragments",
            Desktop,
            "-f erofs --codec lz4hc:12",
            MkfsErofs("-zlz4hc,12 -C65536 -Efragments", 0.97, 0.6),
        ),
        row("smallest", Root, "-f squashfs --optimize size", Bytes(MKDWARFS[0])),
        row("smallest, max", Root, "-f squashfs --optimize size --effort max", Bytes(MKDWARFS[0])),
        row("smallest", Releases, "-f erofs --optimize size", Bytes(MKDWARFS[1])),
        row("squashfs zstd", Media, "-f squashfs --codec zstd", Mksquashfs("-comp zstd", 1.01, 0.3)),
    ]
};

pub fn run(mut args: args::Args) -> Result<()> {
    let program = args.option("--packfs")?.map(PathBuf::from);
    let (scratch, markdown) = (args.option("--scratch")?, args.option("--markdown")?);
    let runs = args.number("--runs", 1)?;
    let words = args.finish()?;
    let wanted = outcome::chosen(&ROWS, &words, label)?;
    let packfs = Packfs::named(program)?;
    let programs = Programs { mksquashfs: Mksquashfs::find()?, mkfs_erofs: MkfsErofs::find()?, packfs };
    let used = |corpus: &Corpus| wanted.iter().any(|row| row.subject.corpus() == *corpus);
    session::ensure(Corpus::ALL.into_iter().filter(used).collect())?;
    let scratch = Scratch::new(scratch.as_deref().map(Path::new))?;
    let mut table = Table::new(&["row", "rival", "packfs", "size", "to reach", "wall", "to reach", "CPU"], 1);
    let (mut commands, mut missed) = (vec![], vec![]);
    for row in wanted {
        let done = programs.measure(row, runs, &scratch)?;
        table.row(done.cells(row));
        missed.extend(done.missed(row));
        commands.extend(done.commands);
    }
    println!("{}", table.text());
    if let Some(path) = markdown {
        super::write(Path::new(&path), &outcome::page(&table.markdown(), &commands))?;
    }
    outcome::verdict("missed", &missed)
}

fn label(row: &Row) -> String {
    format!("{} {}", row.subject.name(), row.name)
}

struct Programs {
    mksquashfs: Mksquashfs,
    mkfs_erofs: MkfsErofs,
    packfs: Packfs,
}

/// One row, measured.
struct Done {
    rival: Option<Summary>,
    packfs: Summary,
    commands: Vec<String>,
}

impl Programs {
    fn measure(&self, row: &Row, runs: usize, scratch: &Scratch) -> Result<Done> {
        let image = scratch.path("image");
        let ours = self.packfs_command(row, &image);
        let theirs = self.rival_command(row, &image);
        let all: Vec<_> = std::iter::once(&ours).chain(&theirs).collect();
        let mut samples: Vec<Vec<Sample>> = vec![vec![]; all.len()];
        for _ in 0..runs {
            for (words, samples) in all.iter().zip(&mut samples) {
                session::remove(&image)?;
                session::warm(&row.subject.path())?;
                let sample = measure::run(words, None)?;
                let len = image.metadata().map_err(|error| Failure::io("look at", &image, error))?.len();
                eprintln!("{len:>10}  {:>8.2?}  {}", sample.wall, rivals::spelled(words));
                samples.push(Sample { output_len: Some(len), ..sample });
            }
        }
        let dir = scratch.dir.display().to_string();
        let commands = all.iter().map(|words| rivals::spelled(words).replace(&dir, "SCRATCH")).collect();
        let packfs = Summary::of(&samples[0]).ok_or_else(|| Failure::new("nothing was measured"))?;
        Ok(Done { rival: samples.get(1).and_then(|samples| Summary::of(samples)), packfs, commands })
    }

    fn packfs_command(&self, row: &Row, image: &Path) -> Vec<OsString> {
        let places = [row.subject.path().into_os_string(), image.into()];
        [self.packfs.start_packing(), places.to_vec(), split(row.packfs), split("--jobs 2 --quiet")].concat()
    }

    fn rival_command(&self, row: &Row, image: &Path) -> Option<Vec<OsString>> {
        let source = row.subject.path().into_os_string();
        Some(match row.against {
            Against::Mksquashfs(options, ..) => {
                let places = vec![source, image.into()];
                let usual = split("-noappend -processors 2 -no-progress -quiet");
                [self.mksquashfs.start().to_vec(), places, split(options), usual].concat()
            }
            Against::MkfsErofs(options, ..) => {
                let places = vec![image.into(), source];
                [self.mkfs_erofs.start().to_vec(), split("--quiet --workers=2"), split(options), places]
                    .concat()
            }
            Against::Bytes(_) => return None,
        })
    }
}

fn split(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(OsString::from).collect()
}

impl Done {
    /// Size and time as parts of the rival's.
    fn ratios(&self, row: &Row) -> (f64, Option<f64>) {
        let ours = self.packfs.output_len.unwrap_or(0);
        match (row.against, &self.rival) {
            (Against::Bytes(bytes), _) => (len_ratio(ours, bytes), None),
            (_, Some(rival)) => {
                let theirs = rival.output_len.unwrap_or(0);
                (len_ratio(ours, theirs), Some(ratio(self.packfs.wall, rival.wall)))
            }
            (_, None) => (f64::NAN, None),
        }
    }

    fn cells(&self, row: &Row) -> Vec<String> {
        let (size, wall) = self.ratios(row);
        let (size_max, wall_max) = limits(row);
        let rival = match (row.against, &self.rival) {
            (Against::Bytes(bytes), _) => bytes.to_string(),
            (_, rival) => rival.as_ref().and_then(|rival| rival.output_len).unwrap_or(0).to_string(),
        };
        let optional =
            |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
        vec![
            label(row),
            rival,
            self.packfs.output_len.unwrap_or(0).to_string(),
            format!("{size:.4}"),
            format!("{size_max:.2}"),
            optional(wall),
            optional(wall_max),
            optional(self.rival.as_ref().map(|rival| ratio(self.packfs.cpu, rival.cpu))),
        ]
    }

    fn missed(&self, row: &Row) -> Vec<String> {
        let (size, wall) = self.ratios(row);
        let (size_max, wall_max) = limits(row);
        let mut missed = vec![];
        if size > size_max {
            missed.push(format!("{}: size {size:.4} > {size_max:.2}", label(row)));
        }
        if let (Some(wall), Some(wall_max)) = (wall, wall_max)
            && wall > wall_max
        {
            missed.push(format!("{}: wall {wall:.2} > {wall_max:.2}", label(row)));
        }
        missed
    }
}

/// The most of the rival's size, and of its time where that is compared.
fn limits(row: &Row) -> (f64, Option<f64>) {
    match row.against {
        Against::Mksquashfs(_, size, wall) | Against::MkfsErofs(_, size, wall) => (size, Some(wall)),
        Against::Bytes(_) => (1.0, None),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn summary(millis: u64, len: u64) -> Summary {
        let wall = Duration::from_millis(millis);
        Summary { wall, cpu: wall, memory_peak: 0, output_len: Some(len) }
    }

    #[test]
    fn says_what_is_missed_and_by_how_much() {
        let done = Done { rival: Some(summary(100, 1000)), packfs: summary(95, 940), commands: vec![] };
        assert_eq!(done.missed(&ROWS[0]), ["bullseye squashfs gzip size: size 0.9400 > 0.93"]);
        let done = Done { rival: None, packfs: summary(95, MKDWARFS[0]), commands: vec![] };
        let smallest = ROWS.iter().find(|row| row.name == "smallest").unwrap();
        assert!(done.missed(smallest).is_empty());
        assert_eq!(done.cells(smallest)[3..], ["1.0000", "1.00", "-", "-", "-"]);
    }

    #[test]
    fn every_row_can_be_chosen() {
        let mut labels: Vec<_> = ROWS.iter().map(label).collect();
        labels.sort();
        labels.dedup();
        assert_eq!(labels.len(), ROWS.len());
    }
}
