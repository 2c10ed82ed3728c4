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

/// An opened file. May be read from any thread.
#[pyclass(frozen, module = "packfs._packfs")]
pub struct RawFile {
    sessions: Arc<Sessions>,
    id: InodeId,
    len: u64,
    current: ArcSwap<Held<FileReader>>,
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
        Ok(RawFile { sessions: Arc::clone(sessions), id: wanted.id, len: wanted.len, current })
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

    /// Reads up to `len` bytes from `offset`, fewer only at the end of the file.
    fn read_at<'py>(&self, py: Python<'py>, offset: u64, len: u64) -> PyResult<Bound<'py, PyBytes>> {
        let reader = self.reader(py)?;
        let reader = reader.get()?;
        let len = usize::try_from(len.min(self.len.saturating_sub(offset)))?;
        new_bytes::read(py, len, |bytes| reader.read_at(offset, bytes).map_err(|error| exception(&error)))
    }

    /// Fills a buffer of bytes from `offset`; returns the number of bytes, fewer only at the end of
    /// the file.
    fn read_into(&self, py: Python<'_>, offset: u64, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        let reader = self.reader(py)?;
        let reader = reader.get()?;
        let fill = |bytes: &mut [u8]| reader.read_at(offset, bytes).map_err(|error| exception(&error));
        new_bytes::read_into(py, buffer, fill)
    }
}
