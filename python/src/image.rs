//! An opened image.

use crate::entry::Entry;
use crate::errors::exception;
use crate::file::RawFile;
use crate::given::Given;
use crate::many::{self, Bounds, FileArg, image_path, inode, range_within};
use crate::new_bytes;
use crate::place::Place;
use crate::session::{Session, Sessions};
use crate::watch::Signals;
use packfs::{DirCursor, InodeId, InodeKind, Name, Opened, Progress};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An opened image. May be used from any thread, and in the child of a fork.
#[pyclass(frozen, module = "packfs._packfs")]
pub struct RawImage {
    sessions: Arc<Sessions>,
}

impl RawImage {
    /// Calls `work` with the opened image, detached from the interpreter.
    fn detached<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Opened) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        let session = self.sessions.current(py)?;
        py.detach(|| work(session.opened()?))
    }

    fn session(&self, py: Python<'_>) -> PyResult<Arc<Session>> {
        self.sessions.current(py)
    }
}

#[pymethods]
impl RawImage {
    /// Opens an image with the keyword arguments in a dictionary.
    #[new]
    fn new(py: Python<'_>, place: &Bound<'_, PyAny>, given: &Bound<'_, PyDict>) -> PyResult<Self> {
        let options = Given(given).open_options()?;
        let sessions = Sessions::open(py, Place::of(place)?, options)?;
        Ok(RawImage { sessions: Arc::new(sessions) })
    }

    fn close(&self) {
        self.sessions.close();
    }

    #[getter]
    fn closed(&self) -> bool {
        self.sessions.is_closed()
    }

    fn format(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.detached(py, |opened| Ok(opened.format().name()))
    }

    fn warnings(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.detached(py, |opened| Ok(opened.warnings()))
    }

    /// Statistics of reading, as a JSON object.
    fn counters(&self, py: Python<'_>) -> PyResult<String> {
        self.detached(py, |opened| Ok(serde_json::to_string(&opened.counters()).unwrap_or_default()))
    }

    fn stat(&self, py: Python<'_>, path: PathBuf, follow: bool) -> PyResult<Entry> {
        self.detached(py, |opened| {
            let image_path = image_path(&path)?;
            let id = inode(opened, &path, follow)?;
            let inode = opened.volume().inode(id).map_err(|error| exception(&error))?;
            Ok(Entry::new(image_path.as_bytes().to_vec(), id, inode))
        })
    }

    fn readlink<'py>(&self, py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyAny>> {
        let target = self
            .detached(py, |opened| opened.link_at(image_path(&path)?).map_err(|error| exception(&error)))?;
        Ok(std::ffi::OsString::from_vec(target).into_pyobject(py)?.into_any())
    }

    fn xattrs<'py>(&self, py: Python<'py>, path: PathBuf, follow: bool) -> PyResult<Bound<'py, PyDict>> {
        let xattrs = self.detached(py, |opened| {
            let id = inode(opened, &path, follow)?;
            opened.volume().xattrs(id).map_err(|error| exception(&error))
        })?;
        let dict = PyDict::new(py);
        for (name, value) in xattrs {
            dict.set_item(std::ffi::OsString::from_vec(name), PyBytes::new(py, &value))?;
        }
        Ok(dict)
    }

    /// Lists a directory.
    fn scandir<'py>(&self, py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyList>> {
        let signals = Signals::new();
        let entries = self.detached(py, |opened| {
            let at = image_path(&path)?.as_bytes().to_vec();
            directory(opened, &path).and_then(|id| list(opened, id, &at, &signals))
        })?;
        as_list(py, entries)
    }

    /// Lists everything below a directory, down to `depth` levels.
    fn find<'py>(&self, py: Python<'py>, path: PathBuf, depth: usize) -> PyResult<Bound<'py, PyList>> {
        let signals = Signals::new();
        let entries = self.detached(py, |opened| {
            let at = image_path(&path)?.as_bytes().to_vec();
            let root = directory(opened, &path)?;
            let (mut found, mut met) = (Vec::new(), HashSet::from([root]));
            let mut waiting = vec![(root, at, depth)];
            while let Some((id, at, depth)) = waiting.pop() {
                let entries = list(opened, id, &at, &signals)?;
                let below =
                    entries.iter().filter(|entry| entry.kind().1 == InodeKind::Directory && depth > 1);
                for entry in below {
                    // A second name of a directory leads in circles.
                    if met.insert(entry.id) {
                        let at = entry.path().as_encoded_bytes().to_vec();
                        waiting.push((entry.id, at, depth - 1));
                    }
                }
                found.extend(entries);
                let allowed = opened.limits().allowed(packfs::Limit::Entries).unwrap_or(u64::MAX);
                if found.len() as u64 > allowed {
                    let error = packfs::Error::limit("image", format!("more than {allowed} entries"));
                    return Err(exception(&error));
                }
            }
            Ok(found)
        })?;
        as_list(py, entries)
    }

    fn read<'py>(&self, py: Python<'py>, file: FileArg, bounds: Bounds) -> PyResult<Bound<'py, PyBytes>> {
        let session = self.session(py)?;
        let opened = session.opened()?;
        let (wanted, range) = py.detach(|| {
            let wanted = file.find(opened)?;
            opened.check_len(&[wanted]).map_err(|error| exception(&error))?;
            PyResult::Ok((wanted, range_within(bounds, wanted.len)))
        })?;
        let len = usize::try_from(range.end - range.start)
            .map_err(|_| PyMemoryError::new_err(format!("{} bytes", range.end - range.start)))?;
        new_bytes::read(py, len, |bytes| {
            let read = opened.open_id(wanted.id).and_then(|reader| reader.read_at(range.start, bytes));
            read.map_err(|error| exception(&error.at(format!("{:?}", file.path()))))
        })
    }

    /// Reads whole files, or a range of each.
    fn read_many<'py>(
        &self,
        py: Python<'py>,
        files: Vec<FileArg>,
        bounds: Vec<Bounds>,
        keeps_errors: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        many::read(py, &*self.session(py)?, &files, &bounds, keeps_errors)
    }

    /// Returns the place of the first byte of each file in the image.
    fn positions(&self, py: Python<'_>, files: Vec<FileArg>) -> PyResult<Vec<u64>> {
        let signals = Signals::new();
        self.detached(py, |opened| many::positions(opened, &files, &signals))
    }

    fn open(&self, py: Python<'_>, file: FileArg) -> PyResult<RawFile> {
        RawFile::open(py, &self.sessions, &file)
    }
}

fn directory(opened: &Opened, path: &Path) -> PyResult<InodeId> {
    opened.dir_at(image_path(path)?).map_err(|error| exception(&error))
}

/// Returns the entries of a directory at a path, in stored order.
fn list(opened: &Opened, dir: InodeId, at: &[u8], signals: &Signals) -> PyResult<Vec<Entry>> {
    let (volume, mut entries, mut fault) = (opened.volume(), Vec::new(), None);
    let read = volume.read_dir(dir, DirCursor::default(), &mut |entry, _| {
        let inode = match Name::new(&entry.name) {
            Ok(_) => volume.inode(entry.id),
            Err(fault) => Err(packfs::Error::corrupt(format!("{} image", opened.format().name()), fault)),
        };
        match inode {
            _ if signals.cancelled() => fault = Some(packfs::Error::cancelled()),
            Err(error) => fault = Some(error),
            Ok(inode) => {
                let slash: &[u8] = if at.is_empty() { b"" } else { b"/" };
                entries.push(Entry::new([at, slash, &entry.name[..]].concat(), entry.id, inode));
            }
        }
        if fault.is_none() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    match fault.map_or(read, Err) {
        Ok(()) => Ok(entries),
        Err(error) => Err(signals.exception(&error)),
    }
}

fn as_list(py: Python<'_>, entries: Vec<Entry>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for entry in entries {
        list.append(entry)?;
    }
    Ok(list)
}
