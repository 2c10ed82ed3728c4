//! The least time that a machine needs for a job, beside what packfs and a rival take.
//!
//! `rates` measures what one processor takes for the parts of a job; a job's limit is the sum of
//! its parts over all processors. Programs run in turn, so that a busy moment meets all of them.

mod rates;

use std::path::{Path, PathBuf};

use packfs::{Result, ResultExt};

use crate::process::{self, Invocation, Output};
use crate::programs::locate;
use crate::scratch::{Mounted, Scratch};
use rates::{CodecRates, Loaded, Rates, median};

const ROUND_TRIPS: u32 = 2000;

/// A job with the least time for it, and the times that were measured.
#[derive(Clone, Debug)]
pub struct Limit {
    /// Verb, format, and codec: `pack squashfs lz4`.
    pub job: String,
    /// Seconds that no program can do without.
    pub least: f64,
    /// Seconds of packfs, each run.
    pub packfs: Vec<f64>,
    /// The rival and its seconds; `None` if it is not here.
    pub rival: Option<(String, Vec<f64>)>,
}

/// Words of command lines: `T` is the tree, `I` its image, `O` a new path, `C` the codec.
struct Job {
    what: &'static str,
    codec: &'static str,
    least: fn(&Rates, &CodecRates, f64) -> f64,
    packfs: &'static str,
    rival: &'static str,
    /// Both serve a mount at `O`; the time is that of a reader of all files.
    serves: bool,
}

const BLOCK_LEN: usize = 128 << 10;
const SQUASHFS: &str = "packfs pack -q --no-verify --format squashfs --codec C T O";
const BY_PATH: &str = "packfs pack -q --no-verify --format squashfs --codec C --order path T O";
const EROFS: &str = "packfs pack -q --no-verify --format erofs --codec C T O";
const MKSQUASHFS: &str = "mksquashfs T O -quiet -no-progress -comp C";

const fn pack(what: &'static str, codec: &'static str, packfs: &'static str, rival: &'static str) -> Job {
    let least = |rates: &Rates, codec: &CodecRates, _: f64| {
        rates.scan + rates.read + codec.encode + rates.write * codec.share
    };
    Job { what, codec, least, packfs, rival, serves: false }
}

const fn unpack(what: &'static str, codec: &'static str) -> Job {
    let least = |rates: &Rates, codec: &CodecRates, _: f64| rates.create + codec.decode;
    let rival = "unsquashfs -quiet -no-progress -dest O I";
    Job { what, codec, least, packfs: "packfs unpack -q I O", rival, serves: false }
}

const fn serve(what: &'static str, codec: &'static str) -> Job {
    // A request a file: names may come with their directories.
    let least = |rates: &Rates, codec: &CodecRates, round_trip: f64| {
        rates.files as f64 * round_trip + codec.decode + rates.read
    };
    let packfs = "packfs mount --fuse --foreground -q I O";
    Job { what, codec, least, packfs, rival: "squashfuse_ll -f I O", serves: true }
}

const JOBS: [Job; 10] = [
    pack("pack squashfs none", "none", SQUASHFS, "mksquashfs T O -quiet -no-progress -noI -noD -noF -noX"),
    pack("pack squashfs lz4", "lz4", SQUASHFS, MKSQUASHFS),
    pack("pack squashfs lz4 --order path", "lz4", BY_PATH, MKSQUASHFS),
    pack("pack erofs lz4", "lz4", EROFS, "mkfs.erofs -zlz4 -C65536 O T"),
    pack("pack squashfs gzip:9", "gzip:9", SQUASHFS, "mksquashfs T O -quiet -no-progress -comp gzip"),
    pack("pack squashfs zstd:15", "zstd:15", SQUASHFS, "mksquashfs T O -quiet -no-progress -comp zstd"),
    unpack("unpack squashfs lz4", "lz4"),
    unpack("unpack squashfs zstd:15", "zstd:15"),
    serve("FUSE squashfs lz4", "lz4"),
    serve("FUSE squashfs zstd:15", "zstd:15"),
];

/// Measures all jobs on a tree, with `runs` runs in turn, in a folder below `scratch`.
///
/// Errors: `Io`; a program that fails, with what it said.
pub fn measure(
    tree: &Path,
    packfs: &Path,
    scratch: &Path,
    runs: u32,
    tell: &dyn Fn(&str),
) -> Result<Vec<Limit>> {
    let scratch = Scratch::new(scratch)?;
    tell("the tree");
    let loaded = Loaded::new(tree)?;
    let rates = loaded.rates(&scratch)?;
    let processors = packfs::processor_count() as f64;
    let mut limits = Vec::new();
    for job in &JOBS {
        tell(job.what);
        let place = Place { tree, packfs, image: scratch.path("image"), new: scratch.path("new") };
        place.clear(&place.image)?;
        let make = SQUASHFS.replace(" O", " I");
        process::run(&place.command(job, &make, packfs), &Output::Null, &[])?;
        let codec = loaded.codec_rates(job.codec, BLOCK_LEN)?;
        let round_trip = if job.serves { place.round_trip(job)? } else { 0.0 };
        let rival = job.rival.split(' ').next().unwrap_or_default();
        let rival_program = locate(rival);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            ours.push(place.run(job, job.packfs, packfs)?);
            if let Some(program) = &rival_program {
                theirs.push(place.run(job, job.rival, program)?);
            }
        }
        limits.push(Limit {
            job: job.what.into(),
            least: (job.least)(&rates, &codec, round_trip) / processors,
            packfs: ours,
            rival: rival_program.map(|_| (rival.to_owned(), theirs)),
        });
    }
    Ok(limits)
}

struct Place<'a> {
    tree: &'a Path,
    packfs: &'a Path,
    image: PathBuf,
    new: PathBuf,
}

impl Place<'_> {
    fn command(&self, job: &Job, line: &str, program: &Path) -> Invocation {
        let words = line.split(' ').skip(1).map(|word| match word {
            "T" => self.tree.as_os_str(),
            "I" => self.image.as_os_str(),
            "O" => self.new.as_os_str(),
            "C" => job.codec.as_ref(),
            word => word.as_ref(),
        });
        Invocation::new(program).args(words)
    }

    fn clear(&self, path: &Path) -> Result<()> {
        let cannot = || format!("cannot remove {path:?}");
        match path.symlink_metadata() {
            Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(path).or_io(cannot),
            Ok(_) => std::fs::remove_file(path).or_io(cannot),
            Err(_) => Ok(()),
        }
    }

    fn run(&self, job: &Job, line: &str, program: &Path) -> Result<f64> {
        self.clear(&self.new)?;
        let command = self.command(job, line, program);
        if !job.serves {
            return Ok(process::run(&command, &Output::Null, &[])?.wall);
        }
        let mounted = self.serve(&command)?;
        let read = Invocation::new("tar").args(["-cf", "-", "-C"]).arg(mounted.at()).arg(".");
        let wall = process::run(&read, &Output::Through(Invocation::new("cat")), &[])?.wall;
        mounted.unmount()?;
        Ok(wall)
    }

    fn serve(&self, command: &Invocation) -> Result<Mounted> {
        std::fs::create_dir(&self.new).or_io(|| format!("cannot create {:?}", self.new))?;
        Mounted::served(command, &self.new)
    }

    fn round_trip(&self, job: &Job) -> Result<f64> {
        self.clear(&self.new)?;
        let mounted = self.serve(&self.command(job, job.packfs, self.packfs))?;
        let all = median(|| {
            (0..ROUND_TRIPS).try_for_each(|_| {
                rustix::fs::statvfs(mounted.at())
                    .map(drop)
                    .or_io(|| format!("cannot look at {:?}", mounted.at()))
            })
        })?;
        mounted.unmount()?;
        Ok(all / f64::from(ROUND_TRIPS))
    }
}
