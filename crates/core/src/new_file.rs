//! Files that appear once they are complete. If the filesystem supports it, they have no name
//! before, so that a killed program leaves nothing.

use crate::{Error, Result, ResultExt};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// File that will replace the one at its path; removed if dropped.
pub struct NewFile {
    path: PathBuf,
    file: File,
    temporary: Option<PathBuf>,
}

impl NewFile {
    /// Creates the file for `path`; the umask applies to its permissions.
    ///
    /// Errors: as [`create_temporary`].
    pub fn create(path: &Path, mode: u32) -> Result<Self> {
        let (file, temporary) = create_temporary(path, mode)?;
        Ok(NewFile { path: path.into(), file, temporary })
    }

    /// Returns the file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Reopens the file read-only, as fs-verity requires.
    ///
    /// Errors: `Io`.
    pub fn close_for_writing(&mut self) -> Result<()> {
        let cannot = || format!("cannot open {:?}", self.path);
        self.file = File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd())).or_io(cannot)?;
        Ok(())
    }

    /// Renames the complete file into place, after syncing it to disk if `sync` is set.
    ///
    /// Errors: `Io`; an existing file is unchanged then.
    pub fn finish(mut self, sync: bool) -> Result<()> {
        if sync {
            self.file.sync_all().or_io(|| format!("cannot write {:?} to the disk", self.path))?;
        }
        name_it(&self.file, &self.path, self.temporary.take())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// Creates a file in the directory of `path`, unnamed if possible, or with a temporary name.
///
/// Errors: `Usage` for a path without a file name; `Io`.
pub fn create_temporary(path: &Path, mode: u32) -> Result<(File, Option<PathBuf>)> {
    if path.file_name().is_none() {
        return Err(Error::usage(format!("cannot write to {path:?}: not a file name")));
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    match rustix::fs::open(
        folder,
        OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC,
        Mode::from_raw_mode(mode),
    ) {
        Ok(file) if can_be_named(&file) => return Ok((file.into(), None)),
        _ => {}
    }
    let mut options = File::options();
    options.read(true).write(true).create_new(true).mode(mode);
    free_name(path, |temporary| options.open(temporary)).map(|(file, temporary)| (file, Some(temporary)))
}

/// Retries until a temporary name in the directory of `path` is free.
fn free_name<T>(path: &Path, make: impl Fn(&Path) -> io::Result<T>) -> Result<(T, PathBuf)> {
    for _ in 0..100 {
        let temporary = temporary_name(path);
        match make(&temporary) {
            Ok(made) => return Ok((made, temporary)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io(format!("cannot create {path:?}"), error)),
        }
    }
    Err(Error::failed(format!("cannot create a temporary file in the directory of {path:?}")))
}

/// Renames a complete file into place, replacing an older one.
///
/// Errors: `Io`.
pub fn name_it(file: &File, path: &Path, temporary: Option<PathBuf>) -> Result<()> {
    let failed = || format!("cannot create {path:?}");
    let temporary = match temporary {
        Some(temporary) => temporary,
        None => {
            let nameless = format!("/proc/self/fd/{}", file.as_raw_fd());
            // A process of another container may have the same number, and the same name.
            free_name(path, |temporary| {
                rustix::fs::linkat(CWD, &nameless, CWD, temporary, AtFlags::SYMLINK_FOLLOW)
                    .map_err(Into::into)
            })?
            .1
        }
    };
    std::fs::rename(&temporary, path).or_io(failed).inspect_err(|_| {
        let _ = std::fs::remove_file(&temporary);
    })
}

/// Tests `/proc`, through which an unnamed file is linked.
fn can_be_named(file: &OwnedFd) -> bool {
    std::fs::metadata(format!("/proc/self/fd/{}", file.as_raw_fd())).is_ok_and(|found| found.ino() > 0)
}

/// Unique for each call: threads may create the same file.
fn temporary_name(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // A name near the limit of 255 bytes leaves no room for a suffix.
    let short: String = name.chars().take(48).collect();
    path.with_file_name(format!(".{short}.{}-{number}.packfs-tmp", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn threads_may_make_the_same_file() {
        let folder = std::env::temp_dir().join(format!("packfs-same-file-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("same");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let new = NewFile::create(&path, 0o640).unwrap();
                        new.file().write_all(b"whole").unwrap();
                        new.finish(false).unwrap();
                    }
                });
            }
        });
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_appears_when_it_is_finished_and_an_abandoned_one_never() {
        let folder = std::env::temp_dir().join(format!("packfs-new-file-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let names = || {
            let entries = std::fs::read_dir(&folder).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        let path = folder.join("a");
        let mut new = NewFile::create(&path, 0o640).unwrap();
        new.file().write_all(b"whole").unwrap();
        assert!(new.temporary.is_some() || names().is_empty());
        new.close_for_writing().unwrap();
        assert!(new.file().write_all(b"more").is_err());
        new.finish(true).unwrap();
        assert_eq!((names(), &*std::fs::read(&path).unwrap()), (vec!["a".to_owned()], &b"whole"[..]));
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7137, 0);
        drop(NewFile::create(&path, 0o640).unwrap());
        assert_eq!(names(), ["a"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
