//! A simulated device as a block device: file, server, loop device, and the order in which they
//! come and go.

use crate::backing::{Backing, Store};
use crate::delayed::Delayed;
use crate::path_cost::PathCost;
use crate::{DeviceSpec, Nanos, Statistics, queue};
use packfs_core::{Error, Result};
use packfs_mount::SingleFile;
use packfs_mount::loop_device::{self, LoopDevice, LoopOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// First number of this program's loop devices, so that no other device gets their attributes.
const NUMBER_MIN: u32 = 800;
/// Threads that serve: what a device has in its queue, within reason.
const THREADS_MIN: u32 = 4;
const THREADS_MAX: u32 = 64;
/// Most time that users of a device have to let go of it.
const PATIENCE: Duration = Duration::from_secs(3);

/// A simulated device that is attached. Dropping it takes it away: unmount what is mounted from it
/// first, or it has an unreadable device under it.
///
/// The mount of its file is nowhere and the loop device clears itself, so nothing is left of either
/// when the process ends, however it ends; what is mounted from the device then gets errors. (A
/// `/dev/loop800` with nothing behind it may be left of one that was killed; the next device
/// removes it.)
pub struct Simulated {
    spec: DeviceSpec,
    delayed: Arc<Delayed>,
    // Taken away in this order.
    device: LoopDevice,
    file: Option<SingleFile>,
    cost: PathCost,
    refused: Vec<String>,
}

impl Simulated {
    /// Attaches a device of these figures with `backing` at its beginning. Needs root.
    ///
    /// Errors: `Failed` if it does not fit or this is not root, `Io` if the kernel has no FUSE or
    /// no loop devices for us, `Unsupported` if it does no direct I/O.
    pub fn attach(spec: &DeviceSpec, backing: Backing<'_>) -> Result<Simulated> {
        if !packfs_mount::is_root() {
            return Err(Error::failed("only root attaches simulated devices"));
        }
        loop_device::remove_unused(NUMBER_MIN);
        let store = Store::open(backing, spec)?;
        let (len, writable) = (store.len(), store.is_writable());
        let delayed = Arc::new(Delayed::new(store, spec));
        let threads = spec.queue.depth.clamp(THREADS_MIN, THREADS_MAX) as usize;
        let source = format!("packfs-{}", spec.name);
        let file = SingleFile::serve(Arc::clone(&delayed) as _, &source, !writable, threads)?;
        let options = LoopOptions {
            is_writable: writable,
            direct_io: true,
            block_len: spec.medium.block_len,
            own_from: Some(NUMBER_MIN),
            ..LoopOptions::default()
        };
        let device = LoopDevice::attach(&file.open(writable)?, Path::new(&source), &options)?;
        let mut simulated = Simulated {
            refused: queue::set(device.number(), spec),
            spec: spec.clone(),
            delayed,
            device,
            file: Some(file),
            cost: PathCost::default(),
        };
        if !simulated.device.is_direct() {
            return Err(Error::unsupported(
                "loop device",
                "the kernel does no direct I/O on a file served by FUSE",
            ));
        }
        simulated.cost = PathCost::measure(simulated.path(), len)?;
        simulated.delayed.begin(simulated.cost);
        Ok(simulated)
    }

    /// The block device: `/dev/loop800`.
    pub fn path(&self) -> &Path {
        self.device.path()
    }

    /// The figures.
    pub fn spec(&self) -> &DeviceSpec {
        &self.spec
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        self.delayed.store().len()
    }

    /// Never: an empty device cannot be attached.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if what it holds lies in memory, so that no other device has a part in what is
    /// measured.
    pub fn is_in_memory(&self) -> bool {
        self.delayed.store().is_in_memory()
    }

    /// Attributes of the queue that the kernel did not take, each with its value and why.
    pub fn refused_attributes(&self) -> &[String] {
        &self.refused
    }

    /// Returns the time of the way of a request, in nanoseconds: of any, and of each byte. It is
    /// part of the model's time, so a model that is faster cannot be met.
    pub fn path_cost(&self) -> (Nanos, f64) {
        self.cost.parts()
    }

    /// Returns the counts of requests so far.
    pub fn statistics(&self) -> Statistics {
        self.delayed.statistics()
    }

    /// Takes it away.
    ///
    /// Errors: `Failed` if something is still mounted from it or has it open; that gets errors from
    /// then on, and the device goes with it.
    pub fn detach(mut self) -> Result<Statistics> {
        let statistics = self.statistics();
        let path: PathBuf = self.path().into();
        if self.take_away() {
            return Ok(statistics);
        }
        let error = Error::failed(format!("{path:?} was taken away while it was in use"));
        Err(error.hint("what is mounted from it has to be unmounted before"))
    }

    /// Removes the device. Returns true if it has no user any more.
    fn take_away(&mut self) -> bool {
        // Written data must still reach the file, but no caller waits for it.
        self.delayed.hurry();
        let is_gone = self.device.release(PATIENCE);
        // Remaining users of the device get errors, because its file is gone.
        drop(self.file.take());
        is_gone
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        if self.file.is_some() {
            self.take_away();
        }
    }
}
