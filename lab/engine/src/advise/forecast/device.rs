//! A device as the forecast sees it: when a read ends that begins now.

use crate::advise::kernels::Kernel;
use packfs_device::{DeviceSpec, Due, Model, Nanos, Operation, Request};

/// A time in seconds since the workload began.
pub(crate) type Seconds = f64;

pub(crate) trait Device {
    /// When reading so many bytes at an offset ends, asked for at a time; times never go back.
    fn read(&mut self, now: Seconds, offset: u64, len: u64) -> Seconds;

    /// Returns the readahead of the kernel in a file, in bytes.
    fn read_ahead(&self) -> u64;

    /// Length of a logical block, in bytes.
    fn block_len(&self) -> u64 {
        512
    }

    /// Returns true if the kernel that reads from it is at least this version.
    fn is_since(&self, _version: (u16, u16)) -> bool {
        false
    }
}

/// A simulated device without the simulation: its model alone.
pub(crate) struct Modelled {
    model: Model,
    kernel: Kernel,
}

impl Modelled {
    /// A device that was idle for long, and the kernel that reads from it.
    pub(crate) fn new(spec: &DeviceSpec, kernel: Kernel) -> Self {
        Modelled { model: Model::new(spec), kernel }
    }
}

impl Device for Modelled {
    fn read(&mut self, now: Seconds, offset: u64, len: u64) -> Seconds {
        let spec = self.model.spec();
        let unit = u64::from(spec.medium.block_len).max(1);
        let longest = (u64::from(spec.queue.request_kib_max) << 10).max(unit);
        let mut at = offset - offset % unit;
        let end = (offset + len.max(1)).next_multiple_of(unit);
        let asked = nanos(now);
        let mut tickets = Vec::new();
        while at < end {
            let len = longest.min(end - at);
            tickets.push(self.model.submit(asked, Request { operation: Operation::Read, offset: at, len }));
            at += len;
        }
        let mut there = asked;
        for ticket in tickets {
            let mut looked = asked;
            there = there.max(loop {
                match self.model.due(looked, ticket) {
                    Due::At(end) => break end,
                    Due::NotBefore(later) => looked = later.max(looked + 1),
                }
            });
        }
        there as f64 / 1e9
    }

    fn read_ahead(&self) -> u64 {
        u64::from(self.model.spec().queue.read_ahead_kib) << 10
    }

    fn block_len(&self) -> u64 {
        u64::from(self.model.spec().medium.block_len)
    }

    fn is_since(&self, (major, minor): (u16, u16)) -> bool {
        self.kernel >= Kernel(major, minor)
    }
}

fn nanos(seconds: Seconds) -> Nanos {
    (seconds * 1e9) as Nanos
}
