//! An opened image.

use crate::entry::Entry;
use crate::errors::{exception, in_python, json, named};
use crate::file::RawFile;
use crate::given::Given;
use crate::many::{self, Bounds, FileArg, image_path, inode, range_within};
use crate::new_bytes;
use crate::place::Place;
use crate::session::{Session, Sessions};
use crate::watch::Signals;
use packfs::read::{FileRange, Wanted};
use packfs::{DirCursor, InodeId, InodeKind, Name, Opened, Progress};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
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

    /// The same for work that concerns a path, which errors have.
    fn detached_at<T: Send>(
        &self,
        py: Python<'_>,
        path: &Path,
        work: impl FnOnce(&Opened) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        self.detached(py, work).map_err(|error| named(py, error, Some(path)))
    }

    fn read_range<'py>(
        &self,
        py: Python<'py>,
        file: &FileArg,
        bounds: Bounds,
    ) -> PyResult<Bound<'py, PyBytes>> {
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
        let place = Place::of(place)?;
        let path = place.path().map(Path::to_owned);
        let sessions =
            Sessions::open(py, place, options).map_err(|error| named(py, error, path.as_deref()))?;
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
        self.detached(py, |opened| Ok(opened.warnings().iter().map(|text| in_python(text)).collect()))
    }

    /// Statistics of reading, as a JSON object.
    fn counters(&self, py: Python<'_>) -> PyResult<String> {
        self.detached(py, |opened| json(&opened.counters()))
    }

    fn stat(&self, py: Python<'_>, path: PathBuf, follow: bool) -> PyResult<Entry> {
        self.detached_at(py, &path, |opened| {
            let image_path = image_path(&path)?;
            let id = inode(opened, &path, follow)?;
            let inode = opened.volume().inode(id).map_err(|error| exception(&error))?;
            Ok(Entry::new(image_path.as_bytes().to_vec(), id, &inode))
        })
    }

    fn readlink<'py>(&self, py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyAny>> {
        let target = self.detached_at(py, &path, |opened| {
            opened.link_at(image_path(&path)?).map_err(|error| exception(&error))
        })?;
        Ok(OsString::from_vec(target).into_pyobject(py)?.into_any())
    }

    fn xattrs<'py>(&self, py: Python<'py>, path: PathBuf, follow: bool) -> PyResult<Bound<'py, PyDict>> {
        let xattrs = self.detached_at(py, &path, |opened| {
            let id = inode(opened, &path, follow)?;
            opened.volume().xattrs(id).map_err(|error| exception(&error))
        })?;
        let dict = PyDict::new(py);
        for (name, value) in xattrs {
            dict.set_item(OsString::from_vec(name), PyBytes::new(py, &value))?;
        }
        Ok(dict)
    }

    /// Lists a directory.
    fn scandir<'py>(&self, py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyList>> {
        let signals = Signals::new();
        let entries = self.detached_at(py, &path, |opened| {
            let at = image_path(&path)?.as_bytes().to_vec();
            directory(opened, &path).and_then(|id| list(opened, id, &at, &signals))
        })?;
        as_list(py, entries)
    }

    /// Lists everything below a directory, down to `depth` levels.
    fn find<'py>(&self, py: Python<'py>, path: PathBuf, depth: usize) -> PyResult<Bound<'py, PyList>> {
        let signals = Signals::new();
        let entries = self.detached_at(py, &path, |opened| find(opened, &path, depth, &signals))?;
        as_list(py, entries)
    }

    /// Lists the regular files below a directory with one of these endings, sorted by path: the
    /// paths one after the other, and as arrays of u64 their ends, inodes, and lengths.
    fn files<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        endings: Option<Vec<PathBuf>>,
    ) -> PyResult<[Bound<'py, PyBytes>; 4]> {
        let signals = Signals::new();
        let columns = self.detached_at(py, &path, |opened| {
            let mut found = find(opened, &path, usize::MAX, &signals)?;
            let ends = |path: &[u8]| match &endings {
                Some(endings) => endings.iter().any(|ending| path.ends_with(ending.as_os_str().as_bytes())),
                None => true,
            };
            found.retain(|entry| entry.file_len().is_some() && ends(entry.path().as_bytes()));
            found.sort_unstable_by(|a, b| a.path().cmp(b.path()));
            found.dedup_by(|a, b| a.path() == b.path());
            let mut columns = <[Vec<u8>; 4]>::default();
            for entry in found {
                columns[0].extend(entry.path().as_bytes());
                let numbers = [columns[0].len() as u64, entry.id.0, entry.file_len().unwrap_or_default()];
                for (column, number) in columns[1..].iter_mut().zip(numbers) {
                    column.extend(number.to_ne_bytes());
                }
            }
            Ok(columns)
        })?;
        Ok(columns.map(|column| PyBytes::new(py, &column)))
    }

    fn read<'py>(&self, py: Python<'py>, file: FileArg, bounds: Bounds) -> PyResult<Bound<'py, PyBytes>> {
        self.read_range(py, &file, bounds).map_err(|error| named(py, error, Some(file.path())))
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

    /// Returns the indices of files, given by their inodes and lengths, in the order of their data.
    fn disk_order(&self, py: Python<'_>, ids: PyBuffer<u64>, lens: PyBuffer<u64>) -> PyResult<Vec<usize>> {
        let files = ids.to_vec(py)?.into_iter().zip(lens.to_vec(py)?);
        let files = files.map(|(id, len)| FileRange::new(Wanted { id: InodeId(id), len }, 0..len));
        let (files, signals): (Vec<_>, _) = (files.collect(), Signals::new());
        self.detached(py, |opened| {
            let places = opened.positions(&files, &signals).map_err(|error| signals.exception(&error))?;
            let mut order: Vec<usize> = (0..places.len()).collect();
            order.sort_by_key(|&index| places[index]);
            Ok(order)
        })
    }

    fn open(&self, py: Python<'_>, file: FileArg) -> PyResult<RawFile> {
        RawFile::open(py, &self.sessions, &file).map_err(|error| named(py, error, Some(file.path())))
    }
}

fn directory(opened: &Opened, path: &Path) -> PyResult<InodeId> {
    opened.dir_at(image_path(path)?).map_err(|error| exception(&error))
}

/// Returns everything below a directory, down to `depth` levels.
fn find(opened: &Opened, path: &Path, depth: usize, signals: &Signals) -> PyResult<Vec<Entry>> {
    let at = image_path(path)?.as_bytes().to_vec();
    let root = directory(opened, path)?;
    let (mut found, mut met) = (Vec::new(), HashSet::from([root]));
    let mut waiting = vec![(root, at, depth)];
    while let Some((id, at, depth)) = waiting.pop() {
        let entries = list(opened, id, &at, signals)?;
        let below = entries.iter().filter(|entry| entry.kind().1 == InodeKind::Directory && depth > 1);
        for entry in below {
            // A second name of a directory leads in circles.
            if met.insert(entry.id) {
                waiting.push((entry.id, entry.path().as_bytes().to_vec(), depth - 1));
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
}

/// Returns the classes of samples, sorted, and the index of the class of each sample: that is the
/// directory below `root` in its path. `names` and `ends` are those of `RawImage.files`.
///
/// Errors: `ValueError` for a sample in no such directory.
#[pyfunction]
pub fn classes(
    py: Python<'_>,
    names: &[u8],
    ends: PyBuffer<u64>,
    root: &[u8],
) -> PyResult<(Vec<OsString>, Vec<usize>)> {
    let (mut start, mut found) = (0, Vec::new());
    for end in ends.to_vec(py)? {
        let end = usize::try_from(end)?;
        let path = names.get(start..end).unwrap_or_default();
        start = end;
        let below = path.strip_prefix(root).unwrap_or(path);
        let below = &below[below.iter().take_while(|&&byte| byte == b'/').count()..];
        let Some(slash) = below.iter().position(|&byte| byte == b'/') else {
            let (path, root) = (String::from_utf8_lossy(path), String::from_utf8_lossy(root));
            let fault = format!("{path:?} is in no directory below {root:?}, so it has no class");
            return Err(PyValueError::new_err(fault));
        };
        found.push(&below[..slash]);
    }
    let sorted: Vec<&[u8]> = found.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    let labels = found.iter().map(|class| sorted.partition_point(|other| other < class)).collect();
    Ok((sorted.into_iter().map(|class| OsString::from_vec(class.to_vec())).collect(), labels))
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
                entries.push(Entry::new([at, slash, &entry.name[..]].concat(), entry.id, &inode));
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
