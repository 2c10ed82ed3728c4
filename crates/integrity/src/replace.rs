//! A file that gets its name once it is complete.

use packfs_core::{Error, Result, ResultExt};
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Written beside `path` under another name; what has that name already stays until
/// [`Replacement::finish`].
pub struct Replacement {
    path: PathBuf,
    file: NamedTempFile,
}

impl Replacement {
    /// Starts what will become `path`.
    ///
    /// Errors: `Usage` if something that is no regular file has the name, `Io`.
    pub fn create(path: &Path) -> Result<Self> {
        if path.file_name().is_none() || std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(Error::usage(format!("cannot write to {path:?}: not a regular file")));
        }
        let folder = folder_of(path);
        let mut builder = tempfile::Builder::new();
        // The process's mask applies, as to every file that a program makes.
        builder.prefix(".").suffix(".packfs-tmp").permissions(Permissions::from_mode(0o666));
        let file = builder.tempfile_in(folder).or_io(|| format!("cannot create {path:?}"))?;
        Ok(Replacement { path: path.into(), file })
    }

    /// The file, to be written.
    pub fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Where it gets its name: the folder of `path`.
    pub fn folder(&self) -> &Path {
        folder_of(&self.path)
    }

    /// It is complete: syncs it and gives it its name.
    ///
    /// Errors: `Io`; the file is gone then, and what had the name is as it was.
    pub fn finish(self) -> Result<()> {
        let Replacement { path, file } = self;
        file.as_file().sync_all().or_io(|| format!("cannot write {path:?} to the disk"))?;
        file.persist(&path).map(|_| ()).or_io(|| format!("cannot create {path:?}"))
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
