//! Ranges of many files at once, as lists of Python objects.

use crate::errors::{exception, named};
use crate::new_bytes::filled;
use crate::session::Session;
use crate::watch::Signals;
use packfs::read::{FileRange, Wanted};
use packfs::{ImagePath, InodeId, InodeKind, Opened, Result};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A file as an argument names it.
pub enum FileArg {
    Path(PathBuf),
    /// Inode of a file that was listed, and its path if that is known.
    Known(PathBuf, Wanted),
}

impl<'py> FromPyObject<'_, 'py> for FileArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // Nearly all paths are such texts, which are copied only once.
        if let Ok(text) = object.cast::<PyString>()
            && let Ok(text) = text.to_str()
        {
            return Ok(FileArg::Path(text.into()));
        }
        if let Ok(entry) = object.cast::<crate::entry::Entry>() {
            let entry = entry.get();
            let (id, kind) = entry.kind();
            // A link is followed by its path, and the path tells why anything else is no file.
            if let InodeKind::File { len } = kind {
                return Ok(FileArg::Known(entry.path().into(), Wanted { id, len }));
            }
        }
        if let Ok((id, len)) = object.extract() {
            return Ok(FileArg::Known(PathBuf::new(), Wanted { id: InodeId(id), len }));
        }
        Ok(FileArg::Path(object.extract()?))
    }
}

impl FileArg {
    pub fn path(&self) -> &Path {
        match self {
            FileArg::Path(path) | FileArg::Known(path, ..) => path,
        }
    }

    /// Finds the file.
    ///
    /// Errors: as `open()` has them for files.
    pub fn find(&self, opened: &Opened) -> PyResult<Wanted> {
        match self {
            FileArg::Known(_, wanted) => Ok(*wanted),
            FileArg::Path(path) => opened.file_at(image_path(path)?).map_err(|error| exception(&error)),
        }
    }
}

/// Finds a path.
pub fn inode(opened: &Opened, path: &Path, follow: bool) -> PyResult<InodeId> {
    let path = image_path(path)?;
    let id = if follow { opened.resolve(&path) } else { opened.find(&path) };
    id.map_err(|error| exception(&error))
}

/// Returns a path in an image.
pub fn image_path(path: &Path) -> PyResult<ImagePath> {
    use std::os::unix::ffi::OsStrExt;
    ImagePath::parse(path.as_os_str().as_bytes()).map_err(|error| exception(&error))
}

/// Bounds of a range as Python has them: `None` is the start or end, negative ones count from the
/// end.
pub type Bounds = (Option<i64>, Option<i64>);

/// Returns a range within a file of `len` bytes, as a slice of Python.
pub fn range_within(bounds: Bounds, len: u64) -> Range<u64> {
    let within = |bound: i64| match u64::try_from(bound) {
        Ok(bound) => bound.min(len),
        Err(_) => len.saturating_sub(bound.unsigned_abs()),
    };
    let (start, end) = (bounds.0.map_or(0, within), bounds.1.map_or(len, within));
    start..end.max(start)
}

/// Returns the place of the first byte of each file; 0 for empty files and holes.
pub fn positions(opened: &Opened, files: &[FileArg], signals: &Signals) -> PyResult<Vec<u64>> {
    let found = look_up(opened, files, signals)?.into_iter();
    let ranges: Vec<FileRange> =
        found.map(|file| file.map(|file| FileRange::new(file, 0..file.len))).collect::<PyResult<_>>()?;
    opened.positions(&ranges, signals).map_err(|error| signals.exception(&error))
}

/// Finds files.
fn look_up(opened: &Opened, files: &[FileArg], signals: &Signals) -> PyResult<Vec<PyResult<Wanted>>> {
    let (mut paths, mut known) = (Vec::new(), Vec::with_capacity(files.len()));
    for file in files {
        known.push(match file {
            FileArg::Known(_, wanted) => Some(Ok(*wanted)),
            FileArg::Path(path) => match image_path(path) {
                Ok(path) => {
                    paths.push(path);
                    None
                }
                Err(error) => Some(Err(error)),
            },
        });
    }
    let found = opened.files_at(&paths, signals).map_err(|error| signals.exception(&error))?;
    let mut found = found.into_iter().map(|found| found.map_err(|error| exception(&error)));
    let next = |known: Option<PyResult<Wanted>>| known.or_else(|| found.next());
    Ok(known.into_iter().filter_map(next).collect())
}

/// Reads ranges of files; `bounds` is empty for all of each. With `keeps_errors`, the exceptions of
/// single files are in the list; otherwise the first of them is returned.
pub fn read<'py>(
    py: Python<'py>,
    session: &Session,
    files: &[FileArg],
    bounds: &[Bounds],
    keeps_errors: bool,
) -> PyResult<Bound<'py, PyList>> {
    if !bounds.is_empty() && bounds.len() != files.len() {
        let found = format!("{} starts and ends for {} paths", bounds.len(), files.len());
        return Err(PyValueError::new_err(format!("cannot match {found}")));
    }
    let (opened, signals) = (session.opened()?, Signals::new());
    let found = py.detach(|| {
        let found = look_up(opened, files, &signals)?;
        let wanted: Vec<Wanted> = found.iter().flatten().copied().collect();
        opened.check_len(&wanted).map_err(|error| exception(&error))?;
        PyResult::Ok(found)
    })?;
    let (mut ranges, mut errors) = (Vec::with_capacity(files.len()), Vec::with_capacity(files.len()));
    for (index, found) in found.into_iter().enumerate() {
        let found = found.map_err(|error| named(py, error, Some(files[index].path())));
        let (range, error) = match found {
            Ok(file) => {
                let bounds = bounds.get(index).copied().unwrap_or_default();
                (FileRange::new(file, range_within(bounds, file.len)), None)
            }
            Err(error) if keeps_errors => (FileRange::empty(), Some(error)),
            Err(error) => return Err(error),
        };
        ranges.push(range);
        errors.push(error);
    }
    let lens: Vec<usize> = ranges
        .iter()
        .map(|range| usize::try_from(range.bytes()))
        .collect::<Result<_, _>>()
        .map_err(|_| PyOverflowError::new_err("a range is longer than the address space"))?;
    let (objects, outcome) =
        filled(py, lens.into_iter(), |targets| opened.read_ranges(&ranges, targets, &signals))?;
    let failed = outcome.map_err(|error| signals.exception(&error))?;
    for (index, error) in failed {
        let path = files[index].path();
        let error = named(py, exception(&error.at(format!("{path:?}"))), Some(path));
        if !keeps_errors {
            return Err(error);
        }
        errors[index] = Some(error);
    }
    let outcomes = objects.into_iter().zip(errors).map(|(object, error)| match error {
        None => object.into_any(),
        Some(error) => error.into_value(py).into_bound(py).into_any(),
    });
    PyList::new(py, outcomes)
}
