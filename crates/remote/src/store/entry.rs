//! One file of the cache, open.

use super::blocks::{read_block, write_block};
use super::header::Header;
use super::list::Store;
use super::{file_name, prefix};
use crate::plan::BLOCK_LEN;
use crate::version::{Validator, Version};
use packfs_core::usize_of;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

/// File of a version of an object. A cache that fails is no error: reading goes on without it.
pub(crate) struct Entry {
    file: File,
    header: Header,
    dir: PathBuf,
    limit: u64,
    /// Bytes written since the cache was measured.
    written: AtomicU64,
    is_broken: AtomicBool,
}

impl Entry {
    /// Opens the version of an object that was used last.
    pub(crate) fn newest(dir: &Path, identity: &str, limit: u64) -> Option<(Version, Entry)> {
        let start = prefix(identity);
        let mut found = Store::at(dir).files().ok()?;
        found.retain(|file| file.name.starts_with(&start));
        found.sort_by_key(|file| file.used);
        let file = found.pop()?;
        let entry = Entry::open(dir, &file.name, limit).ok()?;
        let wanted = Header::new(identity, "", entry.header.len, &entry.header.validator)?;
        if entry.header.object != wanted.object {
            return None;
        }
        let validator = Validator::ETag(entry.header.validator.clone());
        Some((Version { len: entry.header.len, validator }, entry))
    }

    /// Opens or creates the file of a version. There is none for a version without a strong entity
    /// tag, and none if the cache cannot be written.
    pub(crate) fn create(
        dir: &Path,
        identity: &str,
        url: &str,
        version: &Version,
        limit: u64,
    ) -> Option<Entry> {
        let Validator::ETag(tag) = &version.validator else { return None };
        let header = Header::new(identity, url, version.len, tag)?;
        let name = file_name(identity, tag);
        let is_same = |entry: &Entry| {
            (entry.header.object, entry.header.len, &entry.header.validator)
                == (header.object, header.len, &header.validator)
        };
        if let Some(entry) = Entry::open(dir, &name, limit).ok().filter(is_same) {
            return Some(entry);
        }
        Entry::create_file(dir, &name, header, limit).ok()
    }

    /// Keeps the whole of a short object.
    pub(crate) fn put(dir: &Path, identity: &str, url: &str, validator: String, bytes: &[u8], limit: u64) {
        let version = Version { len: bytes.len() as u64, validator: Validator::ETag(validator) };
        let Some(entry) = Entry::create(dir, identity, url, &version, limit) else { return };
        for (number, block) in (0..).zip(bytes.chunks(usize_of(BLOCK_LEN))) {
            entry.write(number, block);
        }
    }

    /// Reads the whole of an object of up to `len_max` bytes; `None` if a part is missing.
    pub(crate) fn all(&self, len_max: u64) -> Option<Vec<u8>> {
        let len = Some(self.header.len).filter(|len| *len <= len_max)?;
        let mut bytes = Vec::with_capacity(usize_of(len));
        for number in 0..self.header.blocks() {
            let left = len.saturating_sub(bytes.len() as u64);
            bytes.extend(self.read(number, usize_of(left.min(BLOCK_LEN)))?);
        }
        Some(bytes)
    }

    fn create_file(dir: &Path, name: &str, header: Header, limit: u64) -> io::Result<Entry> {
        // Images may be private.
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        std::fs::set_permissions(dir, Permissions::from_mode(0o700))?;
        let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |it| it.as_nanos());
        let temporary = dir.join(format!(".new-{}-{nanos}", std::process::id()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&temporary)?;
        let made = file
            .write_all_at(&header.bytes(), 0)
            .and_then(|()| file.set_len(header.data_start().saturating_add(header.len)))
            .and_then(|()| std::fs::rename(&temporary, dir.join(name)));
        if let Err(error) = made {
            // Nothing more can be done about it.
            let _ = std::fs::remove_file(&temporary);
            return Err(error);
        }
        let entry = Entry::of(file, header, dir, limit);
        entry.make_room();
        Ok(entry)
    }

    fn open(dir: &Path, name: &str, limit: u64) -> io::Result<Entry> {
        let no_follow = rustix::fs::OFlags::NOFOLLOW.bits();
        let flags = i32::try_from(no_follow).unwrap_or(0);
        let path = dir.join(name);
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
        let header = Header::read(&file)?;
        // The time of the last use, by which files are evicted.
        let _ = file.set_modified(SystemTime::now());
        Ok(Entry::of(file, header, dir, limit))
    }

    fn of(file: File, header: Header, dir: &Path, limit: u64) -> Self {
        let (written, is_broken) = (AtomicU64::new(0), AtomicBool::new(false));
        Entry { file, header, dir: dir.into(), limit, written, is_broken }
    }

    /// Returns a block of this length if the cache has it.
    pub(crate) fn read(&self, number: u64, len: usize) -> Option<Vec<u8>> {
        read_block(&self.file, &self.header, number, len).ok().flatten()
    }

    /// Writes a block. A full disk, or any other error, ends the writing of this process.
    pub(crate) fn write(&self, number: u64, block: &[u8]) {
        if self.is_broken.load(Ordering::Relaxed) {
            return;
        }
        if write_block(&self.file, &self.header, number, block).is_err() {
            self.is_broken.store(true, Ordering::Relaxed);
        }
        let len = block.len() as u64;
        let all = self.written.fetch_add(len, Ordering::Relaxed).saturating_add(len);
        if all >= self.limit / 16 {
            self.written.store(0, Ordering::Relaxed);
            self.make_room();
        }
    }

    /// Evicts what was used longest ago. If this file alone is over the limit, nothing is added to
    /// it.
    fn make_room(&self) {
        let _ = self.file.set_modified(SystemTime::now());
        let left = Store::at(&self.dir).shrink(self.limit);
        if left.is_ok_and(|left| left > self.limit) {
            self.is_broken.store(true, Ordering::Relaxed);
        }
    }
}
