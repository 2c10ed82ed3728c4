//! `cargo xtask bench kernel`: EROFS images of packfs and of mkfs.erofs with the same clusters, mounted by the kernel of
//! this machine, each read from nothing in memory.
//!
//! Images lie on a disk and are mounted through loop devices without direct I/O; before each run the kernel forgets all it
//! keeps of files and the image is mounted anew. What a loop device was asked for is counted too: unlike time it does not
//! depend on what else the machine does.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::case::spell_block_len;
use super::outcome;
use super::read::cold;
use super::scratch::Scratch;
use super::summary::{Summary, ratio};
use super::{measure, session, target};
use crate::corpus::Corpus;
use crate::failure::{Failure, Result};
use crate::mounts::Mounted;
use crate::rivals::{Codec, Format, MkfsErofs, Packfs, Rival, Sharing, Task};
use crate::table::Table;
use crate::{args, shell, workspace};

pub const HELP: &str = "\
Usage: cargo xtask bench kernel [OPTIONS]

  --runs N            measured runs of each, after one that warms up [5]
  --codecs A,B        only these: lz4hc zstd
  --packfs PATH       measure this program instead of building one
  --scratch DIR       where images lie; best a disk [target/images]
  --markdown FILE     write the table

Packs a Debian root with mkfs.erofs and packfs and reads both by the kernel's own mount, cold: only names and inodes
(tar cf /dev/null) and everything (tar | cat). Needs root and `cargo xtask peers`.";

/// What is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// Names and inodes: GNU tar reads no file if it writes to `/dev/null`.
    Metadata,
    /// Every byte.
    Tree,
}

impl Work {
    const ALL: [Self; 2] = [Self::Metadata, Self::Tree];

    fn name(self) -> &'static str {
        if self == Self::Metadata { "metadata" } else { "tree" }
    }

    /// As a shell runs it in the mount.
    fn command(self) -> &'static str {
        if self == Self::Metadata { "tar cf /dev/null ." } else { "tar cf - . | cat >/dev/null" }
    }
}

/// One pair of images.
#[derive(Clone, Copy)]
struct Case {
    codec: Codec,
    cluster_len: u32,
    sharing: Sharing,
}

const LZ4HC: Codec = Codec { name: "lz4hc", level: Some(12) };
const ZSTD: Codec = Codec { name: "zstd", level: Some(3) };

const CASES: [Case; 8] = [
    Case { codec: LZ4HC, cluster_len: 4 << 10, sharing: Sharing::Plain },
    Case { codec: LZ4HC, cluster_len: 4 << 10, sharing: Sharing::InlineTails },
    Case { codec: LZ4HC, cluster_len: 64 << 10, sharing: Sharing::Plain },
    Case { codec: LZ4HC, cluster_len: 64 << 10, sharing: Sharing::InlineTails },
    Case { codec: LZ4HC, cluster_len: 64 << 10, sharing: Sharing::Fragments },
    Case { codec: ZSTD, cluster_len: 64 << 10, sharing: Sharing::Plain },
    Case { codec: ZSTD, cluster_len: 64 << 10, sharing: Sharing::InlineTails },
    Case { codec: ZSTD, cluster_len: 64 << 10, sharing: Sharing::Fragments },
];

impl Case {
    fn label(&self) -> String {
        let cluster = spell_block_len(self.cluster_len);
        format!("{} {cluster} {}", self.codec.label(), self.sharing.name()).trim_end().to_owned()
    }

    fn pack(&self, program: &dyn Rival, image: &Path) -> Result<()> {
        let task = Task::Pack {
            source: Corpus::Debian.path(),
            image: image.to_owned(),
            format: Format::Erofs,
            sharing: self.sharing,
            codec: self.codec,
            block_len: self.cluster_len,
            jobs: 2,
        };
        let words = program.command(&task).ok_or_else(|| Failure::new("packs no EROFS"))?;
        measure::run(&words, None).map(drop)
    }
}

/// What a loop device was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Requests {
    count: u64,
    bytes: u64,
}

/// One run.
struct Sample {
    time: measure::Sample,
    requests: Requests,
}

/// The runs of one work on one program's image.
struct Measured {
    summary: Summary,
    requests: Requests,
}

impl Measured {
    fn of(samples: &[Sample]) -> Result<Self> {
        let times: Vec<_> = samples.iter().map(|sample| sample.time).collect();
        let summary = Summary::of(&times).ok_or_else(|| Failure::new("nothing was measured"))?;
        let mut requests: Vec<_> = samples.iter().map(|sample| sample.requests).collect();
        requests.sort_unstable_by_key(|requests| requests.count);
        let requests = requests.get(requests.len() / 2).copied().unwrap_or_default();
        Ok(Self { summary, requests })
    }
}

pub fn run(mut args: args::Args) -> Result<()> {
    let program = args.option("--packfs")?.map(PathBuf::from);
    let (runs, codecs) = (args.number("--runs", 5)?, args.list("--codecs")?);
    let (scratch, markdown) = (args.option("--scratch")?, args.option("--markdown")?);
    args.finish_empty()?;
    if !shell::is_root() {
        return Err(Failure::new("the kernel mounts for root only\nhint: sudo cargo xtask bench kernel"));
    }
    let packfs = Packfs::named(program)?;
    let mkfs = MkfsErofs::find()?;
    session::ensure(vec![Corpus::Debian])?;
    let parent = scratch.map_or_else(|| workspace::root().join("target/images"), PathBuf::from);
    workspace::make_dir(&parent)?;
    let scratch = super::read::scratch(Some(&parent))?;
    let mut table = Table::new(&HEADINGS, 2);
    let mut missed = vec![];
    for case in
        CASES.iter().filter(|case| codecs.is_empty() || codecs.iter().any(|name| name == case.codec.name))
    {
        let images = [scratch.path("mkfs.erofs.image"), scratch.path("packfs.image")];
        for (program, image) in [&mkfs as &dyn Rival, &packfs].into_iter().zip(&images) {
            session::remove(image)?;
            case.pack(program, image)?;
        }
        for work in Work::ALL {
            let [theirs, ours] = compare(work, &images, &scratch, runs)?;
            missed.extend(report(&mut table, case, work, &theirs, &ours));
        }
    }
    println!("\n{}", table.text());
    if let Some(path) = markdown {
        super::write(Path::new(&path), &table.markdown())?;
    }
    outcome::verdict("missed", &missed)
}

const HEADINGS: [&str; 11] = [
    "image",
    "work",
    "mkfs.erofs",
    "packfs",
    "ratio",
    "target",
    "requests",
    "packfs",
    "KiB",
    "packfs",
    "CPU ratio",
];

/// Adds a row, and tells if the target is missed.
fn report(table: &mut Table, case: &Case, work: Work, theirs: &Measured, ours: &Measured) -> Option<String> {
    let wall = ratio(ours.summary.wall, theirs.summary.wall);
    let allowed = target::kernel_wall_ratio_max(work);
    let millis = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    let cells = vec![
        case.label(),
        work.name().to_owned(),
        millis(theirs.summary.wall),
        millis(ours.summary.wall),
        format!("{wall:.2}"),
        format!("<= {allowed:.2}"),
        theirs.requests.count.to_string(),
        ours.requests.count.to_string(),
        (theirs.requests.bytes >> 10).to_string(),
        (ours.requests.bytes >> 10).to_string(),
        format!("{:.2}", ratio(ours.summary.cpu, theirs.summary.cpu)),
    ];
    eprintln!("{}", cells.join("  "));
    table.row(cells);
    (wall > allowed).then(|| format!("{} {}: {wall:.3} > {allowed:.2}", case.label(), work.name()))
}

/// Both images in turn, once to warm up and then `runs` times.
fn compare(work: Work, images: &[PathBuf; 2], scratch: &Scratch, runs: usize) -> Result<[Measured; 2]> {
    let mut samples = [vec![], vec![]];
    for round in 0..=runs {
        for (image, samples) in images.iter().zip(&mut samples) {
            let sample = read(work, image, &scratch.path("mount"))?;
            if round > 0 {
                samples.push(sample);
            }
        }
    }
    let [theirs, ours] = samples;
    Ok([Measured::of(&theirs)?, Measured::of(&ours)?])
}

/// Reads one image from nothing.
fn read(work: Work, image: &Path, dir: &Path) -> Result<Sample> {
    cold::drop_caches()?;
    cold::load_programs(None, &["sh", "tar", "cat"]);
    let mounted = Mounted::by_loop(Format::Erofs, image, dir)?;
    let before = requests(dir)?;
    let words = ["sh", "-c", r#"cd "$1" && eval "$2""#, "sh"].map(OsString::from);
    let words = [&words[..], &[dir.into(), work.command().into()]].concat();
    let time = measure::run(&words, None)?;
    let after = requests(dir)?;
    mounted.unmount()?;
    let requests = Requests { count: after.count - before.count, bytes: after.bytes - before.bytes };
    Ok(Sample { time, requests })
}

/// What the device that is mounted on `dir` has been asked for so far.
fn requests(dir: &Path) -> Result<Requests> {
    let device = std::os::unix::fs::MetadataExt::dev(
        &dir.metadata().map_err(|error| Failure::io("look at", dir, error))?,
    );
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let path = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
    let text = std::fs::read_to_string(&path).map_err(|error| Failure::io("read", &path, error))?;
    requests_in(&text).ok_or_else(|| Failure::new(format!("{}: {text:?} is unknown", path.display())))
}

/// Linux, `Documentation/block/stat.rst`: the first field counts reads, the third sectors of 512 bytes.
fn requests_in(stat: &str) -> Option<Requests> {
    let fields: Vec<u64> = stat.split_whitespace().map_while(|field| field.parse().ok()).collect();
    Some(Requests { count: *fields.first()?, bytes: fields.get(2)? * 512 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_a_device_was_asked_for() {
        let stat = "     310       12    20480      55        0        0        0        0        0       44       55";
        assert_eq!(requests_in(stat), Some(Requests { count: 310, bytes: 20480 * 512 }));
        assert_eq!(requests_in("no figures"), None);
    }

    #[test]
    fn names_images_by_what_they_are_made_of() {
        let labels = CASES.map(|case| case.label());
        assert_eq!(labels[0], "lz4hc:12 4K");
        assert_eq!(labels[1], "lz4hc:12 4K inline tails");
        assert_eq!(labels[7], "zstd:3 64K fragments");
    }
}
