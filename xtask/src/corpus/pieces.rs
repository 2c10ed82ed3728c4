//! Trees made of pieces of a real tree's files: many small files, or a single large one.
//!
//! They depend only on the contents of the real tree: order, cuts, names, and times are fixed.

use std::collections::HashSet;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::random::Random;
use crate::failure::{Failure, Result};
use crate::workspace;

/// Modification time of all files: 2024-01-01 00:00:00 UTC.
const MADE_AT: Duration = Duration::from_secs(1_704_067_200);

/// Writes `count` files, a hundred in each folder.
pub fn make_small(tree: &Path, count: u32, path: &Path) -> Result<()> {
    let pool = read_files(tree)?;
    let mut random = Random::new(count.into());
    let folders = count / 100;
    let name = |index: u32| format!("shard-{:04}/sample-{index:06}.bin", index % folders);
    make(path, count, name, || {
        let len = random.file_len(1500, 100, 16 * 1024);
        cut(&pool, &mut random, len)
    })
}

pub fn make_same(tree: &Path, path: &Path) -> Result<()> {
    let pool = read_files(tree)?;
    let mut random = Random::new(60_000);
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
    let mut random = Random::new(500);
    let made = path.with_extension("new");
    workspace::remove_dir(&made)?;
    workspace::make_dir(&made)?;
    let file = made.join(LARGE_NAME);
    let mut written = 0;
    let mut fill = || {
        let mut opened = File::create(&file)?;
        while written < LARGE_LEN {
            let len = random.file_len(256 << 10, 4 << 10, 4 << 20).min(LARGE_LEN - written);
            let piece = cut(&pool, &mut random, len);
            opened.write_all(piece)?;
            written += piece.len() as u64;
        }
        opened.set_modified(SystemTime::UNIX_EPOCH + MADE_AT)
    };
    fill().map_err(|error| Failure::io("write", &file, error))?;
    workspace::remove_dir(path)?;
    std::fs::rename(&made, path).map_err(|error| Failure::io("move", &made, error))
}

/// Writes `count` files; `piece` returns the contents of each, and `name` its path.
fn make<'a>(
    path: &Path,
    count: u32,
    name: impl Fn(u32) -> String,
    mut piece: impl FnMut() -> &'a [u8],
) -> Result<()> {
    let made = path.with_extension("new");
    workspace::remove_dir(&made)?;
    let mut dirs = HashSet::from([made.clone()]);
    for index in 0..count {
        let file = made.join(name(index));
        let dir = file.parent().unwrap_or(&made).to_owned();
        if dirs.insert(dir.clone()) {
            workspace::make_dir(&dir)?;
        }
        write(&file, piece()).map_err(|error| Failure::io("write", &file, error))?;
    }
    for dir in &dirs {
        let opened = File::open(dir).map_err(|error| Failure::io("open", dir, error))?;
        opened
            .set_modified(SystemTime::UNIX_EPOCH + MADE_AT)
            .map_err(|error| Failure::io("set the time of", dir, error))?;
    }
    workspace::remove_dir(path)?;
    std::fs::rename(&made, path).map_err(|error| Failure::io("move", &made, error))
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
    let mut files = vec![];
    let mut waiting = vec![tree.to_owned()];
    while let Some(dir) = waiting.pop() {
        let entries = std::fs::read_dir(&dir).map_err(|error| Failure::io("list", &dir, error))?;
        for entry in entries.flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(entry.path()),
                Ok(kind) if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files.sort();
    let mut pool = vec![];
    for file in &files {
        read_onto(&mut pool, file)?;
    }
    Ok(pool)
}

fn read_onto(pool: &mut Vec<u8>, file: &PathBuf) -> Result<()> {
    let mut opened = File::open(file).map_err(|error| Failure::io("open", file, error))?;
    std::io::Read::read_to_end(&mut opened, pool).map_err(|error| Failure::io("read", file, error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_pieces_inside_the_pool() {
        let pool: Vec<u8> = (0..100).collect();
        let mut random = Random::new(1);
        for _ in 0..1000 {
            assert_eq!(cut(&pool, &mut random, 40).len(), 40);
        }
        assert_eq!(cut(&pool, &mut random, 100), pool);
        assert_eq!(cut(&pool, &mut random, 200), pool);
    }
}
