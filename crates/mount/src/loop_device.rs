//! Loop devices: a range of a file as a block device, removed with its last user.

use crate::sys::{self, LoopConfig};
use packfs_core::{Error, Result, ResultExt};
use rustix::fd::AsRawFd;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// `LO_FLAGS_READ_ONLY`, `LO_FLAGS_AUTOCLEAR` and `LO_FLAGS_DIRECT_IO` of the kernel's
/// `uapi/linux/loop.h`.
const READ_ONLY: u32 = 1;
const AUTOCLEAR: u32 = 4;
const DIRECT_IO: u32 = 16;
const CONTROL: &str = "/dev/loop-control";
/// Attempts to get a free device while other processes take it, and most devices of our own.
const ATTEMPTS_MAX: u32 = 64;

/// Loop device that exists until this is dropped and nothing is mounted from it, even if its
/// process ends.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    number: u32,
    device: Option<File>,
    /// The kernel's sequence number of disks when this was attached, because the device number may
    /// be reused at once. `None` before Linux 5.15.
    sequence: Option<String>,
    /// True if the device was created for this, and is removed with it.
    is_own: bool,
}

/// Parameters of a loop device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopOptions {
    /// Start in the file, in bytes.
    pub offset: u64,
    /// Set to make it writable.
    pub is_writable: bool,
    /// Set to bypass the page cache of the file; refused by files that do not support it.
    pub direct_io: bool,
    /// Length of a logical block in bytes; 0 means the kernel's default.
    pub block_len: u32,
    /// Set to create a device with an unused number from here on, and remove it afterwards: for
    /// changing attributes of its queue.
    pub own_from: Option<u32>,
}

impl LoopDevice {
    /// Attaches a file to a loop device. Requires root.
    ///
    /// Errors: `Io` if the kernel has no loop devices, or none is available.
    pub fn new(file: &Path, options: &LoopOptions) -> Result<Self> {
        let backing = OpenOptions::new().read(true).write(options.is_writable).open(file);
        LoopDevice::attach(&backing.or_io(|| format!("cannot open {file:?}"))?, file, options)
    }

    /// Attaches an open file to a loop device; `name` is shown by `losetup`. Requires root.
    ///
    /// Errors: `Io` if the kernel has no loop devices, or none is available.
    pub fn attach(backing: &File, name: &Path, options: &LoopOptions) -> Result<Self> {
        let control = File::open(CONTROL).or_io(|| format!("cannot open {CONTROL:?}"))?;
        let config = config(backing, name, options);
        for attempt in 0..ATTEMPTS_MAX {
            let own = match options.own_from {
                Some(first) => match OwnNumber::make(&control, first + attempt)? {
                    Some(own) => Some(own),
                    None => continue,
                },
                None => None,
            };
            let number = match &own {
                Some(own) => own.number,
                None => sys::free_loop_number(&control).or_io(|| "cannot get a free loop device")?,
            };
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let device = match OpenOptions::new().read(true).write(options.is_writable).open(&path) {
                Ok(device) => device,
                Err(error) if own.is_some() && is_without_node(&error, number) => return Err(no_node(&path)),
                // Removed by another process.
                Err(error) if is_gone(&error) => continue,
                Err(error) => return Err(Error::io(format!("cannot open {path:?}"), error)),
            };
            match sys::configure_loop(&device, &config) {
                Ok(()) => {
                    // A process holding the device open for writing can block mounts.
                    let device = File::open(&path).or_io(|| format!("cannot open {path:?}"))?;
                    let (sequence, is_own) = (sequence(number), own.is_some());
                    if let Some(own) = own {
                        own.keep();
                    }
                    return Ok(LoopDevice { path, number, device: Some(device), sequence, is_own });
                }
                Err(Errno::BUSY) => {}
                Err(error) => {
                    return Err(Error::io(format!("cannot attach {name:?} to {path:?}"), error.into()));
                }
            }
        }
        Err(Error::failed("cannot get a free loop device: other processes take them first"))
    }

    /// Returns the path of the device.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of the device: that of `/dev/loopN`.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns true if it bypasses the page cache of its file.
    pub fn is_direct(&self) -> bool {
        let told = std::fs::read_to_string(self.attribute("dio"));
        told.is_ok_and(|told| told.trim() == "1")
    }

    /// Releases the device and waits until others have; returns true if they did within `patience`.
    /// Their data in the page cache is written. Otherwise the device exists as long as others use
    /// it.
    pub fn release(&mut self, patience: Duration) -> bool {
        self.device = None;
        let end = Instant::now() + patience;
        let mut pause = Duration::from_micros(100);
        loop {
            if self.is_gone() {
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    /// Removes the device first if it was created for this.
    fn is_gone(&self) -> bool {
        // Read first: it changes once the device is detached, and a later user has another number.
        let is_ours = sequence(self.number) == self.sequence;
        if self.attribute("backing_file").exists() { !is_ours } else { !self.is_own || self.remove() }
    }

    /// Returns true if the device is gone.
    fn remove(&self) -> bool {
        let outcome = File::open(CONTROL).map(|control| sys::make_loop_number(control, self.number, false));
        // Another process may have removed it.
        matches!(outcome, Ok(Ok(()) | Err(Errno::NODEV)))
    }

    fn attribute(&self, name: &str) -> PathBuf {
        format!("/sys/block/loop{}/loop/{name}", self.number).into()
    }
}

/// Removes unused loop devices from this number on that were created for [`LoopOptions::own_from`]
/// and left behind by killed processes. The kernel refuses to remove devices in use.
pub fn remove_unused(from: u32) {
    let Ok(control) = File::open(CONTROL) else { return };
    for number in from..from + ATTEMPTS_MAX {
        if Path::new(&format!("/sys/block/loop{number}")).exists() {
            let _ = sys::make_loop_number(&control, number, false);
        }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if self.device.is_some() {
            self.release(Duration::ZERO);
        }
    }
}

/// Either the node or the driver of the device is missing.
fn is_gone(error: &std::io::Error) -> bool {
    let gone = [Errno::NOENT, Errno::NXIO, Errno::NODEV].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|error| gone.contains(&error))
}

fn is_without_node(error: &std::io::Error, number: u32) -> bool {
    let is_known = || Path::new(&format!("/sys/block/loop{number}")).exists();
    error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) && is_known()
}

fn no_node(path: &Path) -> Error {
    let message = format!("the kernel has created a loop device, but {path:?} does not appear");
    Error::failed(message).hint(
        "/dev shows no new devices here, as in many containers: mount devtmpfs on it, or give the container the host's /dev",
    )
}

fn sequence(number: u32) -> Option<String> {
    std::fs::read_to_string(format!("/sys/block/loop{number}/diskseq")).ok()
}

/// Removed again unless kept.
struct OwnNumber<'a> {
    control: &'a File,
    number: u32,
    is_kept: bool,
}

impl<'a> OwnNumber<'a> {
    /// `None` if the number is taken.
    fn make(control: &'a File, number: u32) -> Result<Option<Self>> {
        match sys::make_loop_number(control, number, true) {
            Ok(()) => Ok(Some(OwnNumber { control, number, is_kept: false })),
            Err(Errno::EXIST) => Ok(None),
            Err(error) => Err(Error::io(format!("cannot create loop device {number}"), error.into())),
        }
    }

    fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for OwnNumber<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            // Refused if another process uses it already.
            let _ = sys::make_loop_number(self.control, self.number, false);
        }
    }
}

fn config(backing: &File, name: &Path, options: &LoopOptions) -> LoopConfig {
    let mut lo_file_name = [0; 64];
    let name = name.as_os_str().as_bytes();
    // The last byte stays zero; the name is only for `losetup`.
    let shown = &name[..name.len().min(63)];
    lo_file_name[..shown.len()].copy_from_slice(shown);
    let read_only = if options.is_writable { 0 } else { READ_ONLY };
    LoopConfig {
        fd: backing.as_raw_fd() as u32,
        block_size: options.block_len,
        lo_device: 0,
        lo_inode: 0,
        lo_rdevice: 0,
        lo_offset: options.offset,
        // Up to the end of the file.
        lo_sizelimit: 0,
        lo_number: 0,
        lo_encrypt_type: 0,
        lo_encrypt_key_size: 0,
        lo_flags: AUTOCLEAR | read_only | if options.direct_io { DIRECT_IO } else { 0 },
        lo_file_name,
        lo_crypt_name: [0; 64],
        lo_encrypt_key: [0; 32],
        lo_init: [0; 2],
        reserved: [0; 8],
    }
}
