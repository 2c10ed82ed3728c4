//! The `ioctl` that enables fs-verity. The only unsafe code of this crate.

use rustix::fd::AsFd;
use rustix::io;
use rustix::ioctl::{self, Opcode, Setter, opcode};

/// `FS_IOC_ENABLE_VERITY` of `uapi/linux/fsverity.h`.
const ENABLE: Opcode = opcode::write::<EnableArg>(b'f', 133);

#[derive(Clone, Copy, Default)]
#[repr(C)]
struct EnableArg {
    version: u32,
    hash_algorithm: u32,
    block_size: u32,
    salt_size: u32,
    salt_ptr: u64,
    sig_size: u32,
    reserved1: u32,
    sig_ptr: u64,
    reserved2: [u64; 11],
}

const _: () = assert!(size_of::<EnableArg>() == 128);

/// Uses SHA-256 and blocks of 4,096 bytes; no descriptor may have the file open for writing.
pub(crate) fn enable_fs_verity(file: impl AsFd) -> io::Result<()> {
    let arg = EnableArg { version: 1, hash_algorithm: 1, block_size: 4096, ..EnableArg::default() };
    // SAFETY: the call reads a `struct fsverity_enable_arg`, which has the length asserted above.
    // Its pointers are not followed, because their lengths are 0.
    unsafe { ioctl::ioctl(file, Setter::<ENABLE, EnableArg>::new(arg)) }
}
