//! One file whose bytes a program of ours makes up, to be put behind a loop device.
//!
//! Neither the kernel nor anybody else keeps any of it: each read and write of it is a request. The
//! mount it lies in is nowhere ([`super::detached`]), so nothing of it can be left behind.

use super::abi::{
    Attr, AttrOut, EntryOut, FOPEN_DIRECT_IO, FOPEN_PARALLEL_DIRECT_WRITES, FallocateIn, InHeader, OpenOut,
    ROOT_ID, ReadIn, StatfsOut, WriteIn, WriteOut, falloc, opcode,
};
use super::detached::mount_detached;
use super::device::{self, Device};
use super::handshake::{Wishes, shake_hands};
use super::served::name;
use packfs_core::{Result, ResultExt};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use zerocopy::{FromBytes, IntoBytes};

/// The file's name, which nobody but us ever sees.
const NAME: &str = "disk";
const NODE: u64 = 2;
/// Longest read or write: what the kernel makes of one request, unless root allows it more.
const LEN_MAX: u32 = 1 << 20;
/// In front of the bytes of a write.
const HEADERS_LEN: usize = 4096;
/// Descriptors of the server get numbers from here. Of a process that is killed, the kernel ends
/// the highest first (closing is put off to a list that is worked from its end), and the last user
/// of a loop device has it write what is in the page cache: that must not wait for a server that is
/// no more, so the server's descriptors lie above any loop device's.
const FD_MIN: i32 = 256;
/// How long the threads get to end before they are called.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a [`SingleFile`] holds. Called by several threads at a time; whoever reads or writes waits
/// for as long as the call takes.
pub trait FileContents: Send + Sync {
    /// Length in bytes, which does not change.
    fn len(&self) -> u64;

    /// Whether there is nothing in it.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills all of `into` with what is at `offset`; never asked for more than there is.
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`; never given more than there is room for.
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Returns when all that was written is where it stays.
    fn flush(&self) -> io::Result<()>;

    /// Forgets what is there; zeros are read from then on.
    fn discard(&self, offset: u64, len: u64) -> io::Result<()>;
}

/// Such a file, and the threads of this process that serve it. Dropping it ends it: what still has
/// the file open gets errors from then on. A thread that does not come back from its contents
/// within two seconds is left behind.
pub struct SingleFile {
    root: OwnedFd,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl SingleFile {
    /// Serves `contents` by so many threads, which is how many requests are answered at a time.
    /// Needs root. `source` is what it is called in messages of the kernel.
    ///
    /// Errors: `Io` if the kernel does not let us, `Unsupported` for a kernel older than 5.4.
    pub fn serve(
        contents: Arc<dyn FileContents>,
        source: &str,
        read_only: bool,
        threads: usize,
    ) -> Result<SingleFile> {
        let (requests, root) = mount_detached(source, read_only)?;
        let mut first = Device::with_room(requests, LEN_MAX as usize + HEADERS_LEN).raised(FD_MIN);
        shake_hands(&mut first, &Wishes::of_file(LEN_MAX))?;
        let mut file = SingleFile { root, stop: Arc::default(), threads: Vec::new() };
        let mut doors = vec![first];
        while doors.len() < threads {
            let another = doors[0].another().or_io(|| format!("cannot open {:?} again", device::PATH))?;
            doors.push(another.raised(FD_MIN));
        }
        for door in doors {
            let server = Server {
                door,
                contents: Arc::clone(&contents),
                stop: Arc::clone(&file.stop),
                read_only,
                room: Vec::new(),
            };
            let thread = std::thread::Builder::new().name("packfs-device".into());
            file.threads.push(thread.spawn(move || server.serve()).or_io(|| "cannot start a thread")?);
        }
        Ok(file)
    }

    /// Opens the file.
    ///
    /// Errors: `Io` if nobody answers.
    pub fn open(&self, writable: bool) -> Result<File> {
        let flags = if writable { OFlags::RDWR } else { OFlags::RDONLY };
        let file = rustix::fs::openat(&self.root, NAME, flags | OFlags::CLOEXEC, Mode::empty());
        Ok(File::from(file.or_io(|| "cannot open the file that we serve")?))
    }

    /// Has the threads end, as far as they come back from the contents in time: what still has the
    /// file open gets errors once the last one is gone.
    fn finish(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let end = Instant::now() + PATIENCE;
        let mut wakers = Vec::new();
        loop {
            self.threads.retain(|thread| !thread.is_finished());
            if self.threads.is_empty() || Instant::now() > end {
                return;
            }
            self.wake(&mut wakers);
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// A thread ends with the first request that it is woken by: sees to it that there is one for
    /// each that has not ended. What cannot be started now (no more threads allowed) is tried again
    /// the next time.
    fn wake(&self, wakers: &mut Vec<JoinHandle<()>>) {
        wakers.retain(|waker| !waker.is_finished());
        while wakers.len() < self.threads.len() {
            let Ok(root) = rustix::io::fcntl_dupfd_cloexec(&self.root, 0) else { return };
            // Answered, or refused once the last thread is gone; we must not wait for one that
            // waits itself.
            let ask = move || {
                let _ = rustix::io::retry_on_intr(|| rustix::fs::fstatfs(&root));
            };
            let Ok(waker) = std::thread::Builder::new().name("packfs-waker".into()).spawn(ask) else {
                return;
            };
            wakers.push(waker);
        }
    }
}

impl Drop for SingleFile {
    fn drop(&mut self) {
        self.finish();
    }
}

/// One thread.
struct Server {
    door: Device,
    contents: Arc<dyn FileContents>,
    stop: Arc<AtomicBool>,
    read_only: bool,
    /// What was read, or another answer.
    room: Vec<u8>,
}

impl Server {
    fn serve(self) {
        let Server { mut door, contents, stop, read_only, mut room } = self;
        let file = Answers { contents: &*contents, read_only };
        while let Ok(Some(request)) = door.next() {
            let (header, body) = (request.header, request.body);
            // A mistake costs one request, not the device.
            let answer = AssertUnwindSafe(|| file.answer(&header, body, &mut room));
            let outcome = catch_unwind(answer).unwrap_or(Err(Errno::IO));
            match outcome {
                Ok(Some(len)) => door.answer(header.unique, room.get(..len).ok_or(Errno::IO)),
                Ok(None) => {}
                Err(error) => door.answer(header.unique, Err(error)),
            }
            if stop.load(Ordering::SeqCst) {
                return;
            }
        }
    }
}

struct Answers<'a> {
    contents: &'a dyn FileContents,
    read_only: bool,
}

impl Answers<'_> {
    /// Puts the answer into `room`, and says how long it is; `None`: there is none.
    fn answer(&self, header: &InHeader, body: &[u8], room: &mut Vec<u8>) -> Result<Option<usize>, Errno> {
        match (header.opcode, header.nodeid) {
            (opcode::READ, NODE) => return self.read(body, room).map(Some),
            (opcode::WRITE, NODE) if !self.read_only => {
                let size = self.write(body)?;
                put(room, WriteOut { size, padding: 0 }.as_bytes());
            }
            (opcode::FSYNC, NODE) => {
                self.contents.flush().map_err(errno)?;
                put(room, &[]);
            }
            (opcode::FALLOCATE, NODE) if !self.read_only => {
                self.discard(body)?;
                put(room, &[]);
            }
            (opcode::LOOKUP, ROOT_ID) if name(body)? == NAME.as_bytes() => {
                let attr = self.attr(NODE);
                let entry =
                    EntryOut { nodeid: NODE, entry_valid: 1, attr_valid: 1, attr, ..EntryOut::default() };
                put(room, entry.as_bytes());
            }
            (opcode::LOOKUP, _) => return Err(Errno::NOENT),
            (opcode::GETATTR, node @ (ROOT_ID | NODE)) => {
                let attributes = AttrOut { attr_valid: 1, attr: self.attr(node), ..AttrOut::default() };
                put(room, attributes.as_bytes());
            }
            (opcode::OPEN, NODE) => {
                let open_flags = FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES;
                put(room, OpenOut { open_flags, ..OpenOut::default() }.as_bytes());
            }
            (opcode::STATFS, _) => put(room, StatfsOut { bsize: 4096, ..StatfsOut::default() }.as_bytes()),
            (opcode::FLUSH | opcode::RELEASE | opcode::DESTROY, _) => put(room, &[]),
            (opcode::FORGET | opcode::BATCH_FORGET, _) => return Ok(None),
            (opcode::WRITE | opcode::FALLOCATE, _) => return Err(Errno::ROFS),
            _ => return Err(Errno::NOSYS),
        }
        Ok(Some(room.len()))
    }

    fn read(&self, body: &[u8], room: &mut Vec<u8>) -> Result<usize, Errno> {
        let (asked, _) = ReadIn::read_from_prefix(body).map_err(|_| Errno::INVAL)?;
        let len = self.contents.len().saturating_sub(asked.offset).min(u64::from(asked.size.min(LEN_MAX)));
        let len = len as usize;
        // What is left from an earlier read is overwritten.
        if room.len() < len {
            room.resize(len, 0);
        }
        self.contents.read(asked.offset, &mut room[..len]).map_err(errno)?;
        Ok(len)
    }

    fn write(&self, body: &[u8]) -> Result<u32, Errno> {
        let (asked, bytes) = WriteIn::read_from_prefix(body).map_err(|_| Errno::INVAL)?;
        let bytes = bytes.get(..asked.size as usize).ok_or(Errno::INVAL)?;
        self.check_range(asked.offset, u64::from(asked.size))?;
        self.contents.write(asked.offset, bytes).map_err(errno)?;
        Ok(asked.size)
    }

    fn discard(&self, body: &[u8]) -> Result<(), Errno> {
        let (asked, _) = FallocateIn::read_from_prefix(body).map_err(|_| Errno::INVAL)?;
        let known = [falloc::PUNCH_HOLE, falloc::ZERO_RANGE].contains(&(asked.mode & !falloc::KEEP_SIZE));
        if !known {
            return Err(Errno::OPNOTSUPP);
        }
        self.check_range(asked.offset, asked.length)?;
        self.contents.discard(asked.offset, asked.length).map_err(errno)
    }

    fn check_range(&self, offset: u64, len: u64) -> Result<(), Errno> {
        let fits = offset.checked_add(len).is_some_and(|end| end <= self.contents.len());
        if fits { Ok(()) } else { Err(Errno::NOSPC) }
    }

    fn attr(&self, node: u64) -> Attr {
        let size = if node == NODE { self.contents.len() } else { 0 };
        let mode = match (node, self.read_only) {
            (ROOT_ID, _) => 0o40500,
            (_, true) => 0o100_400,
            (_, false) => 0o100_600,
        };
        Attr { ino: node, size, blocks: size / 512, mode, nlink: 1, blksize: 4096, ..Attr::default() }
    }
}

fn put(room: &mut Vec<u8>, answer: &[u8]) {
    room.clear();
    room.extend_from_slice(answer);
}

fn errno(error: io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}
