//! Five `ioctl`s, a setting of the C library without a safe wrapper, and an allocator that reports
//! failure. The only unsafe code of this crate.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::io;
use rustix::ioctl::{self, IntegerSetter, Ioctl, IoctlOutput, NoArg, Opcode, Setter, opcode};
use rustix::process::{Resource, getrlimit};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{c_int, c_void};
use std::io::{Cursor, Write};

/// `FUSE_DEV_IOC_CLONE` of the kernel's `uapi/linux/fuse.h`.
const CLONE: Opcode = opcode::read::<u32>(229, 0);
/// `LOOP_CTL_GET_FREE` of `uapi/linux/loop.h`.
const GET_FREE: Opcode = 0x4c82;
/// `LOOP_CTL_ADD` and `LOOP_CTL_REMOVE`.
const ADD: Opcode = 0x4c80;
const REMOVE: Opcode = 0x4c81;
/// `LOOP_CONFIGURE`, since Linux 5.8.
const CONFIGURE: Opcode = 0x4c0a;
/// `LOOP_SET_FD` and `LOOP_CLR_FD` are not needed: an autoclear device ends with its last user.
const _: () = assert!(size_of::<LoopConfig>() == 304);

pub(crate) fn clone_fuse_device(fresh: impl AsFd, session: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the call reads one `u32`, a descriptor that is open for as long as `session` is
    // borrowed.
    unsafe { ioctl::ioctl(fresh, Setter::<CLONE, u32>::new(session.as_raw_fd() as u32)) }
}

/// Queries `/dev/loop-control`.
pub(crate) fn free_loop_number(control: impl AsFd) -> io::Result<u32> {
    // SAFETY: the call takes no argument.
    unsafe { ioctl::ioctl(control, FreeLoop(NoArg::new())) }
}

/// Requires `/dev/loop-control`.
pub(crate) fn make_loop_number(control: impl AsFd, number: u32, make: bool) -> io::Result<()> {
    // SAFETY: both calls take a number, and refuse one that does not suit them.
    unsafe {
        if make {
            ioctl::ioctl(control, IntegerSetter::<ADD>::new_usize(number as usize))
        } else {
            ioctl::ioctl(control, IntegerSetter::<REMOVE>::new_usize(number as usize))
        }
    }
}

pub(crate) fn configure_loop(device: impl AsFd, config: &LoopConfig) -> io::Result<()> {
    // SAFETY: the call reads a `struct loop_config`, which has the length asserted above.
    unsafe { ioctl::ioctl(device, Setter::<CONFIGURE, LoopConfig>::new(*config)) }
}

struct FreeLoop(NoArg<GET_FREE>);

// SAFETY: no argument is read or written; the answer is what the call returns.
unsafe impl Ioctl for FreeLoop {
    type Output = u32;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        self.0.opcode()
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::null_mut()
    }

    unsafe fn output_from_ptr(out: IoctlOutput, _: *mut c_void) -> io::Result<u32> {
        u32::try_from(out).map_err(|_| io::Errno::INVAL)
    }
}

/// `struct loop_config` with the `struct loop_info64` in it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct LoopConfig {
    pub(crate) fd: u32,
    pub(crate) block_size: u32,
    pub(crate) lo_device: u64,
    pub(crate) lo_inode: u64,
    pub(crate) lo_rdevice: u64,
    pub(crate) lo_offset: u64,
    pub(crate) lo_sizelimit: u64,
    pub(crate) lo_number: u32,
    pub(crate) lo_encrypt_type: u32,
    pub(crate) lo_encrypt_key_size: u32,
    pub(crate) lo_flags: u32,
    pub(crate) lo_file_name: [u8; 64],
    pub(crate) lo_crypt_name: [u8; 64],
    pub(crate) lo_encrypt_key: [u8; 32],
    pub(crate) lo_init: [u64; 2],
    pub(crate) reserved: [u64; 8],
}

#[derive(Clone, Copy)]
pub(crate) enum HeapSetting {
    /// `M_TRIM_THRESHOLD`: bytes that the heap may keep free at its end.
    Trim = -1,
    /// `M_MMAP_THRESHOLD`: length in bytes from which a block has a separate mapping.
    Map = -3,
    /// `M_ARENA_MAX`: number of heaps.
    Heaps = -8,
}

#[cfg(target_env = "gnu")]
pub(crate) fn set_heap(setting: HeapSetting, value: c_int) {
    unsafe extern "C" {
        fn mallopt(param: c_int, value: c_int) -> c_int;
    }
    // SAFETY: the function takes two numbers and may be called at any time, from any thread.
    unsafe {
        mallopt(setting as c_int, value);
    }
}

/// Other C libraries have one heap, and separate mappings for long blocks.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn set_heap(_: HeapSetting, _: c_int) {}

/// The system's allocator for a program: when memory is exhausted, the program ends with an error
/// message and exit code 1, instead of aborting.
#[derive(Debug)]
pub struct ReportingAllocator;

// SAFETY: all memory is the system allocator's, under the same layouts; a null pointer is never
// returned.
unsafe impl GlobalAlloc for ReportingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller's.
        or_end(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller's.
        or_end(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, new_len: usize) -> *mut u8 {
        // SAFETY: as the caller's.
        or_end(unsafe { System.realloc(old, layout, new_len) }, new_len)
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: as the caller's.
        unsafe { System.dealloc(old, layout) }
    }
}

fn or_end(memory: *mut u8, len: usize) -> *mut u8 {
    if memory.is_null() {
        end_without_memory(len);
    }
    memory
}

/// Reports the failure without allocating, and ends the program without running destructors, which
/// may need memory.
#[cold]
fn end_without_memory(len: usize) -> ! {
    unsafe extern "C" {
        fn _exit(code: c_int) -> !;
    }
    let mut text = [0; 320];
    let mut message = Cursor::new(&mut text[..]);
    let _ = writeln!(message, "error: cannot allocate {len} bytes: out of memory");
    if let Some(limit) = getrlimit(Resource::As).current {
        let _ = writeln!(message, "hint: the limit of address space (ulimit -v) is {} MiB", limit >> 20);
    }
    let _ = writeln!(
        message,
        "hint: less is needed with --jobs 1, a lower --memory, smaller blocks, or lower levels of the codec"
    );
    let len = message.position() as usize;
    let _ = io::write(std::io::stderr(), &text[..len]);
    // SAFETY: the call takes a number, and may be made at any time.
    unsafe { _exit(1) }
}
