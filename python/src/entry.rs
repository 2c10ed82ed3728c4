//! One entry of an image, with the names that `os.stat_result` and `os.DirEntry` have.

use crate::given::wrong;
use packfs::{DeviceNumber, FileType, Inode, InodeId, InodeKind, Meta, Owner, Timestamp};
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::ffi::{OsStr, OsString};
use std::hash::{Hash, Hasher};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Entry of an image: path and metadata. Attributes as of os.stat_result, methods as of
/// os.DirEntry.
#[pyclass(frozen, eq, hash, module = "packfs")]
#[derive(PartialEq, Eq)]
pub struct Entry {
    path: Vec<u8>,
    pub(crate) id: InodeId,
    kind: InodeKind,
    meta: Meta,
    links: u32,
}

impl Hash for Entry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.path, self.id.0).hash(state);
    }
}

impl Entry {
    pub(crate) fn new(path: Vec<u8>, id: InodeId, inode: &Inode) -> Self {
        Entry { path, id, kind: inode.kind, meta: inode.meta, links: inode.links }
    }

    /// Returns the inode and the kind of what is there.
    pub(crate) fn kind(&self) -> (InodeId, InodeKind) {
        (self.id, self.kind)
    }

    pub(crate) fn path(&self) -> &OsStr {
        OsStr::from_bytes(&self.path)
    }

    /// Returns the length of a regular file; none for anything else.
    pub(crate) fn file_len(&self) -> Option<u64> {
        match self.kind {
            InodeKind::File { len } => Some(len),
            _ => None,
        }
    }

    fn is(&self, file_type: FileType) -> bool {
        self.kind.file_type() == file_type
    }
}

/// Nanoseconds of a second.
const SECOND: i128 = 1_000_000_000;

/// Path, and the values of os.stat_result that pickling stores, with the number of a device.
type Pickled = (OsString, u64, u32, u64, [u32; 3], i128, Option<(u32, u32)>);

#[pymethods]
impl Entry {
    /// An entry as pickling stores it.
    #[new]
    #[pyo3(signature = (path, ino, mode, size, owner, mtime_ns, device = None))]
    fn unpickled(
        path: PathBuf,
        ino: u64,
        mode: u32,
        size: u64,
        owner: [u32; 3],
        mtime_ns: i128,
        device: Option<(u32, u32)>,
    ) -> PyResult<Self> {
        let [uid, gid, links] = owner;
        let (major, minor) = device.unwrap_or((0, 0));
        let kind = kind_of(mode, size, DeviceNumber { major, minor })
            .ok_or_else(|| wrong("mode", &format!("{mode:#o} has no type of a file")))?;
        let seconds = i64::try_from(mtime_ns.div_euclid(SECOND))
            .map_err(|_| wrong("mtime_ns", &format!("{mtime_ns} is no time")))?;
        let mtime = Timestamp { seconds, nanos: mtime_ns.rem_euclid(SECOND) as u32 };
        let meta = Meta { mode: (mode & 0o7777) as u16, owner: Owner { uid, gid }, mtime };
        Ok(Entry { path: path.into_os_string().into_vec(), id: InodeId(ino), kind, meta, links })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, Pickled) {
        let entry = slf.get();
        let values = (
            entry.path().to_owned(),
            entry.st_ino(),
            entry.st_mode(),
            entry.st_size(),
            [entry.st_uid(), entry.st_gid(), entry.st_nlink()],
            entry.st_mtime_ns(),
            entry.device(),
        );
        (slf.get_type(), values)
    }

    /// Path from the root of the image, without a slash before it; the root is empty.
    #[getter(path)]
    fn path_of(&self) -> &OsStr {
        self.path()
    }

    /// Last part of the path.
    #[getter]
    fn name(&self) -> &OsStr {
        OsStr::from_bytes(self.path.rsplit(|&byte| byte == b'/').next().unwrap_or_default())
    }

    /// Type: "directory", "file", "symlink", "block device", "character device", "fifo", or
    /// "socket".
    #[getter(kind)]
    fn kind_name(&self) -> &'static str {
        self.kind.file_type().word()
    }

    /// Permissions and type bits.
    #[getter]
    fn st_mode(&self) -> u32 {
        self.kind.file_type().mode_bits() | u32::from(self.meta.mode)
    }

    /// Length of a file in bytes; 0 for anything else.
    #[getter]
    fn st_size(&self) -> u64 {
        self.file_len().unwrap_or_default()
    }

    /// User id.
    #[getter]
    fn st_uid(&self) -> u32 {
        self.meta.owner.uid
    }

    /// Group id.
    #[getter]
    fn st_gid(&self) -> u32 {
        self.meta.owner.gid
    }

    /// Link count as stored.
    #[getter]
    fn st_nlink(&self) -> u32 {
        self.links
    }

    /// Number that entries of one inode share, within this image.
    #[getter]
    fn st_ino(&self) -> u64 {
        self.id.0
    }

    /// Modification time in seconds since 1970.
    #[getter]
    fn st_mtime(&self) -> f64 {
        let time = self.meta.mtime;
        time.seconds as f64 + f64::from(time.nanos) / 1e9
    }

    /// Modification time in nanoseconds since 1970.
    #[getter]
    fn st_mtime_ns(&self) -> i128 {
        let time = self.meta.mtime;
        i128::from(time.seconds) * SECOND + i128::from(time.nanos)
    }

    /// Major and minor number of a device; None for anything else.
    #[getter]
    fn device(&self) -> Option<(u32, u32)> {
        match self.kind {
            InodeKind::BlockDevice(number) | InodeKind::CharDevice(number) => {
                Some((number.major, number.minor))
            }
            _ => None,
        }
    }

    /// True for a regular file. Links are not followed.
    fn is_file(&self) -> bool {
        self.is(FileType::File)
    }

    /// True for a directory. Links are not followed.
    fn is_dir(&self) -> bool {
        self.is(FileType::Directory)
    }

    /// True for a symbolic link.
    fn is_symlink(&self) -> bool {
        self.is(FileType::Symlink)
    }

    fn __fspath__(&self) -> &OsStr {
        self.path()
    }

    fn __repr__(&self) -> String {
        let path = String::from_utf8_lossy(&self.path);
        format!("<packfs.Entry {path:?} {} of {} bytes>", self.kind_name(), self.st_size())
    }
}

/// Returns the kind for the type bits of a mode; `None` for others.
fn kind_of(mode: u32, len: u64, number: DeviceNumber) -> Option<InodeKind> {
    let kinds = [
        InodeKind::File { len },
        InodeKind::Directory,
        InodeKind::Symlink,
        InodeKind::BlockDevice(number),
        InodeKind::CharDevice(number),
        InodeKind::Fifo,
        InodeKind::Socket,
    ];
    kinds.into_iter().find(|kind| kind.file_type().mode_bits() == mode & 0o170_000)
}
