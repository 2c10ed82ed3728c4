//! Contents of a simulated device: a copy in memory, or a file in place.

use crate::spec::DeviceSpec;
use packfs_core::{Error, Result, ResultExt};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;

/// Devices are whole multiples of this, so that every block length fits.
const PAGE: u64 = 4096;
/// `TMPFS_MAGIC` of the kernel's `uapi/linux/magic.h`.
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// Contents of a simulated device.
#[derive(Clone, Copy, Debug)]
pub enum Backing<'a> {
    /// An image, to be read only. It is copied into memory if there is room for it twice, so that
    /// neither the machine's own disk nor drops of the page cache influence the measurement.
    Image(&'a Path),
    /// A file that is written in place. It should lie in memory (tmpfs) or on a disk much faster
    /// than the device.
    File(&'a Path),
    /// So many zeros, in memory as far as they are written; writable if the device is.
    Blank(u64),
}

pub(crate) struct Store {
    file: File,
    len: u64,
    is_in_memory: bool,
    is_writable: bool,
}

impl Store {
    /// Opens it.
    ///
    /// Errors: `Io` if a file cannot be opened or there is no memory, `Failed` if it does not fit
    /// onto the device or that cannot be written.
    pub(crate) fn open(backing: Backing<'_>, spec: &DeviceSpec) -> Result<Store> {
        let capacity = spec.medium.capacity;
        let fits = |len: u64, what: String| {
            if len <= capacity {
                return Ok(());
            }
            let error = format!("{what} is {len} bytes long, and a device {:?} holds {capacity}", spec.name);
            Err(Error::failed(error))
        };
        match backing {
            Backing::Blank(len) => {
                fits(len, "what is asked for".into())?;
                let len = len.div_ceil(PAGE) * PAGE;
                let file = memory(len)?;
                Ok(Store { file, len, is_in_memory: true, is_writable: spec.is_writable() })
            }
            Backing::Image(path) => {
                let mut image = File::open(path).or_io(|| format!("cannot open {path:?}"))?;
                let len = length(&mut image, path)?;
                fits(len, format!("{path:?}"))?;
                if len > available_memory() / 2 {
                    return Ok(Store { file: image, len, is_in_memory: false, is_writable: false });
                }
                let mut file = memory(len.div_ceil(PAGE) * PAGE)?;
                io::copy(&mut image, &mut file).or_io(|| format!("cannot copy {path:?} into memory"))?;
                Ok(Store { file, len: len.div_ceil(PAGE) * PAGE, is_in_memory: true, is_writable: false })
            }
            Backing::File(path) => {
                if !spec.is_writable() {
                    return Err(Error::failed(format!("a device {:?} cannot be written", spec.name)));
                }
                let file = OpenOptions::new().read(true).write(true).open(path);
                let mut file = file.or_io(|| format!("cannot open {path:?} for writing"))?;
                let len = length(&mut file, path)?;
                fits(len, format!("{path:?}"))?;
                let is_in_memory = is_on_tmpfs(&file);
                Ok(Store { file, len, is_in_memory, is_writable: true })
            }
        }
    }

    /// In bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        self.is_in_memory
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.is_writable
    }

    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }

    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    pub(crate) fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(fallocate(&self.file, flags, offset, len)?)
    }
}

fn length(file: &mut File, path: &Path) -> Result<u64> {
    let kind = file.metadata().or_io(|| format!("cannot look at {path:?}"))?.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        return Err(Error::failed(format!("{path:?} is neither a file nor a block device")));
    }
    let cannot = || format!("cannot tell how long {path:?} is");
    let len = file.seek(SeekFrom::End(0)).or_io(cannot)?;
    file.rewind().or_io(cannot)?;
    if len == 0 {
        return Err(Error::failed(format!("{path:?} is empty")));
    }
    Ok(len)
}

/// True if a file lies in memory already. What is swapped out is not asked for.
fn is_on_tmpfs(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|found| found.f_type == TMPFS_MAGIC as rustix::fs::FsWord)
}

fn memory(len: u64) -> Result<File> {
    let cannot = || format!("cannot get {len} bytes of memory");
    let file = File::from(memfd_create("packfs-device", MemfdFlags::CLOEXEC).or_io(cannot)?);
    file.set_len(len).or_io(cannot)?;
    Ok(file)
}

/// Returns the bytes that programs may still have; 0 where the kernel does not tell.
pub fn available_memory() -> u64 {
    let told = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kibibytes =
        told.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB"));
    kibibytes.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0).saturating_mul(1024)
}
