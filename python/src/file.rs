//! An opened file, read by position.

use crate::errors::exception;
use crate::many::FileArg;
use crate::new_bytes;
use crate::session::{Held, Sessions};
use arc_swap::ArcSwap;
use packfs::{FileReader, InodeId};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// An opened file with a position. May be read from any thread.
#[pyclass(frozen, module = "packfs._packfs")]
pub struct RawFile {
    sessions: Arc<Sessions>,
    id: InodeId,
    len: u64,
    current: ArcSwap<Held<FileReader>>,
    /// Position in bytes; threads that share it take turns of their own.
    at: AtomicU64,
}

impl RawFile {
    pub fn open(py: Python<'_>, sessions: &Arc<Sessions>, file: &FileArg) -> PyResult<Self> {
        let session = sessions.current(py)?;
        let (wanted, reader) = py.detach(|| {
            let opened = session.opened()?;
            let wanted = file.find(opened)?;
            let reader = opened.open_id(wanted.id).map_err(|error| exception(&error))?;
            PyResult::Ok((wanted, reader))
        })?;
        let current = ArcSwap::from_pointee(Held::new(reader));
        let (sessions, at) = (Arc::clone(sessions), AtomicU64::new(0));
        Ok(RawFile { sessions, id: wanted.id, len: wanted.len, current, at })
    }

    /// Returns the reader of this process.
    fn reader(&self, py: Python<'_>) -> PyResult<Arc<Held<FileReader>>> {
        let current = self.current.load_full();
        if current.is_here() {
            return Ok(current);
        }
        let session = self.sessions.current(py)?;
        let reader = py.detach(|| session.opened()?.open_id(self.id).map_err(|error| exception(&error)))?;
        let fresh = Arc::new(Held::new(reader));
        self.current.store(Arc::clone(&fresh));
        Ok(fresh)
    }
}

#[pymethods]
impl RawFile {
    /// Length in bytes.
    #[getter]
    fn size(&self) -> u64 {
        self.len
    }

    /// Position in bytes.
    #[getter]
    fn position(&self) -> u64 {
        self.at.load(Relaxed)
    }

    fn seek(&self, position: u64) {
        self.at.store(position, Relaxed);
    }

    /// Reads up to `len` bytes from the position, all that follow if it is negative or missing, and
    /// moves the position.
    fn read<'py>(&self, py: Python<'py>, len: Option<i64>) -> PyResult<Bound<'py, PyBytes>> {
        let at = self.position();
        let len = len.and_then(|len| u64::try_from(len).ok()).unwrap_or(u64::MAX);
        let bytes = self.read_at(py, at, len)?;
        self.seek(at + bytes.as_bytes().len() as u64);
        Ok(bytes)
    }

    /// Reads up to `len` bytes from `offset`, fewer only at the end of the file.
    fn read_at<'py>(&self, py: Python<'py>, offset: u64, len: u64) -> PyResult<Bound<'py, PyBytes>> {
        let reader = self.reader(py)?;
        let reader = reader.get()?;
        let len = usize::try_from(len.min(self.len.saturating_sub(offset)))?;
        new_bytes::read(py, len, |bytes| reader.read_at(offset, bytes).map_err(|error| exception(&error)))
    }

    /// Fills a buffer from the position, and moves that; returns the number of bytes, fewer only at
    /// the end of the file.
    fn readinto(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        let reader = self.reader(py)?;
        let (reader, at) = (reader.get()?, self.position());
        let fill = |bytes: &mut [u8]| reader.read_at(at, bytes).map_err(|error| exception(&error));
        let count = new_bytes::read_into(py, buffer, fill)?;
        self.seek(at + count as u64);
        Ok(count)
    }
}
