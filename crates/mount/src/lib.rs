//! Mounts of images, by the kernel's driver or served through FUSE.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! Contains all operations on the operating system for it: [`kernel`] mounts and loop devices, the
//! FUSE protocol ([`FuseMount`]), unmounting ([`Unmounter`], [`unmount()`]), the mount table, and
//! the records of packfs's mounts ([`record`]). Contents come from a [`packfs_read::ReadEngine`],
//! so no format is known here. Single files with generated contents ([`SingleFile`]: simulated
//! devices) are served for use behind [`loop_device`]s. Invariants: mounted images are never
//! writable; no request and no image ends a mount; a server lives exactly as long as its mount.
//! Daemons and signals are left to the program.

mod channel;
mod fuse;
pub mod kernel;
pub mod loop_device;
mod options;
mod process;
pub mod record;
mod sys;
pub mod table;
mod unmount;

pub use channel::Channel;
pub use fuse::{
    DryRun, FileContents, FuseCounters, FuseMount, FuseOptions, OwnerMap, SingleFile, TraceFile, find_subdir,
    is_stale, try_uring,
};
pub use loop_device::{LoopDevice, LoopOptions};
pub use options::MountFlags;
use sys::HeapSetting;
pub use sys::ReportingAllocator;
pub use unmount::{Unmounter, unmount};

/// Returns true if this process may mount by system calls.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Reduces the memory of a serving process by a single heap for all threads. By default, each
/// thread has one in glibc, and blocks that one thread decodes and another drops fragment all of
/// them. For programs that mainly serve a mount, before they start threads.
pub fn share_heap() {
    sys::set_heap(HeapSetting::Heaps, 1);
}

/// Returns blocks of memory of 4 MiB and more to the system once they are freed, and lets them grow
/// without being copied. By default, glibc raises that length to 32 MiB as such blocks are freed,
/// and keeps memory between other blocks: tables of a million files then take 10 to 15 % more.
pub fn return_long_blocks() {
    const LEN: i32 = 4 << 20;
    sys::set_heap(HeapSetting::Map, LEN);
    sys::set_heap(HeapSetting::Trim, 2 * LEN);
}
