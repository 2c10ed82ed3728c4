//! A ring of io_uring with entries of a FUSE mount: memory that the kernel writes requests into and
//! reads answers from. The only unsafe code of the FUSE server.
//!
//! An entry belongs to the kernel from the moment that a command with it is queued until that
//! command completes. Its memory is accessed only while it belongs to this process.

use super::abi::{InHeader, OutHeader, RingCommand, RingEntryInOut, uring};
use io_uring::opcode::UringCmd80;
use io_uring::squeue::Entry128;
use io_uring::types::Fd;
use io_uring::{IoUring, cqueue};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::io;
use std::ptr::NonNull;
use zerocopy::{FromBytes, IntoBytes};

/// Length of the headers of an entry. Contents follow, and are copied page by page.
const HEADERS_LEN: usize = 4096;
/// Offset of `len` in `struct io_uring_sqe`.
const SQE_LEN_AT: usize = 24;
/// Number of `struct iovec` that a registration refers to.
const PARTS: u32 = 2;

/// Must be used only by the thread that starts it.
pub(crate) struct Ring {
    ring: IoUring<Entry128>,
    device: OwnedFd,
    entries: Vec<Entry>,
    asked: Vec<u8>,
}

/// Slot for one request at a time, in the queue of one processor.
struct Entry {
    queue: u16,
    owner: Owner,
    commit_id: u64,
    memory: Memory,
    /// Two `struct iovec`: the headers and the payload.
    parts: Box<[usize; 4]>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Us,
    Kernel,
}

pub(crate) struct RingRequest<'a> {
    pub(crate) header: InHeader,
    pub(crate) asked: &'a [u8],
    pub(crate) payload: &'a mut [u8],
}

pub(crate) enum Event {
    Request(usize),
    /// The kernel has returned all entries: the mount is gone.
    Over,
}

impl Ring {
    /// One entry for each of `queues`, with answers of up to `payload_len` bytes.
    ///
    /// Errors: those of `io_uring_setup(2)`, such as `PERM` where io_uring is disabled and `INVAL`
    /// before Linux 6.1, and lack of memory.
    pub(crate) fn new(device: OwnedFd, queues: &[u16], payload_len: usize) -> io::Result<Self> {
        let count = u32::try_from(queues.len().max(1)).map_err(|_| Errno::INVAL)?;
        let mut builder = IoUring::<Entry128, cqueue::Entry>::builder();
        // The kernel writes requests only during calls of this thread, without interrupting it.
        builder.setup_single_issuer().setup_defer_taskrun().setup_r_disabled().setup_submit_all();
        let ring = builder.build(count)?;
        let entries = queues.iter().map(|&queue| Entry::new(queue, payload_len));
        let entries = entries.collect::<io::Result<Vec<_>>>()?;
        Ok(Ring { ring, device, entries, asked: Vec::new() })
    }

    /// Binds the ring to this thread and gives its entries to the kernel.
    ///
    /// Errors: those of the kernel, such as `OPNOTSUPP` if it does not offer FUSE over io_uring.
    pub(crate) fn start(&mut self) -> io::Result<()> {
        self.ring.submitter().register_enable_rings()?;
        for index in 0..self.entries.len() {
            self.queue_command(index, uring::REGISTER)?;
        }
        self.submit()?;
        // A registration fails at once. Requests arrive only when this thread waits for them.
        match self.ring.completion().find(|completion| completion.result() < 0) {
            Some(refused) => Err(io::Error::from_raw_os_error(-refused.result())),
            None => Ok(()),
        }
    }

    /// Sends pending answers first.
    pub(crate) fn next(&mut self) -> io::Result<Event> {
        loop {
            if let Some(completion) = self.ring.completion().next() {
                let index = usize::try_from(completion.user_data()).unwrap_or(usize::MAX);
                let is_request = completion.result() == 0;
                match self.entries.get_mut(index) {
                    Some(entry) if is_request => {
                        entry.owner = Owner::Us;
                        return Ok(Event::Request(index));
                    }
                    // Returned for good, because the mount is gone.
                    Some(entry) => entry.owner = Owner::Us,
                    None => {}
                }
            } else if self.entries.iter().all(|entry| entry.owner == Owner::Us) {
                return Ok(Event::Over);
            } else {
                match self.ring.submit_and_wait(1) {
                    Err(error) if !is_passing(&error) => return Err(error),
                    _ => {}
                }
            }
        }
    }

    /// Errors: `PROTO` without a request, or if its lengths are inconsistent.
    pub(crate) fn request(&mut self, index: usize) -> Result<RingRequest<'_>, Errno> {
        let entry = self.entries.get_mut(index).filter(|entry| entry.owner == Owner::Us);
        let entry = entry.ok_or(Errno::PROTO)?;
        let (headers, payload) =
            entry.memory.bytes().split_at_mut_checked(HEADERS_LEN).ok_or(Errno::PROTO)?;
        let part = |range| headers.get(range).ok_or(Errno::PROTO);
        let (header, _) = InHeader::read_from_prefix(part(uring::IN_OUT)?).map_err(|_| Errno::PROTO)?;
        let (told, _) = RingEntryInOut::read_from_prefix(part(uring::ENTRY)?).map_err(|_| Errno::PROTO)?;
        entry.commit_id = told.commit_id;
        let payload_len = told.payload_len as usize;
        let constant_len = (header.len as usize).checked_sub(size_of::<InHeader>() + payload_len);
        let constant = constant_len.and_then(|len| part(uring::OP_IN).ok()?.get(..len));
        self.asked.clear();
        self.asked.extend_from_slice(constant.ok_or(Errno::PROTO)?);
        self.asked.extend_from_slice(payload.get(..payload_len).ok_or(Errno::PROTO)?);
        Ok(RingRequest { header, asked: &self.asked, payload })
    }

    /// The answer is the beginning of the payload, or an error. [`Self::submit`] or [`Self::next`]
    /// sends it.
    pub(crate) fn answer(
        &mut self,
        index: usize,
        unique: u64,
        answer: Result<usize, Errno>,
    ) -> io::Result<()> {
        let entry = self.entries.get_mut(index).filter(|entry| entry.owner == Owner::Us);
        let entry = entry.ok_or(Errno::INVAL)?;
        let len = answer.unwrap_or(0) as u32;
        let error = answer.err().map_or(0, |error| -error.raw_os_error());
        let header = OutHeader { len: size_of::<OutHeader>() as u32 + len, error, unique };
        let told =
            RingEntryInOut { commit_id: entry.commit_id, payload_len: len, ..RingEntryInOut::default() };
        let memory = entry.memory.bytes();
        memory[uring::IN_OUT][..size_of::<OutHeader>()].copy_from_slice(header.as_bytes());
        memory[uring::ENTRY].copy_from_slice(told.as_bytes());
        self.queue_command(index, uring::COMMIT_AND_FETCH)
    }

    pub(crate) fn submit(&mut self) -> io::Result<()> {
        loop {
            match self.ring.submit() {
                Err(error) if is_passing(&error) => {}
                outcome => return outcome.map(drop),
            }
        }
    }

    /// The entry belongs to the kernel from now on.
    fn queue_command(&mut self, index: usize, command: u32) -> io::Result<()> {
        let entry = self.entries.get_mut(index).ok_or(Errno::INVAL)?;
        let request =
            RingCommand { commit_id: entry.commit_id, queue: entry.queue, ..RingCommand::default() };
        let mut bytes = [0; 80];
        bytes[..size_of::<RingCommand>()].copy_from_slice(request.as_bytes());
        let parts = entry.parts.as_ptr() as u64;
        let command = UringCmd80::new(Fd(self.device.as_raw_fd()), command).cmd(bytes).addr(Some(parts));
        let mut command = command.build().user_data(index as u64);
        const { assert!(size_of::<Entry128>() == 128) };
        // SAFETY: the entry is a `struct io_uring_sqe` of 128 bytes, whose field `len`, a `u32`,
        // has this offset; the crate has no setter for it.
        unsafe { (&raw mut command).cast::<u8>().add(SQE_LEN_AT).cast::<u32>().write_unaligned(PARTS) };
        // Also if it cannot be queued: then the entry is no longer used.
        entry.owner = Owner::Kernel;
        // SAFETY: the parts and the memory that the command refers to live as long as the entry,
        // whose memory is kept for good if the kernel has not returned it (see `drop`). Until then,
        // it is not accessed, as the owner tells.
        unsafe { self.ring.submission().push(&command) }.map_err(|_| Errno::BUSY.into())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if self.owner == Owner::Us {
            self.memory.unmap();
        }
    }
}

impl Entry {
    fn new(queue: u16, payload_len: usize) -> io::Result<Self> {
        let memory = Memory::new(HEADERS_LEN + payload_len)?;
        let start = memory.start.as_ptr() as usize;
        let parts = Box::new([start, uring::ENTRY.end, start + HEADERS_LEN, payload_len]);
        Ok(Entry { queue, owner: Owner::Us, commit_id: 0, memory, parts })
    }
}

/// Zeroed pages, which take no memory until they are written.
struct Memory {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the pages belong to this value alone.
unsafe impl Send for Memory {}

impl Memory {
    fn new(len: usize) -> io::Result<Self> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), len, protection, flags) }?;
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        Ok(Memory { start, len })
    }

    /// Must not be called while the entry belongs to the kernel.
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the pages are mapped, readable, writable, and initialized, and belong to this
        // value; the kernel does not write to them while the entry is not its own.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    fn unmap(&mut self) {
        // SAFETY: called when the value is dropped, with what `new` has mapped.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

fn is_passing(error: &io::Error) -> bool {
    let passing = [Errno::INTR, Errno::AGAIN, Errno::BUSY].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| passing.contains(&code))
}
