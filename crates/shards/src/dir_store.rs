//! Directories as stores.

use packfs_core::{Copied, Error, FileImage, Image, Progress, Result, ResultExt, Store, usize_of};
use std::fs::{File, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempPath;

/// Bytes copied at a time.
const PART_LEN: usize = 1 << 20;

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

    /// Syncs the names of the directory.
    fn sync(&self) -> Result<()> {
        let cannot = || format!("cannot write to {:?}", self.folder);
        File::open(&self.folder).or_io(cannot)?.sync_all().or_io(cannot)
    }

    /// Gives a file its name, unless there is one of this name.
    fn publish(&self, from: TempPath, name: &str) -> Result<bool> {
        match from.persist_noclobber(self.place(name)) {
            Ok(()) => self.sync().map(|()| true),
            Err(fault) if fault.error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(fault) => Err(Error::io(format!("cannot create {:?}", self.place(name)), fault.error)),
        }
    }
}

impl Store for DirStore {
    fn name(&self) -> String {
        self.folder.display().to_string()
    }

    fn place(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn open(&self, name: &str) -> Result<Option<Arc<dyn Image>>> {
        let path = self.place(name);
        match File::open(&path) {
            Ok(file) => Ok(Some(Arc::new(FileImage::of(file, &path)?))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(format!("cannot open {path:?}"), error)),
        }
    }

    fn create(
        &self,
        name: &str,
        image: &dyn Image,
        _: &[Copied<'_>],
        progress: &dyn Progress,
    ) -> Result<Option<u64>> {
        let cannot = || format!("cannot write to {:?}", self.folder);
        let mut made = tempfile::Builder::new();
        made.prefix(".packfs-").suffix(".packfs-tmp").permissions(Permissions::from_mode(0o666));
        let mut file = made.tempfile_in(&self.folder).or_io(cannot)?;
        let (mut at, mut part) = (0, vec![0; PART_LEN]);
        while at < image.len() {
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            let len = usize_of(image.len() - at).min(PART_LEN);
            image.read_exact_at(at, &mut part[..len])?;
            file.write_all(&part[..len]).or_io(cannot)?;
            at += len as u64;
        }
        image.check_unchanged()?;
        file.as_file().sync_all().or_io(cannot)?;
        Ok(self.publish(file.into_temp_path(), name)?.then_some(0))
    }

    fn put(&self, name: &str, file: &Path, _: &dyn Progress) -> Result<bool> {
        let file = TempPath::try_from_path(file).or_io(|| format!("cannot create {:?}", self.place(name)))?;
        self.publish(file, name)
    }

    fn staging(&self) -> Option<&Path> {
        Some(&self.folder)
    }

    fn remove(&self, name: &str) -> Result<()> {
        match std::fs::remove_file(self.place(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::io(format!("cannot remove {:?}", self.place(name)), error))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::Silent;

    #[test]
    fn objects_are_created_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = DirStore::open(&folder.path().join("new"), true).unwrap();
        let image = |byte| packfs_core::MemoryImage::new("a", vec![byte]);
        assert_eq!(store.create("a", &image(b'1'), &[], &Silent).unwrap(), Some(0));
        assert_eq!(store.create("a", &image(b'2'), &[], &Silent).unwrap(), None);
        let staged = store.staging().unwrap().join("staged");
        std::fs::write(&staged, b"3").unwrap();
        assert!(!store.put("a", &staged, &Silent).unwrap());
        assert!(store.check_creation("a").is_err() && store.check_creation("b").is_ok());
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
