//! Memory of Python that the library fills without the GIL: decoded data is copied once, from the
//! cache of blocks to where Python reads it.
#![allow(unsafe_code)]

use packfs::read::RangeTarget;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Memory of a new object. Threads that fill parts of it wait for each other.
pub struct Target<'a>(Mutex<Memory<'a>>);

/// Memory that is zeroed by the thread that first needs it, which the work is spread over.
struct Memory<'a> {
    bytes: &'a mut [MaybeUninit<u8>],
    is_written: bool,
}

impl Memory<'_> {
    fn written(&mut self) -> &mut [u8] {
        if !self.is_written {
            self.bytes.fill(MaybeUninit::new(0));
            self.is_written = true;
        }
        // SAFETY: all of it was written, just now or by `Target::put`.
        unsafe { self.bytes.assume_init_mut() }
    }
}

impl<'m> Target<'m> {
    fn lock(&self) -> MutexGuard<'_, Memory<'m>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lent<T>(&self, fill: impl FnOnce(&mut [u8]) -> T) -> T {
        fill(self.lock().written())
    }
}

impl RangeTarget for Target<'_> {
    fn put(&self, offset: u64, bytes: &[u8]) {
        let mut memory = self.lock();
        if offset == 0 && bytes.len() == memory.bytes.len() {
            memory.bytes.write_copy_of_slice(bytes);
            memory.is_written = true;
            return;
        }
        let target = memory.written();
        let start = usize::try_from(offset).ok().filter(|&start| start <= target.len());
        if let Some(target) = start.map(|start| &mut target[start..]) {
            let len = target.len().min(bytes.len());
            target[..len].copy_from_slice(&bytes[..len]);
        }
    }

    fn with(&self, fill: &mut dyn FnMut(&mut [u8]) -> packfs::Result<()>) -> packfs::Result<()> {
        self.lent(fill)
    }
}

/// Creates one object of each length, and calls `fill` with their memory, detached from the
/// interpreter. Bytes that `fill` leaves out are zero.
///
/// Errors: `MemoryError`.
pub fn filled<'py, T: Send>(
    py: Python<'py>,
    lens: impl ExactSizeIterator<Item = usize>,
    fill: impl FnOnce(&[Target<'_>]) -> T + Send,
) -> PyResult<(Vec<Bound<'py, PyBytes>>, T)> {
    let (mut objects, mut targets) = (Vec::with_capacity(lens.len()), Vec::with_capacity(lens.len()));
    for len in lens {
        let (object, bytes) = created(py, len)?;
        objects.push(object);
        targets.push(Target(Mutex::new(Memory { bytes, is_written: len == 0 })));
    }
    let filled = py.detach(|| {
        let filled = fill(&targets);
        targets.iter().for_each(|target| target.lent(|_| ()));
        filled
    });
    Ok((objects, filled))
}

/// Creates an object of a length, and its memory, which the caller keeps no longer than the object.
fn created<'py, 'm>(
    py: Python<'py>,
    len: usize,
) -> PyResult<(Bound<'py, PyBytes>, &'m mut [MaybeUninit<u8>])> {
    // SAFETY: without bytes to copy, CPython makes an object of this length, or returns null with
    // an exception set. Lengths of slices fit into isize.
    let object = unsafe {
        let object = ffi::PyBytes_FromStringAndSize(std::ptr::null(), len as ffi::Py_ssize_t);
        Bound::from_owned_ptr_or_err(py, object)?
    };
    let object = object.cast_into::<PyBytes>()?;
    if len == 0 {
        // All empty objects are one.
        return Ok((object, &mut []));
    }
    // SAFETY: the object is new, of this length, and known to its creator alone: nothing else reads
    // or writes its memory.
    let bytes = unsafe {
        let start = ffi::PyBytes_AsString(object.as_ptr());
        std::slice::from_raw_parts_mut(start.cast::<MaybeUninit<u8>>(), len)
    };
    Ok((object, bytes))
}

/// Creates an object of a length that `fill` writes, detached from the interpreter.
///
/// Zeroing the memory first would take as long as reading it, so `fill` must write all of it, or
/// fail: readers of files do. It must not read what it has not written.
///
/// Errors: `MemoryError`, those of `fill`.
pub fn read<'py>(
    py: Python<'py>,
    len: usize,
    fill: impl FnOnce(&mut [u8]) -> PyResult<usize> + Send,
) -> PyResult<Bound<'py, PyBytes>> {
    let (object, bytes) = created(py, len)?;
    // SAFETY: the memory has this length, comes from CPython's allocator, whose bytes the compiler
    // cannot take for uninitialized, and is only written.
    let bytes = unsafe { bytes.assume_init_mut() };
    py.detach(|| {
        let done = fill(bytes)?;
        bytes[done..].fill(0);
        PyResult::Ok(())
    })?;
    Ok(object)
}

/// Calls `fill` with the memory of a writable buffer of any items, detached from the interpreter.
///
/// As with `readinto` of the files of Python, no other thread may use the buffer meanwhile.
///
/// Errors: `TypeError` if the buffer is read-only, or in pieces; those of `fill`.
pub fn read_into(
    py: Python<'_>,
    buffer: &Bound<'_, PyAny>,
    fill: impl FnOnce(&mut [u8]) -> PyResult<usize> + Send,
) -> PyResult<usize> {
    let buffer = PyUntypedBuffer::get(buffer)?;
    if buffer.readonly() || !buffer.is_c_contiguous() {
        return Err(PyTypeError::new_err("a writable, contiguous buffer is needed"));
    }
    if buffer.len_bytes() == 0 {
        return Ok(0);
    }
    // SAFETY: the buffer is contiguous, of this length, and cannot move or shrink while it is held.
    // Only the caller of Python could use it meanwhile, who must not.
    let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.buf_ptr().cast::<u8>(), buffer.len_bytes()) };
    py.detach(|| fill(bytes))
}
