//! An opened image within one process: it is opened anew in the child of a fork.

use crate::errors::exception;
use crate::place::Place;
use arc_swap::ArcSwapOption;
use packfs::{Image, OpenOptions, Opened};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// Something with threads of the engine. It is used by the process that made it.
///
/// Invariant: dropping it waits for its threads, so in another process it is never dropped.
pub struct Held<T: Send> {
    process: u32,
    /// Taken only when it is dropped.
    held: Option<T>,
}

impl<T: Send> Held<T> {
    pub fn new(held: T) -> Self {
        Held { process: std::process::id(), held: Some(held) }
    }

    /// True in the process that made it.
    pub fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// Returns it.
    pub fn get(&self) -> PyResult<&T> {
        self.held.as_ref().ok_or_else(closed)
    }
}

impl<T: Send> Drop for Held<T> {
    fn drop(&mut self) {
        let is_here = self.is_here();
        // Without the GIL, because its threads may need that to end.
        let mut drop_held = || Python::try_attach(|py| py.detach(|| drop(self.held.take())));
        if !is_here || drop_held().is_none() {
            std::mem::forget(self.held.take());
        }
    }
}

/// An image as one process has opened it.
pub struct Session {
    bytes: Option<Arc<dyn Image>>,
    opened: Held<Opened>,
}

impl Session {
    fn open(
        py: Python<'_>,
        place: &Place,
        bytes: Option<Arc<dyn Image>>,
        options: &OpenOptions,
    ) -> PyResult<Arc<Self>> {
        let opened = match (&bytes, place.path()) {
            (None, Some(path)) => py.detach(|| options.open(path)),
            (Some(bytes), _) => py.detach(|| options.open_image(Arc::clone(bytes))),
            (None, None) => return Err(closed()),
        };
        let opened = Held::new(opened.map_err(|error| exception(&error))?);
        Ok(Arc::new(Session { bytes, opened }))
    }

    /// Returns the opened image.
    pub fn opened(&self) -> PyResult<&Opened> {
        self.opened.get()
    }
}

/// The session of this process.
pub struct Sessions {
    place: Place,
    options: OpenOptions,
    // Locks may be held by threads that a fork leaves behind; this has none.
    current: ArcSwapOption<Session>,
}

impl Sessions {
    /// Opens an image.
    pub fn open(py: Python<'_>, place: Place, options: OpenOptions) -> PyResult<Self> {
        let session = Session::open(py, &place, place.open(py, &options)?, &options)?;
        Ok(Sessions { place, options, current: ArcSwapOption::from(Some(session)) })
    }

    /// Returns the session of this process.
    ///
    /// Errors: `ValueError` if the image is closed; in the child of a fork those of opening.
    pub fn current(&self, py: Python<'_>) -> PyResult<Arc<Session>> {
        let session = self.current.load_full().ok_or_else(closed)?;
        if session.opened.is_here() {
            return Ok(session);
        }
        let bytes = if self.place.survives_fork() {
            session.bytes.clone()
        } else {
            self.place.open(py, &self.options)?
        };
        let fresh = Session::open(py, &self.place, bytes, &self.options)?;
        self.current.store(Some(Arc::clone(&fresh)));
        Ok(fresh)
    }

    /// Closes the image. Calls that are under way end as usual.
    pub fn close(&self) {
        self.current.store(None);
    }

    /// True after [`Sessions::close`].
    pub fn is_closed(&self) -> bool {
        self.current.load().is_none()
    }
}

fn closed() -> PyErr {
    PyValueError::new_err("the image is closed")
}
