//! Trees made of pieces of a real tree's files: many small files, or a single large one.
//!
//! They depend only on the contents of the real tree: order, cuts, names, and times are fixed.

use std::collections::HashSet;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use packfs_host::Random;

use crate::failure::{Failure, Result};
use crate::workspace;

/// Modification time of all files: 2024-01-01 00:00:00 UTC.
const MADE_AT: Duration = Duration::from_secs(1_704_067_200);

/// Writes `count` files, a hundred in each folder.
pub fn make_small(tree: &Path, count: u32, path: &Path) -> Result<()> {
    let pool = read_files(tree)?;
    let mut random = Random(count.into());
    let folders = count / 100;
    let name = |index: u32| format!("shard-{:04}/sample-{index:06}.bin", index % folders);
    make(path, count, name, || {
        let len = file_len(&mut random, 1500, 100, 16 * 1024);
        cut(&pool, &mut random, len)
    })
}

pub fn make_same(tree: &Path, path: &Path) -> Result<()> {
    let pool = read_files(tree)?;
    let mut random = Random(60_000);
    let mut seen = HashSet::new();
    let name = |index: u32| format!("shard-{:02}/sample-{index:05}.bin", index % 60);
    make(path, 60_000, name, || {
        loop {
            let piece = cut(&pool, &mut random, 2000);
            if seen.insert(fingerprint(piece)) {
                return piece;
            }
        }
    })
}

/// Name of the file in the corpus `large`.
const LARGE_NAME: &str = "large.bin";
const LARGE_LEN: u64 = 500 << 20;

/// Writes one file, much larger than any cache of decoded blocks should be.
pub fn make_large(tree: &Path, path: &Path) -> Result<()> {
    let pool = read_files(tree)?;
    let mut random = Random(500);
    workspace::replace(path, |new| {
        workspace::make_dir(new)?;
        let file = new.join(LARGE_NAME);
        let mut written = 0;
        let mut fill = || {
            let mut opened = File::create(&file)?;
            while written < LARGE_LEN {
                let len = file_len(&mut random, 256 << 10, 4 << 10, 4 << 20).min(LARGE_LEN - written);
                let piece = cut(&pool, &mut random, len);
                opened.write_all(piece)?;
                written += piece.len() as u64;
            }
            opened.set_modified(SystemTime::UNIX_EPOCH + MADE_AT)
        };
        fill().map_err(|error| Failure::io("write", &file, error))
    })
}

/// Writes `count` files; `piece` returns the contents of each, and `name` its path.
fn make<'a>(
    path: &Path,
    count: u32,
    name: impl Fn(u32) -> String,
    mut piece: impl FnMut() -> &'a [u8],
) -> Result<()> {
    workspace::replace(path, |new| {
        let mut dirs = HashSet::from([new.to_owned()]);
        for index in 0..count {
            let file = new.join(name(index));
            let dir = file.parent().unwrap_or(new).to_owned();
            if dirs.insert(dir.clone()) {
                workspace::make_dir(&dir)?;
            }
            write(&file, piece()).map_err(|error| Failure::io("write", &file, error))?;
        }
        for dir in &dirs {
            let dated = File::open(dir).and_then(|dir| dir.set_modified(SystemTime::UNIX_EPOCH + MADE_AT));
            dated.map_err(|error| Failure::io("set the time of", dir, error))?;
        }
        Ok(())
    })
}

fn write(path: &Path, contents: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(contents)?;
    file.set_modified(SystemTime::UNIX_EPOCH + MADE_AT)
}

/// Returns a random piece of `len` bytes, or the whole pool if it is shorter.
fn cut<'a>(pool: &'a [u8], random: &mut Random, len: u64) -> &'a [u8] {
    let room = (pool.len() as u64).saturating_sub(len) + 1;
    let start = random.below(room) as usize;
    &pool[start..pool.len().min(start + len as usize)]
}

/// Returns a hash of a piece. In the rare case of a collision, one of the pieces is not used.
fn fingerprint(piece: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    piece.hash(&mut hasher);
    hasher.finish()
}

/// Returns the contents of all regular files of a tree, ordered by path.
fn read_files(tree: &Path) -> Result<Vec<u8>> {
    let files = workspace::files_below(tree)?.into_iter().filter(|path| path.is_file() && !path.is_symlink());
    let mut pool = vec![];
    for file in files {
        read_onto(&mut pool, &file)?;
    }
    Ok(pool)
}

fn read_onto(pool: &mut Vec<u8>, file: &PathBuf) -> Result<()> {
    let mut opened = File::open(file).map_err(|error| Failure::io("open", file, error))?;
    std::io::Read::read_to_end(&mut opened, pool).map_err(|error| Failure::io("read", file, error))?;
    Ok(())
}

/// Returns a length in `least..=most`, distributed like those of real files: most near
/// `middle`, few far above.
///
/// The distribution is log-normal. The sum of twelve uniform numbers replaces a normal one, so
/// that rounding is equal everywhere.
fn file_len(random: &mut Random, middle: u64, least: u64, most: u64) -> u64 {
    // Unit: 1/16 of a doubling; a standard deviation is 1.5 doublings.
    let sum: u64 = (0..12).map(|_| random.below(24)).sum();
    let sixteenths = sum as i64 - 6 * 23;
    let doublings = sixteenths.div_euclid(16);
    let rest = sixteenths.rem_euclid(16) as u64;
    // Linear between two powers of two, which is close enough.
    let scaled = middle * (16 + rest);
    let len = if doublings >= 0 { (scaled << doublings) / 16 } else { (scaled >> -doublings) / 16 };
    len.clamp(least, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_pieces_inside_the_pool() {
        let pool: Vec<u8> = (0..100).collect();
        let mut random = Random(1);
        for _ in 0..1000 {
            assert_eq!(cut(&pool, &mut random, 40).len(), 40);
        }
        assert_eq!(cut(&pool, &mut random, 100), pool);
        assert_eq!(cut(&pool, &mut random, 200), pool);
    }

    #[test]
    fn spreads_lengths_around_the_middle_within_the_limits() {
        let mut random = Random(7);
        let mut lens: Vec<_> = (0..10_001).map(|_| file_len(&mut random, 1500, 100, 16384)).collect();
        lens.sort_unstable();
        assert!((1300..1700).contains(&lens[5000]), "median {}", lens[5000]);
        assert!(lens[0] >= 100 && lens[10_000] <= 16384);
        assert!(lens[500] < 500 && lens[9_500] > 4500, "{} {}", lens[500], lens[9_500]);
    }
}
