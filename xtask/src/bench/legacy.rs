//! `cargo xtask bench legacy`: old formats, unpacked and packed, against the program that each of them has.

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
use crate::rivals::{self, Packfs};
use crate::table::Table;
use crate::{peers, shell};

pub const HELP: &str = "\
Usage: cargo xtask bench legacy [OPTIONS] [WORD...]

  --runs N            measured runs of each program, after one that warms up [3]
  --packfs PATH       measure this program instead of building one
  --scratch DIR       where images and trees are written [/dev/shm]
  --markdown FILE     write the table and all commands

Unpacks a Debian root from Squashfs 2 and 3, ISO 9660 with zisofs, cramfs and cloop, and packs cramfs and cloop, against unsquashfs,
xorriso, fsck.cramfs, mkfs.cramfs, extract_compressed_fs and create_compressed_fs (Debian packages squashfs-tools from `cargo xtask
peers`, xorriso, util-linux-extra, cloop-utils). WORDs choose the rows in whose names all of them are.";

/// `{tree}`, `{share}`, `{image}`, `{disk}` and `{out}` stand for places; `{out}` is gone before each run.
struct Row {
    name: &'static str,
    /// What has to be there first, made by packfs.
    prepare: &'static [&'static str],
    rival: &'static str,
    packfs: &'static str,
    size_max: Option<f64>,
    wall_max: f64,
}

const UNPACK: &str = "packfs unpack --quiet --jobs 2 {image} {out}";
const UNSQUASHFS: &str = "unsquashfs -quiet -no-progress -processors 2 -d {out} {image}";
const DISK: &str = "packfs pack --quiet --lossy {tree} {disk} -f iso9660 --codec none";

const fn unpacking(name: &'static str, prepare: &'static [&'static str], rival: &'static str) -> Row {
    Row { name, prepare, rival, packfs: UNPACK, size_max: None, wall_max: 0.6 }
}

static ROWS: [Row; 8] = [
    unpacking(
        "unpack squashfs 2.1",
        &["packfs pack --quiet --lossy {tree} {image} -f squashfs-legacy -O version=2.1"],
        UNSQUASHFS,
    ),
    unpacking(
        "unpack squashfs 3.1, big-endian",
        &["packfs pack --quiet --lossy {tree} {image} -f squashfs-legacy -O version=3.1 -O endian=big"],
        UNSQUASHFS,
    ),
    unpacking(
        "unpack iso9660 with zisofs",
        &["packfs pack --quiet --lossy {tree} {image} -f iso9660 --codec gzip"],
        "xorriso -report_about FATAL -osirrox on -indev stdio:{image} -extract / {out}",
    ),
    unpacking(
        "unpack iso9660",
        &["packfs pack --quiet --lossy {tree} {image} -f iso9660 --codec none"],
        "xorriso -report_about FATAL -osirrox on -indev stdio:{image} -extract / {out}",
    ),
    unpacking(
        "unpack cramfs",
        &["packfs pack --quiet --lossy {share} {image} -f cramfs -O holes=off"],
        "fsck.cramfs --extract={out} {image}",
    ),
    Row {
        packfs: "packfs cat --outer {image} disk.img > {out}",
        ..unpacking(
            "unpack cloop",
            &[DISK, "packfs pack --quiet {disk} {image} -f cloop"],
            "extract_compressed_fs {image} {out}",
        )
    },
    Row {
        name: "pack cloop",
        prepare: &[DISK],
        rival: "create_compressed_fs -q -t 2 -B 64K -L 9 {disk} {out}",
        packfs: "packfs pack --no-verify --quiet --jobs 2 {disk} {out} -f cloop -b 64K --codec gzip:9",
        size_max: Some(1.0),
        wall_max: 0.7,
    },
    Row {
        name: "pack cramfs",
        prepare: &[],
        rival: "mkfs.cramfs {share} {out}",
        packfs: "packfs pack --no-verify --quiet --jobs 2 --lossy {share} {out} -f cramfs",
        size_max: Some(1.0),
        wall_max: 0.7,
    },
];

pub fn run(mut args: args::Args) -> Result<()> {
    let program = args.option("--packfs")?.map(PathBuf::from);
    let (scratch, markdown) = (args.option("--scratch")?, args.option("--markdown")?);
    let runs = args.number("--runs", 3)?;
    let words = args.finish()?;
    let wanted = outcome::chosen(&ROWS, &words, |row| row.name.to_owned())?;
    let packfs = Packfs::named(program)?;
    session::ensure(vec![Corpus::Debian])?;
    let scratch = Scratch::new(scratch.as_deref().map(Path::new))?;
    let places = Places { packfs: packfs.program().to_owned(), scratch: &scratch };
    let mut table = Table::new(
        &["row", "rival", "wall, s", "packfs", "ratio", "to reach", "CPU", "size", "to reach", "peak, MiB"],
        1,
    );
    let (mut commands, mut missed) = (vec![], vec![]);
    for row in wanted {
        let done = places.measure(row, runs)?;
        table.row(done.cells(row));
        missed.extend(done.missed(row));
        commands.extend([row.rival, row.packfs]);
    }
    println!("{}", table.text());
    if let Some(path) = markdown {
        super::write(Path::new(&path), &outcome::page(&table.markdown(), &commands))?;
    }
    outcome::verdict("missed", &missed)
}

struct Places<'a> {
    packfs: PathBuf,
    scratch: &'a Scratch,
}

/// One row, measured.
struct Done {
    rival: Summary,
    packfs: Summary,
}

impl Places<'_> {
    fn measure(&self, row: &Row, runs: usize) -> Result<Done> {
        for line in row.prepare {
            measure::run(&self.command(line)?.0, None)?;
        }
        let both = [self.command(row.rival)?, self.command(row.packfs)?];
        let mut samples: [Vec<Sample>; 2] = [vec![], vec![]];
        let out = self.scratch.path("out");
        for round in 0..=runs {
            session::warm(&Corpus::Debian.path())?;
            for ((words, stdout), samples) in both.iter().zip(&mut samples) {
                session::remove(&out)?;
                let sample = measure::run(words, stdout.as_deref())?;
                let file = out.metadata().ok().filter(std::fs::Metadata::is_file);
                // The first one only warms up.
                if round > 0 {
                    eprintln!("{:>8.3?}  {}", sample.wall, rivals::spelled(words));
                    samples.push(Sample { output_len: file.map(|file| file.len()), ..sample });
                }
            }
        }
        for name in ["out", "image", "disk"] {
            session::remove(&self.scratch.path(name))?;
        }
        let summary = |samples: &[Sample]| {
            Summary::of(samples).ok_or_else(|| Failure::new("nothing was measured: --runs 0"))
        };
        Ok(Done { rival: summary(&samples[0])?, packfs: summary(&samples[1])? })
    }

    /// The words of a line, and where its standard output goes.
    fn command(&self, line: &str) -> Result<(Vec<OsString>, Option<PathBuf>)> {
        let (line, stdout) = match line.split_once(" > ") {
            Some((line, place)) => (line, Some(self.place(place).into())),
            None => (line, None),
        };
        let mut words = line.split_whitespace();
        let name = words.next().ok_or_else(|| Failure::new("a row without a command"))?;
        let mut command = match name {
            "packfs" => vec![self.packfs.clone().into_os_string()],
            "unsquashfs" => peers::command(name)?.0,
            _ => {
                let found = shell::find_program(name);
                vec![found.ok_or_else(|| Failure::new(format!("{name} is not installed")))?.into_os_string()]
            }
        };
        command.extend(words.map(|word| self.place(word)));
        Ok((command, stdout))
    }

    fn place(&self, word: &str) -> OsString {
        let debian = Corpus::Debian.path();
        let places = [
            ("{tree}", debian.clone()),
            ("{share}", debian.join("usr/share")),
            ("{image}", self.scratch.path("image")),
            ("{disk}", self.scratch.path("disk")),
            ("{out}", self.scratch.path("out")),
        ];
        let fill =
            |word: String, (name, place): &(&str, PathBuf)| word.replace(name, &place.to_string_lossy());
        places.iter().fold(word.to_owned(), fill).into()
    }
}

impl Done {
    fn wall(&self) -> f64 {
        ratio(self.packfs.wall, self.rival.wall)
    }

    fn size(&self) -> Option<f64> {
        Some(len_ratio(self.packfs.output_len?, self.rival.output_len?))
    }

    fn cells(&self, row: &Row) -> Vec<String> {
        let optional = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
        };
        let seconds = |summary: &Summary| format!("{:.3}", summary.wall.as_secs_f64());
        vec![
            row.name.to_owned(),
            row.rival.split_whitespace().next().unwrap_or_default().to_owned(),
            seconds(&self.rival),
            seconds(&self.packfs),
            format!("{:.2}", self.wall()),
            format!("{:.2}", row.wall_max),
            format!("{:.2}", ratio(self.packfs.cpu, self.rival.cpu)),
            optional(self.size(), 4),
            optional(row.size_max, 2),
            format!("{} to {}", self.rival.memory_peak >> 20, self.packfs.memory_peak >> 20),
        ]
    }

    fn missed(&self, row: &Row) -> Vec<String> {
        let mut missed = vec![];
        if self.wall() > row.wall_max {
            missed.push(format!("{}: wall {:.2} > {:.2}", row.name, self.wall(), row.wall_max));
        }
        if let (Some(size), Some(most)) = (self.size(), row.size_max)
            && size > most
        {
            missed.push(format!("{}: size {size:.4} > {most:.2}", row.name));
        }
        missed
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
        let packing = ROWS.iter().find(|row| row.name == "pack cloop").unwrap();
        let done = Done { rival: summary(100, 1000), packfs: summary(71, 1001) };
        assert_eq!(done.missed(packing), ["pack cloop: wall 0.71 > 0.70", "pack cloop: size 1.0010 > 1.00"]);
        assert!(Done { rival: summary(100, 1000), packfs: summary(69, 1000) }.missed(packing).is_empty());
    }

    #[test]
    fn every_row_can_be_chosen() {
        let mut names: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ROWS.len());
    }
}
