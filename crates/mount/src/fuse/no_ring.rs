//! Substitute for rings on architectures that the crate `io-uring` does not support: mounts use
//! `/dev/fuse`.

use super::abi::InHeader;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::io;

/// Never constructed.
pub(crate) enum Ring {}

/// Same as in `ring.rs`.
pub(crate) struct RingRequest<'a> {
    pub(crate) header: InHeader,
    pub(crate) asked: &'a [u8],
    pub(crate) payload: &'a mut [u8],
}

/// Same as in `ring.rs`.
#[allow(dead_code, reason = "no ring returns one")]
pub(crate) enum Event {
    Request(usize),
    Over,
}

impl Ring {
    /// Errors: always `Unsupported`.
    pub(crate) fn new(_: OwnedFd, _: &[u16], _: usize) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn start(&mut self) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn next(&mut self) -> io::Result<Event> {
        match *self {}
    }

    pub(crate) fn request(&mut self, _: usize) -> Result<RingRequest<'_>, Errno> {
        match *self {}
    }

    pub(crate) fn answer(&mut self, _: usize, _: u64, _: Result<usize, Errno>) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn submit(&mut self) -> io::Result<()> {
        match *self {}
    }
}
