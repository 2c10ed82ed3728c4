//! `cargo xtask instructions`: counts the instructions of jobs of the program, and compares them
//! with those in `xtask/instructions.txt`.
//!
//! A count does not depend on what else the machine does, so it shows changes that times do not. It
//! depends on the compiler, the C library, and the processor, which the file names.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::{metadata, shell, workspace};

/// Count instructions of the program, and compare them with the listed ones
#[derive(clap::Args, Default)]
pub struct Options {
    /// Write the list
    #[arg(long)]
    write: bool,
}

const LIST: &str = "xtask/instructions.txt";
/// Most difference from the listed count, in percent.
const TOLERANCE: u64 = 1;
// `rep movsb` counts as an instruction a byte, and clearing depends on what threads have freed.
const NO_REP: &str =
    "glibc.cpu.x86_rep_stosb_threshold=0x40000000:glibc.cpu.x86_rep_movsb_threshold=0x40000000";

/// Arguments of packfs, in a folder with the tree `T` and the results of earlier jobs.
const JOBS: [&str; 20] = [
    "pack T none.sqfs --format squashfs --codec none",
    "pack T lz4.sqfs --format squashfs --codec lz4",
    "pack T gzip.sqfs --format squashfs --codec gzip:6",
    "pack T zstd.sqfs --format squashfs --codec zstd:3",
    "pack T xz.sqfs --format squashfs --codec xz:1",
    "pack T none.erofs --format erofs --codec none",
    "pack T lz4.erofs --format erofs --codec lz4",
    "pack T lz4hc.erofs --format erofs --codec lz4hc:9",
    "pack T zstd.erofs --format erofs --codec zstd:3",
    "pack T T.iso --format iso9660",
    "pack T T.cramfs --format cramfs",
    "unpack lz4.sqfs from-lz4",
    "unpack xz.sqfs from-xz",
    "unpack zstd.erofs from-erofs",
    "ls -lR gzip.sqfs",
    "check --data zstd.sqfs",
    "digest lz4hc.erofs",
    "diff lz4.sqfs lz4.erofs",
    "tar zstd.sqfs -o T.tar",
    "merge --at a=zstd.sqfs --at b=zstd.sqfs -o merged.sqfs",
];

pub fn run(Options { write }: Options) -> Result<()> {
    if write {
        let text = printed(&toolchain()?, &counts()?);
        return std::fs::write(path(), text).map_err(|error| Failure::io("write", &path(), error));
    }
    compare()?.map_or(Ok(()), |why| Err(Failure::new(why)))
}

/// Returns the reason why nothing was compared, if there is one.
pub fn compare() -> Result<Option<String>> {
    if shell::find_program("valgrind").is_none() {
        return Ok(Some("valgrind is not installed".to_owned()));
    }
    let text = std::fs::read_to_string(path()).map_err(|error| Failure::io("read", &path(), error))?;
    let (of, listed) = parsed(&text)?;
    let here = toolchain()?;
    if of != here {
        return Ok(Some(format!("{LIST} has counts of {of}, this is {here}")));
    }
    let faults = faults(&listed, &counts()?);
    if faults.is_empty() {
        return Ok(None);
    }
    let mut message = faults.join("\n");
    message +=
        "\nhint: `cargo xtask instructions --write` lists the new counts; the commit says why they changed";
    Err(Failure::new(message))
}

fn path() -> std::path::PathBuf {
    workspace::root().join(LIST)
}

type Counts = BTreeMap<String, u64>;

fn toolchain() -> Result<String> {
    let rustc = shell::capture(Command::new("rustc").arg("--version"))?;
    let libc = shell::capture(Command::new("ldd").arg("--version"))?;
    let libc = libc.lines().next().and_then(|line| line.split_whitespace().last()).unwrap_or("unknown");
    let rustc = rustc.split_whitespace().nth(1).unwrap_or("unknown").to_owned();
    // Libraries choose their code by it; valgrind hides what is newer.
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let avx2 = if cpu.contains(" avx2 ") { "with" } else { "without" };
    Ok(format!("rustc {rustc} and glibc {libc} on {} {avx2} AVX2", std::env::consts::ARCH))
}

fn counts() -> Result<Counts> {
    let mut build = metadata::cargo();
    build.current_dir(workspace::root());
    // The features of the tests, so that nothing is built twice.
    shell::run(build.args([
        "build",
        "--quiet",
        "--workspace",
        "--features",
        "packfs-cli/lab",
        "--bin",
        "packfs",
    ]))?;
    let folder = workspace::target().join("instructions");
    workspace::remove_dir(&folder)?;
    plant(&folder.join("T"))?;
    JOBS.iter().map(|job| Ok(((*job).to_owned(), count(job, &folder)?))).collect()
}

fn count(job: &str, folder: &Path) -> Result<u64> {
    let mut command = Command::new("valgrind");
    command.env("GLIBC_TUNABLES", NO_REP);
    command.args([
        "--tool=cachegrind",
        "--cache-sim=no",
        "--cachegrind-out-file=/dev/null",
        "--log-file=log",
    ]);
    command.arg(workspace::target().join("debug/packfs")).args(job.split(' '));
    if job.starts_with("pack ") {
        command.arg("--no-verify");
    }
    if !job.starts_with("ls ") {
        command.args(["-q", "-j1"]);
    }
    shell::run_quietly(command.current_dir(folder))?;
    let path = folder.join("log");
    let log = std::fs::read_to_string(&path).map_err(|error| Failure::io("read", &path, error))?;
    let found = log.lines().find_map(|line| line.split_once("I refs:").or(line.split_once("I   refs:")));
    let digits = found.map(|(_, count)| count.trim().replace(',', ""));
    let count = digits.and_then(|digits| digits.parse().ok());
    count.ok_or_else(|| Failure::new(format!("valgrind counted nothing:\n{log}")))
}

/// Makes a tree that is the same everywhere: text, noise, and copies.
fn plant(root: &Path) -> Result<()> {
    let mut state = 1_u64;
    let mut next = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for index in 0..200 {
        let bytes: Vec<u8> = match index % 10 {
            0 => (0..6000).map(|_| next(256) as u8).collect(),
            1 => format!("a copy of {}\n", index / 40).repeat(300).into_bytes(),
            kind => (0..kind * 300).flat_map(|_| format!("word-{} ", next(700)).into_bytes()).collect(),
        };
        let path = root.join(format!("dir-{}/sub-{}/file-{index}", index % 9, index % 2));
        let dir = path.parent().unwrap_or(root);
        std::fs::create_dir_all(dir).map_err(|error| Failure::io("make", dir, error))?;
        std::fs::write(&path, bytes).map_err(|error| Failure::io("write", &path, error))?;
    }
    Ok(())
}

fn faults(listed: &Counts, found: &Counts) -> Vec<String> {
    let new = found.keys().filter(|job| !listed.contains_key(*job)).map(|job| format!("{job}: not listed"));
    let changed = listed.iter().filter_map(|(job, &listed)| {
        let Some(&found) = found.get(job) else { return Some(format!("{job}: listed, but no job")) };
        let percent = 100.0 * (found as f64 / listed as f64 - 1.0);
        (found.abs_diff(listed) * 100 > listed * TOLERANCE)
            .then(|| format!("{job}: {found} instructions, {percent:+.1} % of the listed {listed}"))
    });
    new.chain(changed).collect()
}

fn printed(toolchain: &str, counts: &Counts) -> String {
    let rows = counts.iter().map(|(job, count)| format!("{count} {job}\n"));
    let head = format!("# Written by `cargo xtask instructions --write`, with\n# {toolchain}\n");
    [head].into_iter().chain(rows).collect()
}

fn parsed(text: &str) -> Result<(String, Counts)> {
    let wrong = |line: &str| Failure::new(format!("{LIST}: {line:?} is not `COUNT JOB`"));
    let toolchain = text.lines().nth(1).and_then(|line| line.strip_prefix("# "));
    let toolchain = toolchain.ok_or_else(|| wrong("the second line"))?.to_owned();
    let rows = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (count, job) = line.split_once(' ').ok_or_else(|| wrong(line))?;
        Ok((job.to_owned(), count.parse().map_err(|_| wrong(line))?))
    });
    Ok((toolchain, rows.collect::<Result<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_may_differ_by_a_percent_in_both_directions() {
        let counts = |count| Counts::from([("pack".to_owned(), count)]);
        for (found, is_fault) in [(990, false), (1010, false), (989, true), (1011, true)] {
            assert_eq!(faults(&counts(1000), &counts(found)).len(), usize::from(is_fault), "{found}");
        }
        assert_eq!(faults(&counts(1000), &Counts::new()), ["pack: listed, but no job"]);
        assert_eq!(faults(&Counts::new(), &counts(1)), ["pack: not listed"]);
    }

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let counts = Counts::from([("pack T a".to_owned(), 5), ("ls a".to_owned(), 7)]);
        assert_eq!(parsed(&printed("rustc 1", &counts)).unwrap(), ("rustc 1".to_owned(), counts));
        assert!(parsed("# a\n# b\nfive pack\n").is_err());
    }
}
