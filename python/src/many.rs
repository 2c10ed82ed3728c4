//! Ranges of many files at once, decoded on all threads in the order of the image.
//!
//! Whole files that the cache cannot hold are read by the engine's pass in disk order, each block
//! once. All else goes through the cache, so that later calls find what is decoded.

use crate::errors::{exception, not_a_file, of_lookup};
use crate::new_bytes::{Target, filled};
use crate::session::Session;
use crate::watch::Signals;
use packfs::read::Wanted;
use packfs::{Error, ExtentFrom, ImagePath, InodeId, InodeKind, Limit, Opened, Progress, Result};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bytes of whole files beyond which the cache is left alone.
const CACHED_LEN_MAX: u64 = 16 << 20;
/// Bytes that are worth a thread.
const LEN_A_THREAD: u64 = 256 << 10;
/// Files that a thread looks up at a time.
const LOOK_UPS: usize = 64;
/// Ranges that a thread reads at a time: neighbors share blocks.
const READS: usize = 8;

/// A file as an argument names it.
pub enum FileArg {
    Path(PathBuf),
    /// Path, inode, and type of an entry that was listed.
    Known(PathBuf, InodeId, InodeKind),
}

impl<'py> FromPyObject<'_, 'py> for FileArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(entry) = object.cast::<crate::entry::Entry>() {
            let entry = entry.get();
            let (id, kind) = entry.kind();
            // A link is followed by its path.
            if kind != InodeKind::Symlink {
                return Ok(FileArg::Known(entry.path().into(), id, kind));
            }
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
        let (id, kind) = match self {
            FileArg::Known(_, id, kind) => (*id, *kind),
            FileArg::Path(path) => inode(opened, path, true)?,
        };
        match kind {
            InodeKind::File { len } => Ok(Wanted { id, len }),
            other => Err(not_a_file(&self.path().to_string_lossy(), other.file_type().word())),
        }
    }
}

/// Finds a path, and what is there.
pub fn inode(opened: &Opened, path: &Path, follow: bool) -> PyResult<(InodeId, InodeKind)> {
    let path = image_path(path)?;
    let id = if follow { opened.resolve(&path) } else { opened.find(&path) };
    let id = id.map_err(|error| of_lookup(&error))?;
    Ok((id, opened.volume().inode(id).map_err(|error| exception(&error))?.kind))
}

/// Returns a path in an image.
pub fn image_path(path: &Path) -> PyResult<ImagePath> {
    use std::os::unix::ffi::OsStrExt;
    ImagePath::parse(path.as_os_str().as_bytes()).map_err(|error| exception(&error))
}

/// Refuses files that are longer together than the limits allow.
pub fn check_len(opened: &Opened, wanted: &[Wanted]) -> PyResult<()> {
    let total = wanted.iter().fold(0_u64, |total, file| total.saturating_add(file.len));
    let checked = opened.limits().check("files to read", Limit::Bytes, total);
    checked.and_then(|()| opened.engine().check_data(wanted)).map_err(|error| exception(&error))
}

/// A range of a file to read, with its place in the image.
struct Read {
    wanted: Wanted,
    range: Range<u64>,
    place: (u64, u32),
}

impl Read {
    fn len(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    fn is_whole(&self) -> bool {
        self.range == (0..self.wanted.len)
    }
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

/// Returns the place of a byte: the offset of its block, and the offset within that.
fn place(opened: &Opened, id: InodeId, range: &Range<u64>) -> (u64, u32) {
    let mut place = (0, 0);
    let first = range.start..range.end.min(range.start.saturating_add(1));
    // A file that is damaged is another call's to report.
    let _ = opened.volume().extents(id, first, &mut |extent| {
        place = match extent.from {
            ExtentFrom::Hole => (0, 0),
            ExtentFrom::Stored(at) => (at, 0),
            ExtentFrom::Block { block, start } => (block.offset, start),
        };
        ControlFlow::Break(())
    });
    place
}

/// Returns the place of the first byte of each file; 0 for empty files and holes.
pub fn positions(opened: &Opened, files: &[FileArg], signals: &Signals) -> PyResult<Vec<u64>> {
    let reads = look_up(opened, files, &[], signals)?;
    reads.into_iter().map(|read| read.map(|read| read.place.0)).collect()
}

/// Calls `work` for chunks of `0..count`, on up to `threads` threads, this one included.
fn spread(
    count: usize,
    chunk: usize,
    threads: usize,
    signals: &Signals,
    work: &(dyn Fn(usize) + Sync),
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let share = || {
        loop {
            let start = next.fetch_add(chunk, Ordering::Relaxed);
            if start >= count || signals.cancelled() {
                return;
            }
            (start..count.min(start + chunk)).for_each(work);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(count.div_ceil(chunk)) {
            // If threads are short, fewer do the same.
            if std::thread::Builder::new().spawn_scoped(scope, share).is_err() {
                break;
            }
        }
        share();
    });
    if signals.cancelled() { Err(Error::cancelled()) } else { Ok(()) }
}

fn look_up(
    opened: &Opened,
    files: &[FileArg],
    bounds: &[Bounds],
    signals: &Signals,
) -> PyResult<Vec<PyResult<Read>>> {
    let found: Vec<Mutex<Option<PyResult<Read>>>> = files.iter().map(|_| Mutex::new(None)).collect();
    let one = |index: usize| {
        let read = files[index].find(opened).map(|wanted| {
            let range = range_within(bounds.get(index).copied().unwrap_or_default(), wanted.len);
            Read { wanted, place: place(opened, wanted.id, &range), range }
        });
        *found[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
    };
    spread(files.len(), LOOK_UPS, opened.engine().jobs(), signals, &one)
        .map_err(|error| signals.exception(&error))?;
    let taken =
        found.into_iter().filter_map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
    Ok(taken.collect())
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
    let mut reads = Vec::new();
    let mut errors: Vec<Option<PyErr>> = Vec::new();
    let found = py.detach(|| {
        let found = look_up(opened, files, bounds, &signals)?;
        let wanted: Vec<Wanted> = found.iter().flatten().map(|read| read.wanted).collect();
        check_len(opened, &wanted)?;
        PyResult::Ok(found)
    })?;
    for found in found {
        let (read, error) = match found {
            Ok(read) => (read, None),
            Err(error) if keeps_errors => (nothing(), Some(error)),
            Err(error) => return Err(error),
        };
        reads.push(read);
        errors.push(error);
    }
    let lens: Vec<usize> = reads
        .iter()
        .map(|read| usize::try_from(read.len()))
        .collect::<Result<_, _>>()
        .map_err(|_| PyOverflowError::new_err("a range is longer than the address space"))?;
    let (objects, outcome) = filled(py, lens.into_iter(), |targets| fill(opened, &reads, targets, &signals))?;
    let failed = outcome.map_err(|error| signals.exception(&error))?;
    for (index, error) in failed {
        let error = exception(&error.at(format!("{:?}", files[index].path())));
        if !keeps_errors {
            return Err(error);
        }
        errors[index] = Some(error);
    }
    let list = PyList::empty(py);
    for (object, error) in objects.into_iter().zip(errors) {
        match error {
            None => list.append(object)?,
            Some(error) => list.append(error.into_value(py))?,
        }
    }
    Ok(list)
}

fn nothing() -> Read {
    Read { wanted: Wanted { id: InodeId(0), len: 0 }, range: 0..0, place: (0, 0) }
}

/// Fills the targets; returns errors of single files.
fn fill(
    opened: &Opened,
    reads: &[Read],
    targets: &[Target<'_>],
    signals: &Signals,
) -> Result<Vec<(usize, Error)>> {
    let total = reads.iter().fold(0_u64, |total, read| total.saturating_add(read.len()));
    let failed = Mutex::new(Vec::new());
    if total > CACHED_LEN_MAX && reads.iter().all(Read::is_whole) {
        let wanted: Vec<Wanted> = reads.iter().map(|read| read.wanted).collect();
        let sink = || Ok(Sink { targets, failed: &failed });
        opened.engine().in_disk_order(&wanted, signals, &sink)?;
    } else {
        let mut order: Vec<usize> = (0..reads.len()).filter(|&index| reads[index].len() > 0).collect();
        order.sort_by_key(|&index| reads[index].place);
        let one = |at: usize| {
            let index = order[at];
            let Read { wanted, range, .. } = &reads[index];
            let file = opened.open_id(wanted.id);
            let read = file.and_then(|file| targets[index].with(|memory| file.read_at(range.start, memory)));
            if let Err(error) = read {
                failed.lock().unwrap_or_else(PoisonError::into_inner).push((index, error));
            }
        };
        let threads = opened.engine().jobs().min(usize::try_from(total / LEN_A_THREAD).unwrap_or(1).max(1));
        spread(order.len(), READS, threads, signals, &one)?;
    }
    let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.sort_by_key(|(index, _)| *index);
    Ok(failed)
}

/// Receives the pieces of files in disk order.
struct Sink<'a, 'b> {
    targets: &'a [Target<'b>],
    failed: &'a Mutex<Vec<(usize, Error)>>,
}

impl packfs::read::PieceSink for Sink<'_, '_> {
    fn piece(&mut self, file_index: usize, offset: u64, bytes: &[u8]) -> Result<()> {
        if let Some(target) = self.targets.get(file_index) {
            target.put(offset, bytes);
        }
        Ok(())
    }

    fn failed(&mut self, file_index: usize, error: Error) -> Result<()> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).push((file_index, error));
        Ok(())
    }
}
