//! The whole cache: its list, its limit, and its check.

use super::blocks::{is_marked, read_block};
use super::header::Header;
use crate::plan::BLOCK_LEN;
use packfs_core::{Result, ResultExt, usize_of};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Age at which a file that was never renamed counts as left behind.
const LEFT_BEHIND: Duration = Duration::from_secs(60);
/// Length of a sector, in which the kernel counts what a file takes.
const SECTOR_LEN: u64 = 512;

/// The cache of remote images on disk.
#[derive(Clone, Debug)]
pub struct Store {
    dir: PathBuf,
}

/// Version of an object in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stored {
    /// Name of its file.
    pub name: String,
    /// URL without secrets; `None` if the header is damaged.
    pub url: Option<String>,
    /// Length of the object in bytes.
    pub len: u64,
    /// Bytes that its file takes on disk.
    pub held: u64,
    /// Time of the last use.
    pub used: SystemTime,
}

/// Outcome of the check of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// The version.
    pub stored: Stored,
    /// Blocks of 64 KiB that are there and match their checksums.
    pub good: u64,
    /// Blocks that do not. Reading fetches them again.
    pub bad: u64,
}

impl Store {
    /// The cache in a folder, which need not exist.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Store { dir: dir.into() }
    }

    /// Returns the folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns what is there, by name.
    ///
    /// Errors: `Io`.
    pub fn list(&self) -> Result<Vec<Stored>> {
        let mut found = self.files().or_io(|| format!("cannot read the cache {:?}", self.dir))?;
        for stored in &mut found {
            if let Ok(header) = self.open(stored).and_then(|file| Header::read(&file)) {
                stored.len = header.len;
                stored.url = Some(header.url);
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Removes a version. Who has it open reads on.
    ///
    /// Errors: `Io`.
    pub fn remove(&self, stored: &Stored) -> Result<()> {
        let path = self.dir.join(&stored.name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).or_io(|| format!("cannot remove {path:?}"))
            }
            _ => Ok(()),
        }
    }

    /// Compares all blocks of a version with their checksums.
    ///
    /// Errors: `Io`.
    pub fn verify(&self, stored: &Stored) -> Result<Verified> {
        let cannot = || format!("cannot read {:?}", self.dir.join(&stored.name));
        let file = self.open(stored).or_io(cannot)?;
        let mut verified = Verified { stored: stored.clone(), good: 0, bad: 0 };
        let Ok(header) = Header::read(&file) else {
            verified.bad = 1;
            return Ok(verified);
        };
        for number in 0..header.blocks() {
            let start = number.saturating_mul(BLOCK_LEN);
            let len = usize_of(header.len.saturating_sub(start).min(BLOCK_LEN));
            // A file cut short is damaged, not unreadable.
            if !is_marked(&file, number).unwrap_or(true) {
                continue;
            }
            match read_block(&file, &header, number, len) {
                Ok(Some(_)) => verified.good = verified.good.saturating_add(1),
                _ => verified.bad = verified.bad.saturating_add(1),
            }
        }
        Ok(verified)
    }

    fn open(&self, stored: &Stored) -> io::Result<File> {
        let flags = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0);
        OpenOptions::new().read(true).custom_flags(flags).open(self.dir.join(&stored.name))
    }

    /// Files without their headers.
    pub(crate) fn files(&self) -> io::Result<Vec<Stored>> {
        let entries = match std::fs::read_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let Ok(metadata) = entry.metadata() else { continue };
            let is_ours =
                name.len() == 65 && name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if metadata.is_file() && is_ours {
                let held = metadata.blocks().saturating_mul(SECTOR_LEN);
                found.push(Stored { name, url: None, len: 0, held, used });
            } else if name.starts_with(".new-") && used.elapsed().is_ok_and(|age| age > LEFT_BEHIND) {
                // A process ended before it could rename it.
                let _ = std::fs::remove_file(entry.path());
            }
        }
        Ok(found)
    }

    /// Removes what was used longest ago until the rest is within the limit, except the version
    /// used last; returns the bytes that are left. One process does so at a time.
    pub(crate) fn shrink(&self, limit: u64) -> io::Result<u64> {
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.dir.join(".lock"))?;
        if rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(0);
        }
        let mut files = self.files()?;
        files.sort_by_key(|file| file.used);
        let mut left: u64 = files.iter().fold(0, |sum, file| sum.saturating_add(file.held));
        files.pop();
        for file in files {
            if left <= limit {
                break;
            }
            std::fs::remove_file(self.dir.join(&file.name))?;
            left = left.saturating_sub(file.held);
        }
        Ok(left)
    }
}
