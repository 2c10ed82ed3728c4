//! `/dev/fuse`: one descriptor for each thread that serves; requests in, answers out.

use super::abi::{InHeader, NOTIFY_STORE, NotifyStoreOut, OutHeader};
use crate::sys;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::{self, Errno};
use std::io::IoSlice;
use zerocopy::{FromBytes, IntoBytes};

/// Where the kernel offers FUSE.
pub(crate) const PATH: &str = "/dev/fuse";
/// Room for any request to an image: names and attribute values are short, and nothing is ever
/// written.
const REQUEST_LEN_MAX: usize = 64 << 10;
/// The most that a write may carry, which the kernel wants to know though nothing can be written.
pub(crate) const WRITE_LEN_MAX: u32 = 4096;

/// One door to a mount.
pub(crate) struct Device {
    fd: OwnedFd,
    request: Vec<u8>,
}

/// A request: what every one begins with, and what is behind that.
pub(crate) struct Request<'a> {
    pub(crate) header: InHeader,
    pub(crate) body: &'a [u8],
}

impl Device {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Device::with_room(fd, REQUEST_LEN_MAX)
    }

    /// With room for requests of so many bytes: for those whose files are written.
    pub(crate) fn with_room(fd: OwnedFd, request_len_max: usize) -> Self {
        Device { fd, request: vec![0; request_len_max] }
    }

    /// A further door to the same mount, with a queue of its own for what it has taken.
    pub(crate) fn another(&self) -> io::Result<Device> {
        let fresh = open().and_then(|fresh| {
            sys::clone_fuse_device(&fresh, self.fd.as_fd())?;
            Ok(fresh)
        });
        // Who may not open the device, but was handed an open one, shares that.
        let fd = fresh.or_else(|_| io::fcntl_dupfd_cloexec(&self.fd, 0))?;
        Ok(Device::with_room(fd, self.request.len()))
    }

    /// The same door under a number that is `min` at least, where so many may be open.
    pub(crate) fn raised(self, min: i32) -> Self {
        match io::fcntl_dupfd_cloexec(&self.fd, min) {
            Ok(fd) => Device { fd, request: self.request },
            Err(_) => self,
        }
    }

    /// Waits for the next request; `None` when nothing is mounted any more.
    pub(crate) fn next(&mut self) -> io::Result<Option<Request<'_>>> {
        let len = loop {
            match io::read(&self.fd, &mut self.request) {
                Ok(len) => break len,
                // Interrupted, or the request was taken back before it was read.
                Err(Errno::INTR | Errno::AGAIN | Errno::NOENT) => {}
                Err(Errno::NODEV | Errno::CONNABORTED) => return Ok(None),
                Err(error) => return Err(error),
            }
        };
        let request = self.request.get(..len).unwrap_or_default();
        let (header, body) = InHeader::read_from_prefix(request).map_err(|_| Errno::PROTO)?;
        Ok(Some(Request { header, body }))
    }

    /// Answers a request: with these bytes, or with an error. A request whose asker was killed
    /// cannot be answered any more; nothing is lost.
    pub(crate) fn answer(&self, unique: u64, answer: Result<&[u8], Errno>) {
        let _ = self.reply(unique, answer);
    }

    /// As [`answer`](Self::answer), and tells whether the kernel took it.
    ///
    /// Errors: `NOENT` if nobody waits for it any more; `INVAL` if it is no answer to that request.
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

    /// Gives the kernel bytes of a file that it did not ask for. Waits while it waits for others of
    /// the same pages.
    ///
    /// Errors: `NOENT` if it knows no such file any more; `INVAL` if it takes none.
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

/// Opens the device.
pub(crate) fn open() -> io::Result<OwnedFd> {
    rustix::fs::open(PATH, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
}
