//! Loop devices: a range of a file as a block device, read-only, gone with its last user.

use crate::sys::{self, LoopConfig};
use packfs_core::{Error, Result, ResultExt};
use rustix::fd::AsRawFd;
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// `LO_FLAGS_READ_ONLY` and `LO_FLAGS_AUTOCLEAR` of the kernel's `uapi/linux/loop.h`.
const FLAGS: u32 = 1 | 4;
/// How often another process may take the free device first.
const ATTEMPTS_MAX: u32 = 64;

/// A loop device that lives until this is dropped and nothing is mounted from it.
pub(crate) struct LoopDevice {
    path: PathBuf,
    _device: File,
}

impl LoopDevice {
    /// Puts `len` bytes (all if `None`) from `offset` of a file behind a loop device.
    ///
    /// Errors: `Io` if the kernel has no loop devices, or has none for us.
    pub(crate) fn new(file: &Path, offset: u64, len: Option<u64>) -> Result<Self> {
        let control =
            File::open("/dev/loop-control").or_io(|| "cannot open \"/dev/loop-control\"".to_owned())?;
        let backing = File::open(file).or_io(|| format!("cannot open {file:?}"))?;
        let config = config(&backing, file, offset, len);
        for _ in 0..ATTEMPTS_MAX {
            let number = sys::free_loop_number(&control).or_io(|| "cannot get a free loop device")?;
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let device = match File::open(&path) {
                Ok(device) => device,
                // Removed again by somebody else.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Error::io(format!("cannot open {path:?}"), error)),
            };
            match sys::configure_loop(&device, &config) {
                Ok(()) => return Ok(LoopDevice { path, _device: device }),
                Err(Errno::BUSY) => {}
                Err(error) => {
                    return Err(Error::io(format!("cannot put {file:?} behind {path:?}"), error.into()));
                }
            }
        }
        Err(Error::failed("other processes take every free loop device first"))
    }

    /// The device.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn config(backing: &File, file: &Path, offset: u64, len: Option<u64>) -> LoopConfig {
    let mut lo_file_name = [0; 64];
    let name = file.as_os_str().as_bytes();
    // The last byte stays zero: this name is for `losetup` to show, nothing else.
    let shown = &name[..name.len().min(63)];
    lo_file_name[..shown.len()].copy_from_slice(shown);
    LoopConfig {
        fd: backing.as_raw_fd() as u32,
        block_size: 0,
        lo_device: 0,
        lo_inode: 0,
        lo_rdevice: 0,
        lo_offset: offset,
        lo_sizelimit: len.unwrap_or(0),
        lo_number: 0,
        lo_encrypt_type: 0,
        lo_encrypt_key_size: 0,
        lo_flags: FLAGS,
        lo_file_name,
        lo_crypt_name: [0; 64],
        lo_encrypt_key: [0; 32],
        lo_init: [0; 2],
        reserved: [0; 8],
    }
}
