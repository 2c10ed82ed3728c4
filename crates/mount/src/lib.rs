//! Mounts: an image as part of the file system, by the kernel's own driver or served through FUSE.
//!
//! Owns everything that is done to the operating system for it: [`kernel`] mounts and loop devices,
//! the FUSE protocol ([`FuseMount`]), unmounting ([`Unmounter`], [`unmount()`]), the table of
//! mounts, and the records that tell which of them are packfs's ([`record`]). What is served comes
//! from a [`packfs_read::ReadEngine`], so no format is known here. Beside images it serves single
//! files that another crate makes up ([`SingleFile`]: simulated devices), to be put behind
//! [`loop_device`]s. Invariants: no image that is mounted can be written; no request, and no image,
//! takes a mount down; whoever serves lives exactly as long as what it serves is mounted. It starts
//! no daemon and handles no signal: that is for the program.

mod fuse;
pub mod kernel;
pub mod loop_device;
mod options;
pub mod record;
mod sys;
pub mod table;
mod unmount;

pub use fuse::{
    FileContents, FuseCounters, FuseMount, FuseOptions, OwnerMap, Rehearsal, SingleFile, TraceFile,
    find_subdir, is_stale,
};
pub use loop_device::{LoopDevice, LoopOptions};
pub use options::MountFlags;
pub use sys::ReportingAllocator;
pub use unmount::{Unmounter, unmount};

/// Whether this process may expect the kernel to mount for it.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Has this process need less memory while it serves: all threads share one heap from now on. glibc
/// gives each thread its own, and blocks that one thread decodes and another drops leave holes in
/// all of them. For programs that do little else than to serve a mount, before they start a thread.
pub fn share_heap() {
    sys::share_heap();
}
