//! One large file of many kinds of data: a tar of files drawn by lot from a tree.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use packfs::{Error, Result, ResultExt};

use crate::workload::{Listed, files_of, shuffled};

/// Length of silesia.tar.
pub(super) const LEN: u64 = 203 << 20;
/// Name of the file.
const NAME: &str = "large.tar";
/// The draw is the same wherever the tree is.
const SEED: u64 = 0x5113_5141;
/// Most bytes of one file, so that several kinds have a part.
const PIECE_MAX: u64 = 8 << 20;
/// Time of last change of everything in it: 2024-01-01 00:00:00 UTC.
const MADE_AT: u64 = 1_704_067_200;

/// Makes a folder with the file in it. Owners and times are not taken over: the same contents and
/// names give the same bytes.
pub(super) fn make(tree: &Path, dir: &Path, len: u64) -> Result<()> {
    std::fs::create_dir(dir).or_io(|| format!("cannot make {dir:?}"))?;
    let files = shuffled(files_of(tree)?, SEED);
    if files.iter().all(|file| file.len == 0) {
        return Err(Error::failed(format!("{tree:?} has no file that holds anything")));
    }
    let path = dir.join(NAME);
    let fill = || -> io::Result<()> {
        let mut out = io::BufWriter::with_capacity(1 << 20, File::create(&path)?);
        let (mut written, mut round) = (0, 0);
        // A small tree is drawn again, under other names, until there is enough.
        'full: loop {
            for file in files.iter().filter(|file| file.len > 0) {
                written += add(&mut out, tree, file, round)?;
                if written >= len {
                    break 'full;
                }
            }
            round += 1;
        }
        out.write_all(&[0; 1024])?;
        out.into_inner()?.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(MADE_AT))
    };
    fill().or_io(|| format!("cannot write {path:?}"))
}

/// Adds the beginning of a file and returns how many bytes that took.
fn add(out: &mut impl Write, tree: &Path, file: &Listed, round: u32) -> io::Result<u64> {
    let len = file.len.min(PIECE_MAX);
    let source = File::open(tree.join(&file.path))?;
    out.write_all(&header(file.path.as_os_str().as_bytes(), len, round))?;
    let copied = io::copy(&mut source.take(len), out)?;
    // A file that became shorter meanwhile is filled up.
    let padded = len.next_multiple_of(512);
    io::copy(&mut io::repeat(0).take(padded.saturating_sub(copied)), out)?;
    Ok(512 + padded)
}

/// A header of ustar (POSIX.1-1988): the last 90 bytes of the path, below the number of the round.
fn header(path: &[u8], len: u64, round: u32) -> [u8; 512] {
    let mut header = [0; 512];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, format!("{round}/").as_bytes());
    let digits = format!("{round}/").len();
    put(digits, &path[path.len().saturating_sub(90)..]);
    put(100, b"0000644\x000000000\x000000000\x00");
    put(124, format!("{len:011o}\0{MADE_AT:011o}\0").as_bytes());
    put(148, b"        0");
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_one_that_tar_reads() {
        let dir = tempfile::tempdir().unwrap();
        let (tree, at) = (dir.path().join("tree"), dir.path().join("a.tar"));
        std::fs::create_dir(&tree).unwrap();
        std::fs::write(tree.join("x"), "hello").unwrap();
        let mut tar = Vec::new();
        let file = Listed { path: "x".into(), len: 5 };
        assert_eq!(add(&mut tar, &tree, &file, 3).unwrap(), 1024);
        tar.extend([0; 1024]);
        std::fs::write(&at, tar).unwrap();
        let listed = std::process::Command::new("tar").arg("-tvf").arg(&at).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.contains("3/x") && listed.contains(" 5 "), "{listed}");
    }
}
