//! One entry of an image, with the names that `os.stat_result` and `os.DirEntry` have.

use packfs::{FileType, Inode, InodeId, InodeKind};
use pyo3::prelude::*;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Entry of an image: path and metadata. Attributes as of os.stat_result, methods as of
/// os.DirEntry.
#[pyclass(frozen, module = "packfs")]
pub struct Entry {
    path: Vec<u8>,
    pub(crate) id: InodeId,
    inode: Inode,
}

impl Entry {
    pub(crate) fn new(path: Vec<u8>, id: InodeId, inode: Inode) -> Self {
        Entry { path, id, inode }
    }

    /// Returns the inode and the kind of what is there.
    pub(crate) fn kind(&self) -> (InodeId, InodeKind) {
        (self.id, self.inode.kind)
    }

    pub(crate) fn path(&self) -> &OsStr {
        OsStr::from_bytes(&self.path)
    }

    /// Returns the length of a regular file; none for anything else.
    pub(crate) fn file_len(&self) -> Option<u64> {
        match self.inode.kind {
            InodeKind::File { len } => Some(len),
            _ => None,
        }
    }

    fn is(&self, file_type: FileType) -> bool {
        self.inode.kind.file_type() == file_type
    }
}

#[pymethods]
impl Entry {
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
        self.inode.kind.file_type().word()
    }

    /// Permissions and type bits.
    #[getter]
    fn st_mode(&self) -> u32 {
        self.inode.kind.file_type().mode_bits() | u32::from(self.inode.meta.mode)
    }

    /// Length of a file in bytes; 0 for anything else.
    #[getter]
    fn st_size(&self) -> u64 {
        self.file_len().unwrap_or_default()
    }

    /// User id.
    #[getter]
    fn st_uid(&self) -> u32 {
        self.inode.meta.owner.uid
    }

    /// Group id.
    #[getter]
    fn st_gid(&self) -> u32 {
        self.inode.meta.owner.gid
    }

    /// Link count as stored.
    #[getter]
    fn st_nlink(&self) -> u32 {
        self.inode.links
    }

    /// Number that entries of one inode share, within this image.
    #[getter]
    fn st_ino(&self) -> u64 {
        self.id.0
    }

    /// Modification time in seconds since 1970.
    #[getter]
    fn st_mtime(&self) -> f64 {
        let time = self.inode.meta.mtime;
        time.seconds as f64 + f64::from(time.nanos) / 1e9
    }

    /// Modification time in nanoseconds since 1970.
    #[getter]
    fn st_mtime_ns(&self) -> i128 {
        let time = self.inode.meta.mtime;
        i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos)
    }

    /// Major and minor number of a device; None for anything else.
    #[getter]
    fn device(&self) -> Option<(u32, u32)> {
        match self.inode.kind {
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
