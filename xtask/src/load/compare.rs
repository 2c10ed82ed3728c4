//! Random reads, stats and lists of a tree, each compared with the tree it has to equal.
//!
//! What a compressed image does not keep is not compared: block counts, access times, fractions of a second, the length
//! and link count of folders.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::names::{self, Kind};
use super::{Done, Load, in_threads};
use crate::corpus::Random;
use crate::failure::{Failure, Result};

const READ_LEN_MAX: u64 = 256 << 10;

pub fn verify(load: &Load) -> Result<Done> {
    let names = names::of(&load.names_of)?;
    in_threads(load.threads, |index| {
        let random = Random::new(load.seed.wrapping_mul(1_000_003).wrapping_add(index as u64));
        let pair = Pair { load, names: &names, random, inodes: HashMap::new() };
        pair.run()
    })
}

struct Pair<'a> {
    load: &'a Load,
    names: &'a [(PathBuf, Kind)],
    random: Random,
    /// The inode number each path was first seen with: it has to stay.
    inodes: HashMap<PathBuf, u64>,
}

impl Pair<'_> {
    fn run(mut self) -> Result<Done> {
        let (start, mut done) = (Instant::now(), Done::default());
        while start.elapsed() < self.load.time_max {
            let (path, kind) = &self.names[self.random.below(self.names.len() as u64) as usize];
            let (found, wanted) = (self.load.path.join(path), self.load.names_of.join(path));
            done.operations += 1;
            match (self.random.below(4), kind) {
                (0, _) => self.same_meta(path, &found, &wanted)?,
                (_, Kind::File) => done.bytes += self.same_bytes(&found, &wanted)?,
                (_, Kind::Dir) => same_list(&found, &wanted)?,
                (_, Kind::Other) => same_link(&found, &wanted)?,
            }
        }
        Ok(done)
    }

    fn same_meta(&mut self, path: &Path, found: &Path, wanted: &Path) -> Result<()> {
        let (meta, wanted_meta) = (look_at(found)?, look_at(wanted)?);
        same(found, "metadata", &kept(&meta), &kept(&wanted_meta))?;
        same(found, "extended attributes", &xattrs(found)?, &xattrs(wanted)?)?;
        let first = *self.inodes.entry(path.to_owned()).or_insert(meta.ino());
        same(found, "inode number", &meta.ino(), &first)
    }

    /// A part of a file, which may reach beyond its end; returns its length.
    fn same_bytes(&mut self, found: &Path, wanted: &Path) -> Result<u64> {
        let len = look_at(wanted)?.len();
        let offset = self.random.below(len + 2);
        let want = self.random.below(READ_LEN_MAX) as usize + 1;
        let (bytes, wanted_bytes) = (read_at(found, offset, want)?, read_at(wanted, offset, want)?);
        if bytes != wanted_bytes {
            let at = bytes.iter().zip(&wanted_bytes).position(|(a, b)| a != b);
            let at = at.unwrap_or(bytes.len().min(wanted_bytes.len())) as u64 + offset;
            let lens = format!("{} bytes instead of {}", bytes.len(), wanted_bytes.len());
            let read = format!("read of {want} at {offset}: {lens}");
            return Err(Failure::new(format!("{}: {read}, first difference at {at}", found.display())));
        }
        Ok(bytes.len() as u64)
    }
}

fn same<T: PartialEq + std::fmt::Debug>(path: &Path, what: &str, found: &T, wanted: &T) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    Err(Failure::new(format!("{}: {what} {found:?} instead of {wanted:?}", path.display())))
}

/// What an image keeps of an inode.
#[derive(PartialEq, Debug)]
struct Kept {
    mode: u32,
    owners: (u32, u32),
    mtime: i64,
    /// Of what is no folder.
    len_links_device: Option<(u64, u64, u64)>,
}

fn kept(meta: &Metadata) -> Kept {
    Kept {
        mode: meta.mode(),
        owners: (meta.uid(), meta.gid()),
        mtime: meta.mtime(),
        len_links_device: (!meta.is_dir()).then(|| (meta.len(), meta.nlink(), meta.rdev())),
    }
}

fn same_list(found: &Path, wanted: &Path) -> Result<()> {
    let list = |path: &Path| -> std::io::Result<Vec<_>> {
        let mut names = std::fs::read_dir(path)?
            .map(|entry| entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?))))
            .collect::<std::io::Result<Vec<_>>>()?;
        names.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(names)
    };
    let of = |path: &Path| list(path).map_err(|error| Failure::io("list", path, error));
    same(found, "list", &of(found)?, &of(wanted)?)
}

fn same_link(found: &Path, wanted: &Path) -> Result<()> {
    if !look_at(wanted)?.is_symlink() {
        return Ok(());
    }
    let of = |path: &Path| std::fs::read_link(path).map_err(|error| Failure::io("read link", path, error));
    same(found, "link", &of(found)?, &of(wanted)?)
}

fn look_at(path: &Path) -> Result<Metadata> {
    path.symlink_metadata().map_err(|error| Failure::io("look at", path, error))
}

fn read_at(path: &Path, offset: u64, want: usize) -> Result<Vec<u8>> {
    let read = || {
        let file = File::open(path)?;
        let (mut bytes, mut len) = (vec![0; want], 0);
        while len < want {
            match file.read_at(&mut bytes[len..], offset + len as u64)? {
                0 => break,
                count => len += count,
            }
        }
        bytes.truncate(len);
        Ok(bytes)
    };
    read().map_err(|error: std::io::Error| Failure::io(&format!("read at {offset}"), path, error))
}

/// Names and values, in the order of names.
fn xattrs(path: &Path) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let read = || {
        let mut names = Vec::with_capacity(64 << 10);
        rustix::fs::llistxattr(path, rustix::buffer::spare_capacity(&mut names))?;
        let mut found = vec![];
        for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let mut value = Vec::with_capacity(64 << 10);
            rustix::fs::lgetxattr(path, name, rustix::buffer::spare_capacity(&mut value))?;
            found.push((name.to_owned(), value));
        }
        found.sort();
        Ok(found)
    };
    read().map_err(|error: rustix::io::Errno| Failure::io("read extended attributes of", path, error))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Two equal trees, of which `change` then changes the first.
    fn verified(name: &str, change: impl Fn(&Path)) -> Result<Done> {
        let dir = std::env::temp_dir().join(format!("xtask-verify-{name}-{}", std::process::id()));
        let trees = ["found", "wanted"].map(|tree| dir.join(tree));
        for tree in &trees {
            std::fs::create_dir_all(tree.join("sub")).unwrap();
            std::fs::write(tree.join("sub/file"), vec![7; 100_000]).unwrap();
            std::os::unix::fs::symlink("sub", tree.join("link")).unwrap();
            let time = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
            File::open(tree.join("sub/file")).unwrap().set_modified(time).unwrap();
            for path in ["sub", "", "link"] {
                let place = tree.join(path);
                let stamp = rustix::fs::Timespec { tv_sec: 1_000_000, tv_nsec: 0 };
                let times = rustix::fs::Timestamps { last_access: stamp, last_modification: stamp };
                let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
                rustix::fs::utimensat(rustix::fs::CWD, &place, &times, flags).unwrap();
            }
        }
        change(&trees[0]);
        let [path, names_of] = trees;
        let time_max = Duration::from_millis(300);
        let found = verify(&Load { path, names_of, seed: 7, threads: 2, time_max });
        std::fs::remove_dir_all(&dir).unwrap();
        found
    }

    #[test]
    fn finds_no_difference_where_there_is_none() {
        let done = verified("same", |_| {}).unwrap();
        assert!(done.operations > 0 && done.bytes > 0, "{done:?}");
    }

    #[test]
    fn finds_a_changed_byte_a_missing_name_and_another_mode() {
        let error = verified("byte", |tree| {
            let file = File::options().write(true).open(tree.join("sub/file")).unwrap();
            for at in (0..100_000).step_by(100) {
                file.write_at(b"x", at).unwrap();
            }
        });
        assert!(error.is_err());
        assert!(verified("name", |tree| std::fs::remove_file(tree.join("link")).unwrap()).is_err());
        let error = verified("mode", |tree| {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(tree.join("sub"), PermissionsExt::from_mode(0o700)).unwrap();
        });
        assert!(error.unwrap_err().to_string().contains("metadata"));
    }
}
