//! An output file that gets its name once it is complete.

use crate::out::report;
use packfs::{Result, ResultExt};
use packfs_sandbox::Sandbox;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Opened before the image is read.
pub enum Output<'a> {
    /// Standard output, a FIFO or a device, written in place.
    Open(File),
    /// A temporary file, renamed once it is complete.
    Named { path: &'a Path, beside: &'a Path, temporary: tempfile::NamedTempFile },
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write to {path:?}")
}

impl<'a> Output<'a> {
    /// `None` is standard output.
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

    /// Adds the files that writing needs.
    pub fn reach(&self, sandbox: Sandbox) -> Sandbox {
        match self {
            Output::Named { beside, .. } => sandbox.name_in(*beside),
            Output::Open(_) => sandbox,
        }
    }

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
