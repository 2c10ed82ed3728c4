//! The place of an image: a path, a URL, or a file object of Python.

use crate::errors::exception;
use packfs::{Error, Image, OpenOptions, Result, url_scheme};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Most bytes requested of a file object at a time.
const READ_LEN_MAX: usize = 16 << 20;

/// The place of an image.
pub enum Place {
    /// Path of this machine, or URL.
    Path(PathBuf),
    /// File object: seekable, and opened for reading bytes.
    Object(Py<PyAny>),
}

impl Place {
    /// Returns the place that an argument names.
    ///
    /// Errors: `TypeError` for anything but a path and a file object.
    pub fn of(argument: &Bound<'_, PyAny>) -> PyResult<Self> {
        if argument.hasattr("read")? && argument.hasattr("seek")? {
            return Ok(Place::Object(argument.clone().unbind()));
        }
        let path = argument.extract::<PathBuf>().map_err(|_| {
            let found = argument.get_type();
            PyTypeError::new_err(format!("an image is a path, a URL, or a file object, not {found}"))
        })?;
        Ok(Place::Path(path))
    }

    /// Returns the path, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Place::Path(path) => Some(path),
            Place::Object(_) => None,
        }
    }

    /// Opens the bytes at the place. `None` for what is opened by its name: layers of an OCI image
    /// are several files.
    pub fn open(&self, py: Python<'_>, options: &OpenOptions) -> PyResult<Option<Arc<dyn Image>>> {
        match self {
            Place::Path(path) if is_oci(path) => Ok(None),
            Place::Path(path) => {
                py.detach(|| options.bytes_at(path)).map(Some).map_err(|error| exception(&error))
            }
            Place::Object(object) => Ok(Some(Arc::new(ObjectImage::new(object.bind(py))?))),
        }
    }

    /// True if opened bytes serve the child of a fork, too: reading a local file takes no locks.
    pub fn survives_fork(&self) -> bool {
        matches!(self, Place::Path(path) if url_scheme(path).is_none() && !is_oci(path))
    }
}

/// True for the name of an OCI image, and for a directory, which holds one or nothing.
fn is_oci(path: &Path) -> bool {
    packfs::Place::of(path).is_oci() || path.is_dir()
}

/// An image in a file object. Threads wait for each other.
struct ObjectImage {
    object: Py<PyAny>,
    len: u64,
    name: String,
    /// Held from seeking to the end of reading; taken without the GIL.
    turn: Mutex<()>,
}

impl ObjectImage {
    fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let end = object.call_method1("seek", (0, 2))?;
        let len = end.extract::<u64>().or_else(|_| object.call_method0("tell")?.extract())?;
        let name = object.getattr("name").or_else(|_| object.getattr("path"));
        let name = name.and_then(|name| name.extract::<String>()).unwrap_or_else(|_| "file object".into());
        Ok(ObjectImage { object: object.clone().unbind(), len, name, turn: Mutex::new(()) })
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> PyResult<usize> {
        Python::attach(|py| {
            let object = self.object.bind(py);
            object.call_method1("seek", (offset,))?;
            let mut filled = 0;
            while filled < buf.len() {
                let wanted = (buf.len() - filled).min(READ_LEN_MAX);
                let read = object.call_method1("read", (wanted,))?;
                let bytes = read.cast::<PyBytes>().map_err(PyErr::from)?.as_bytes();
                if bytes.is_empty() {
                    break;
                }
                // An object that returns more than was requested is no file.
                let Some(part) = buf.get_mut(filled..filled + bytes.len()) else {
                    return Err(PyTypeError::new_err("read() returned more than was requested"));
                };
                part.copy_from_slice(bytes);
                filled += bytes.len();
            }
            Ok(filled)
        })
    }
}

impl Image for ObjectImage {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.read(offset, buf).map_err(|error| {
            let source = std::io::Error::other(error.to_string());
            Error::io(format!("cannot read {:?} at {offset:#x}", self.name), source)
        })
    }

    fn name(&self) -> String {
        format!("{:?}", self.name)
    }
}
