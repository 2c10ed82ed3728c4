//! Atomic replacement of a file: a temporary file that is renamed once it is complete.

use packfs_core::new_file::NewFile;
use packfs_core::{Error, Result};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A temporary file beside `path`; an existing file is unchanged until [`Replacement::finish`].
pub struct Replacement {
    path: PathBuf,
    file: NewFile,
}

impl Replacement {
    /// Creates the temporary file for `path`.
    ///
    /// Errors: `Usage` if `path` exists and is not a regular file, `Io`.
    pub fn create(path: &Path) -> Result<Self> {
        if path.file_name().is_none() || std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(Error::usage(format!("cannot write to {path:?}: not a regular file")));
        }
        // The umask of the process applies, as for all new files.
        let file = NewFile::create(path, 0o666)?;
        Ok(Replacement { path: path.into(), file })
    }

    /// Returns the file for writing.
    pub fn file(&self) -> &File {
        self.file.file()
    }

    /// Returns the directory of `path`.
    pub fn folder(&self) -> &Path {
        folder_of(&self.path)
    }

    /// Syncs the complete file and renames it into place.
    ///
    /// Errors: `Io`; the temporary file is removed then, and an existing file unchanged.
    pub fn finish(self) -> Result<()> {
        self.file.finish(true)
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
