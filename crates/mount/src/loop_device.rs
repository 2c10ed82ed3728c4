//! Loop devices: a range of a file as a block device, gone with its last user.

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
/// How often another process may take the free device first, and how many devices of our own there
/// may be.
const ATTEMPTS_MAX: u32 = 64;

/// A loop device that lives until this is dropped and nothing is mounted from it, whatever becomes
/// of its process.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    number: u32,
    device: Option<File>,
    /// The kernel's count of what has been behind block devices, as it was when this was attached:
    /// others may get our number as soon as we let go of it. `None` before Linux 5.15.
    sequence: Option<String>,
    /// Whether it was made for this, and goes with it.
    is_own: bool,
}

/// What a loop device shows, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopOptions {
    /// Where it begins in the file, in bytes.
    pub offset: u64,
    /// It can be written.
    pub is_writable: bool,
    /// Reads and writes go past the page cache of the file; refused by files that have no such way.
    pub direct_io: bool,
    /// Length of a logical block in bytes; 0: the kernel's choice.
    pub block_len: u32,
    /// It gets a number from here on that nobody else uses, and is removed again: for those who
    /// change its queue's attributes.
    pub own_from: Option<u32>,
}

impl LoopDevice {
    /// Puts a file behind a loop device. Needs root.
    ///
    /// Errors: `Io` if the kernel has no loop devices, or has none for us.
    pub fn new(file: &Path, options: &LoopOptions) -> Result<Self> {
        let backing = OpenOptions::new().read(true).write(options.is_writable).open(file);
        LoopDevice::attach(&backing.or_io(|| format!("cannot open {file:?}"))?, file, options)
    }

    /// Puts an open file behind a loop device; `name` is what `losetup` shows. Needs root.
    ///
    /// Errors: `Io` if the kernel has no loop devices, or has none for us.
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
                // Removed again by somebody else.
                Err(error) if is_gone(&error) => continue,
                Err(error) => return Err(Error::io(format!("cannot open {path:?}"), error)),
            };
            match sys::configure_loop(&device, &config) {
                Ok(()) => {
                    // Who has it open for writing may keep others from mounting it.
                    let device = File::open(&path).or_io(|| format!("cannot open {path:?}"))?;
                    let (sequence, is_own) = (sequence(number), own.is_some());
                    if let Some(own) = own {
                        own.keep();
                    }
                    return Ok(LoopDevice { path, number, device: Some(device), sequence, is_own });
                }
                Err(Errno::BUSY) => {}
                Err(error) => {
                    return Err(Error::io(format!("cannot put {name:?} behind {path:?}"), error.into()));
                }
            }
        }
        Err(Error::failed("other processes take every free loop device first"))
    }

    /// The device.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of the device: that of `/dev/loopN`.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Whether it reads and writes its file directly.
    pub fn is_direct(&self) -> bool {
        let told = std::fs::read_to_string(self.attribute("dio"));
        told.is_ok_and(|told| told.trim() == "1")
    }

    /// Lets go of it, and waits until others have; whether they did within `patience`. What they
    /// left in the page cache is written. It lives on as long as others use it.
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

    /// Whether nothing of it is left; what was made for it is removed first.
    fn is_gone(&self) -> bool {
        // Read first: it changes once nothing of ours is behind the device, and whatever is there
        // by then is somebody else's.
        let is_ours = sequence(self.number) == self.sequence;
        match self.attribute("backing_file").exists() {
            true => !is_ours,
            false => !self.is_own || self.remove(),
        }
    }

    /// Removes the device that was made for this; whether it is gone.
    fn remove(&self) -> bool {
        let outcome = File::open(CONTROL).map(|control| sys::make_loop_number(control, self.number, false));
        // Somebody else may have removed it.
        matches!(outcome, Ok(Ok(()) | Err(Errno::NODEV)))
    }

    fn attribute(&self, name: &str) -> PathBuf {
        format!("/sys/block/loop{}/loop/{name}", self.number).into()
    }
}

/// Removes loop devices numbered from here that were made for [`LoopOptions::own_from`] and that
/// nobody uses any more: what is left of processes that were killed. Refused by the kernel for
/// those that are in use.
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

/// Whether a device is not there: its node, or what is behind that.
fn is_gone(error: &std::io::Error) -> bool {
    let gone = [Errno::NOENT, Errno::NXIO, Errno::NODEV].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|error| gone.contains(&error))
}

/// Whether a device is there, and no node of it where nodes are.
fn is_without_node(error: &std::io::Error, number: u32) -> bool {
    let is_known = || Path::new(&format!("/sys/block/loop{number}")).exists();
    error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) && is_known()
}

fn no_node(path: &Path) -> Error {
    let what = format!("the kernel has made a loop device, and {path:?} does not appear");
    Error::failed(what).hint(
        "/dev shows no new devices here, as in many containers: mount devtmpfs on it, or give the container the host's /dev",
    )
}

/// See [`LoopDevice::sequence`].
fn sequence(number: u32) -> Option<String> {
    std::fs::read_to_string(format!("/sys/block/loop{number}/diskseq")).ok()
}

/// A loop device that was made by us; removed again unless it is kept.
struct OwnNumber<'a> {
    control: &'a File,
    number: u32,
    is_kept: bool,
}

impl<'a> OwnNumber<'a> {
    /// Makes it; `None` if somebody else has one of this number.
    fn make(control: &'a File, number: u32) -> Result<Option<Self>> {
        match sys::make_loop_number(control, number, true) {
            Ok(()) => Ok(Some(OwnNumber { control, number, is_kept: false })),
            Err(Errno::EXIST) => Ok(None),
            Err(error) => Err(Error::io(format!("cannot make the loop device {number}"), error.into())),
        }
    }

    fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for OwnNumber<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            // Refused if somebody else was quicker and uses it: then it is theirs.
            let _ = sys::make_loop_number(self.control, self.number, false);
        }
    }
}

fn config(backing: &File, name: &Path, options: &LoopOptions) -> LoopConfig {
    let mut lo_file_name = [0; 64];
    let name = name.as_os_str().as_bytes();
    // The last byte stays zero: this name is for `losetup` to show, nothing else.
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
        // All that is left of the file.
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
