//! Signals and progress while the library works: Ctrl-C stops it, and callbacks run on the thread
//! that called.

use crate::errors::{exception, in_python};
use packfs::{Error, Progress, Stage};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// Time between two looks at signals.
const INTERVAL: Duration = Duration::from_millis(50);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops work that the calling thread takes part in when a signal handler raises, as Ctrl-C does.
pub struct Signals {
    thread: ThreadId,
    stopped: AtomicBool,
    next: Mutex<Instant>,
    raised: Mutex<Option<PyErr>>,
}

impl Signals {
    /// Watches for the calling thread.
    pub fn new() -> Self {
        Signals {
            thread: std::thread::current().id(),
            stopped: AtomicBool::new(false),
            next: Mutex::new(Instant::now() + INTERVAL),
            raised: Mutex::new(None),
        }
    }

    /// Returns the exception for an error of the work: that of the handler, if one raised.
    pub fn exception(&self, error: &Error) -> PyErr {
        lock(&self.raised).take().unwrap_or_else(|| exception(error))
    }
}

impl Progress for Signals {
    fn cancelled(&self) -> bool {
        if self.stopped.load(Ordering::Relaxed) || std::thread::current().id() != self.thread {
            return self.stopped.load(Ordering::Relaxed);
        }
        let now = Instant::now();
        let mut next = lock(&self.next);
        if now < *next {
            return false;
        }
        *next = now + INTERVAL;
        if let Err(error) = Python::attach(|py| py.check_signals()) {
            *lock(&self.raised) = Some(error);
            self.stopped.store(true, Ordering::Relaxed);
        }
        self.stopped.load(Ordering::Relaxed)
    }
}

/// Figures of a job that runs on another thread.
#[derive(Default)]
struct Figures {
    stopped: AtomicBool,
    stage: Mutex<Option<(Stage, u64, u64)>>,
    files: AtomicU64,
    bytes: AtomicU64,
    bytes_out: AtomicU64,
    warnings: Mutex<Vec<String>>,
}

impl Progress for Figures {
    fn begin(&self, stage: Stage, files_total: u64, bytes_total: u64) {
        *lock(&self.stage) = Some((stage, files_total, bytes_total));
        for figure in [&self.files, &self.bytes, &self.bytes_out] {
            figure.store(0, Ordering::Relaxed);
        }
    }

    fn advance(&self, files: u64, bytes_in: u64, bytes_out: u64) {
        self.files.fetch_add(files, Ordering::Relaxed);
        self.bytes.fetch_add(bytes_in, Ordering::Relaxed);
        self.bytes_out.fetch_add(bytes_out, Ordering::Relaxed);
    }

    fn warn(&self, message: &str) {
        lock(&self.warnings).push(message.to_owned());
    }

    fn cancelled(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

impl Figures {
    /// Runs handlers of signals, warnings, and the callback.
    fn tell(&self, callback: Option<&Py<PyAny>>) -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            for message in std::mem::take(&mut *lock(&self.warnings)) {
                let message = CString::new(in_python(&message).replace('\0', "\\0"))?;
                PyErr::warn(py, &py.get_type::<PyUserWarning>(), &message, 2)?;
            }
            let stage = *lock(&self.stage);
            let (Some(callback), Some((stage, files_total, bytes_total))) = (callback, stage) else {
                return Ok(());
            };
            let [files, bytes, bytes_out] =
                [&self.files, &self.bytes, &self.bytes_out].map(|figure| figure.load(Ordering::Relaxed));
            callback.call1(py, (stage.name(), files, files_total, bytes, bytes_total, bytes_out)).map(|_| ())
        })
    }
}

/// Runs a job on a thread of its own, while this one runs handlers of signals and `callback`. If
/// one of these raises, the job is stopped, and the exception returned.
pub fn watched<T: Send>(
    py: Python<'_>,
    callback: Option<Py<PyAny>>,
    job: impl FnOnce(&dyn Progress) -> packfs::Result<T> + Send,
) -> PyResult<T> {
    let figures = Figures::default();
    let (outcome, raised) = py.detach(|| {
        std::thread::scope(|scope| {
            let (done, finished) = channel::<()>();
            let figures = &figures;
            let thread = scope.spawn(move || {
                // Dropped at the end, by a panic too, which ends the waiting.
                let _done = done;
                job(figures)
            });
            let mut raised = None;
            while raised.is_none() && finished.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                raised = figures.tell(callback.as_ref()).err();
            }
            figures.stopped.store(raised.is_some(), Ordering::Relaxed);
            let outcome = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let raised = raised.or_else(|| figures.tell(callback.as_ref()).err());
            (outcome, raised)
        })
    });
    match raised {
        Some(raised) => Err(raised),
        None => outcome.map_err(|error| exception(&error)),
    }
}
