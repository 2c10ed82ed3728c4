//! `/dev/fuse`: one descriptor for each serving thread; requests in, replies out.

use super::abi::{InHeader, NOTIFY_STORE, NotifyStoreOut, OutHeader};
use crate::sys;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::{self, Errno};
use std::io::IoSlice;
use zerocopy::{FromBytes, IntoBytes};

pub(crate) const PATH: &str = "/dev/fuse";
/// Longest request for an image: names and attribute values are short, and there are no writes.
const REQUEST_LEN_MAX: usize = 64 << 10;
/// Most bytes of a write; the kernel requires a limit even for a read-only mount.
pub(crate) const WRITE_LEN_MAX: u32 = 4096;

pub(crate) struct Device {
    fd: OwnedFd,
    request: Vec<u8>,
}

pub(crate) struct Request<'a> {
    pub(crate) header: InHeader,
    pub(crate) body: &'a [u8],
}

impl Device {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Device::with_room(fd, REQUEST_LEN_MAX)
    }

    /// Wraps a descriptor for writable files, whose requests have up to `request_len_max` bytes.
    pub(crate) fn with_room(fd: OwnedFd, request_len_max: usize) -> Self {
        Device { fd, request: vec![0; request_len_max] }
    }

    /// The connection has its own queue of accepted requests.
    pub(crate) fn another(&self) -> io::Result<Device> {
        let fresh = open().and_then(|fresh| {
            sys::clone_fuse_device(&fresh, self.fd.as_fd())?;
            Ok(fresh)
        });
        // A process that may not open the device shares the descriptor that it was given.
        let fd = fresh.or_else(|_| io::fcntl_dupfd_cloexec(&self.fd, 0))?;
        Ok(Device::with_room(fd, self.request.len()))
    }

    pub(crate) fn duplicate(&self) -> io::Result<OwnedFd> {
        io::fcntl_dupfd_cloexec(&self.fd, 0)
    }

    /// Keeps the number if no other is available.
    pub(crate) fn raised(self, min: i32) -> Self {
        match io::fcntl_dupfd_cloexec(&self.fd, min) {
            Ok(fd) => Device { fd, request: self.request },
            Err(_) => self,
        }
    }

    /// `None` once the mount is gone.
    pub(crate) fn next(&mut self) -> io::Result<Option<Request<'_>>> {
        let len = loop {
            match io::read(&self.fd, &mut self.request) {
                Ok(len) => break len,
                // Interrupted, or the request was cancelled before it was read.
                Err(Errno::INTR | Errno::AGAIN | Errno::NOENT) => {}
                Err(Errno::NODEV | Errno::CONNABORTED) => return Ok(None),
                Err(error) => return Err(error),
            }
        };
        let request = self.request.get(..len).unwrap_or_default();
        let (header, body) = InHeader::read_from_prefix(request).map_err(|_| Errno::PROTO)?;
        Ok(Some(Request { header, body }))
    }

    /// If the requesting process was killed, the answer is dropped.
    pub(crate) fn answer(&self, unique: u64, answer: Result<&[u8], Errno>) {
        let _ = self.reply(unique, answer);
    }

    /// Errors: `NOENT` if the request was cancelled; `INVAL` for an invalid answer.
    pub(crate) fn reply(&self, unique: u64, answer: Result<&[u8], Errno>) -> io::Result<()> {
        let body = answer.unwrap_or_default();
        let header = OutHeader {
            len: (size_of::<OutHeader>() + body.len()) as u32,
            error: answer.err().map_or(0, |error| -error.raw_os_error()),
            unique,
        };
        let parts = [IoSlice::new(header.as_bytes()), IoSlice::new(body)];
        io::writev(&self.fd, &parts).map(drop)
    }

    /// Blocks while other requests hold the same pages of the page cache.
    ///
    /// Errors: `NOENT` if the kernel has forgotten the file; `INVAL` if it rejects the bytes.
    pub(crate) fn store(&self, node: u64, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let size = u32::try_from(bytes.len()).map_err(|_| Errno::TOOBIG)?;
        let store = NotifyStoreOut { nodeid: node, offset, size, padding: 0 };
        let len = size_of::<OutHeader>() + size_of::<NotifyStoreOut>() + bytes.len();
        let len = u32::try_from(len).map_err(|_| Errno::TOOBIG)?;
        let header = OutHeader { len, error: NOTIFY_STORE, unique: 0 };
        let parts = [IoSlice::new(header.as_bytes()), IoSlice::new(store.as_bytes()), IoSlice::new(bytes)];
        io::writev(&self.fd, &parts).map(drop)
    }
}

pub(crate) fn open() -> io::Result<OwnedFd> {
    rustix::fs::open(PATH, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
}
