//! Stores of packed shards: named objects that appear complete and are never changed.

use packfs_core::{Error, FileImage, Image, Progress, Result, ResultExt};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// Store of named objects. Each appears complete or not at all, under a name that had none: two
/// workers that write the same one cost time, and nothing else.
pub trait Store: Send + Sync {
    /// Returns the name of the store for messages and commands.
    fn name(&self) -> String;

    /// Opens an object; `None` if there is none.
    ///
    /// Errors: `Io`.
    fn open(&self, name: &str) -> Result<Option<Arc<dyn Image>>>;

    /// Returns the bytes of a small object; `None` if there is none.
    ///
    /// Errors: `Io`; `Corrupt` for one that is longer than `len_max`.
    fn get(&self, name: &str, len_max: u64) -> Result<Option<Vec<u8>>>;

    /// Creates a small object. Returns false, and changes nothing, if there is one of this name.
    ///
    /// Errors: `Io`.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool>;

    /// Returns a place for a large object that is to be created.
    ///
    /// Errors: `Io`.
    fn stage(&self) -> Result<Staged>;

    /// Creates an object of a complete, synced file. Returns false, and changes nothing, if there
    /// is one of this name. `progress` may stop a long one.
    ///
    /// Errors: `Io`, `Cancelled`.
    fn put(&self, name: &str, staged: Staged, progress: &dyn Progress) -> Result<bool>;

    /// Removes an object, if there is one.
    ///
    /// Errors: `Io`.
    fn remove(&self, name: &str) -> Result<()>;

    /// Returns the path or URL of an object, by which images are merged.
    fn place(&self, name: &str) -> PathBuf;
}

/// Place for an object that is being written, removed unless it becomes one.
pub struct Staged {
    folder: TempDir,
}

impl Staged {
    /// Makes a place in a folder.
    ///
    /// Errors: `Io`.
    pub fn within(folder: &Path) -> Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".shard-").suffix(".packfs-tmp");
        let folder = builder.tempdir_in(folder).or_io(|| format!("cannot write to {folder:?}"))?;
        Ok(Staged { folder })
    }

    /// Returns the path to write to.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("shard")
    }
}

/// Directory as a store: its files are the objects.
pub struct DirStore {
    folder: PathBuf,
}

impl DirStore {
    /// Opens a store. The directory is created if it does not exist and `creates`.
    ///
    /// Errors: `Io`.
    pub fn open(folder: &Path, creates: bool) -> Result<Self> {
        if creates {
            std::fs::create_dir_all(folder).or_io(|| format!("cannot create {folder:?}"))?;
        }
        std::fs::read_dir(folder).or_io(|| format!("cannot open the store {folder:?}"))?;
        Ok(DirStore { folder: folder.to_owned() })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Syncs the names of the directory.
    fn sync(&self) -> Result<()> {
        let cannot = || format!("cannot write to {:?}", self.folder);
        File::open(&self.folder).or_io(cannot)?.sync_all().or_io(cannot)
    }

    /// Gives a file its name, unless there is one of this name.
    fn publish(&self, from: PathBuf, name: &str) -> Result<bool> {
        let cannot = || format!("cannot create {:?}", self.at(name));
        let from = tempfile::TempPath::try_from_path(from).or_io(cannot)?;
        match from.persist_noclobber(self.at(name)) {
            Ok(()) => self.sync().map(|()| true),
            Err(fault) if fault.error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(fault) => Err(Error::io(cannot(), fault.error)),
        }
    }
}

impl Store for DirStore {
    fn name(&self) -> String {
        self.folder.display().to_string()
    }

    fn open(&self, name: &str) -> Result<Option<Arc<dyn Image>>> {
        let path = self.at(name);
        match File::open(&path) {
            Ok(file) => Ok(Some(Arc::new(FileImage::of(file, &path)?))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(format!("cannot open {path:?}"), error)),
        }
    }

    fn get(&self, name: &str, len_max: u64) -> Result<Option<Vec<u8>>> {
        let path = self.at(name);
        let cannot = || format!("cannot read {path:?}");
        let file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.or_io(cannot)?,
        };
        let mut bytes = Vec::new();
        file.take(len_max.saturating_add(1)).read_to_end(&mut bytes).or_io(cannot)?;
        if bytes.len() as u64 > len_max {
            return Err(Error::corrupt("store", format!("{path:?}: more than {len_max} bytes")));
        }
        Ok(Some(bytes))
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        let staged = self.stage()?;
        let cannot = || format!("cannot write {:?}", staged.path());
        let mut file = File::create(staged.path()).or_io(cannot)?;
        file.write_all(bytes).or_io(cannot)?;
        file.sync_all().or_io(cannot)?;
        self.publish(staged.path(), name)
    }

    fn stage(&self) -> Result<Staged> {
        Staged::within(&self.folder)
    }

    fn put(&self, name: &str, staged: Staged, _progress: &dyn Progress) -> Result<bool> {
        self.publish(staged.path(), name)
    }

    fn remove(&self, name: &str) -> Result<()> {
        match std::fs::remove_file(self.at(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::io(format!("cannot remove {:?}", self.at(name)), error))
            }
            _ => Ok(()),
        }
    }

    fn place(&self, name: &str) -> PathBuf {
        self.at(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_created_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = DirStore::open(&folder.path().join("new"), true).unwrap();
        assert!(store.create("a", b"1").unwrap());
        assert!(!store.create("a", b"2").unwrap());
        let staged = store.stage().unwrap();
        std::fs::write(staged.path(), b"3").unwrap();
        assert!(!store.put("a", staged, &packfs_core::Silent).unwrap());
        assert_eq!(store.get("a", 9).unwrap().unwrap(), b"1");
        assert!(store.get("a", 0).is_err() && store.get("b", 9).unwrap().is_none());
        assert_eq!(std::fs::read_dir(folder.path().join("new")).unwrap().count(), 1);
        store.remove("a").unwrap();
        store.remove("a").unwrap();
        assert_eq!(std::fs::read_dir(folder.path().join("new")).unwrap().count(), 0);
    }

    #[test]
    fn a_missing_directory_is_an_error_unless_it_is_to_be_created() {
        let folder = tempfile::tempdir().unwrap();
        assert!(DirStore::open(&folder.path().join("none"), false).is_err());
    }
}
