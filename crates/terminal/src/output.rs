//! An output file that gets its name once it is complete.

use crate::report;
use packfs::{Result, ResultExt};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// An output file, opened before the image is read.
pub enum Output<'a> {
    /// Standard output, a FIFO or a device, written directly.
    Open(File),
    /// A temporary file, renamed once it is complete.
    Named {
        /// Name of the file.
        path: &'a Path,
        /// Its directory.
        beside: &'a Path,
        /// The file under its temporary name.
        temporary: tempfile::NamedTempFile,
    },
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write to {path:?}")
}

impl<'a> Output<'a> {
    /// Opens a file; `None` is standard output.
    ///
    /// Errors: `Io`.
    pub fn open(path: Option<&'a Path>) -> Result<Self> {
        let Some(path) = path else { return report::stdout_bytes().map(Output::Open) };
        let cannot = || cannot_write(path);
        if std::fs::metadata(path).is_ok_and(|existing| !existing.is_file()) {
            return File::options().write(true).open(path).or_io(cannot).map(Output::Open);
        }
        let beside = match path.parent() {
            Some(dir) if !dir.as_os_str().is_empty() => dir,
            _ => Path::new("."),
        };
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        let temporary = tempfile::Builder::new().permissions(mode).tempfile_in(beside).or_io(cannot)?;
        Ok(Output::Named { path, beside, temporary })
    }

    /// Returns the directory in which the file gets its name; `None` for a file that is open.
    pub fn names_in(&self) -> Option<&Path> {
        match self {
            Output::Named { beside, .. } => Some(beside),
            Output::Open(_) => None,
        }
    }

    /// Writes with `write`, and gives the file its name if that succeeded.
    ///
    /// Errors: those of `write`, and `Io`.
    pub fn write<T>(self, write: impl FnOnce(&mut File) -> Result<T>) -> Result<T> {
        match self {
            Output::Open(mut file) => write(&mut file),
            Output::Named { path, mut temporary, .. } => {
                let report = write(temporary.as_file_mut())?;
                temporary.as_file_mut().flush().or_io(|| cannot_write(path))?;
                temporary.persist(path).map_err(|error| error.error).or_io(|| cannot_write(path))?;
                Ok(report)
            }
        }
    }
}
