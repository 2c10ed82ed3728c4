//! Choice of the channel between the kernel and the server.

use super::device::Device;
use super::handshake::{Features, InitOptions, READ_PAGES_MAX, shake_hands};
use super::served::Served;
use super::stores::RandomRead;
use super::uring::Worker;
use super::{FuseMount, FuseOptions};
use crate::Channel;
use packfs_core::{Error, Result, ResultExt};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::thread::Builder;

/// Longest answer: the longest read, in pages of 4 KiB. A kernel with longer pages refuses the
/// entries.
const PAYLOAD_LEN: usize = READ_PAGES_MAX as usize * 4096;

/// Answers the handshake; returns the granted features, and workers if requests are to come through
/// io_uring.
///
/// Errors: as [`shake_hands`], and `Unsupported` if io_uring is requested and unavailable.
pub(crate) fn agree(device: &mut Device, options: &FuseOptions) -> Result<(Features, Vec<Worker>)> {
    let wanted = options.channel;
    let another = device.duplicate().or_io(|| "cannot duplicate a descriptor")?;
    let mut made = None;
    // Without rings, a handshake that agrees on them would block all requests forever.
    let offered = || {
        wanted != Channel::Classic
            && made.insert(Worker::all(&another, options.ring_count(), PAYLOAD_LEN)).is_ok()
    };
    let features = shake_hands(device, &InitOptions::of_image(options), offered)?;
    match made {
        Some(Ok(workers)) => Ok((features, workers)),
        Some(Err(error)) if wanted == Channel::Uring => Err(unavailable(&error.to_string())),
        None if wanted == Channel::Uring => Err(unavailable("the kernel does not offer it")),
        _ => Ok((features, Vec::new())),
    }
}

fn unavailable(why: &str) -> Error {
    let error = Error::unsupported("FUSE over io_uring", why.to_owned());
    error.hint(
        "needed: Linux 6.14, `echo Y > /sys/module/fuse/parameters/enable_uring` by root, and \
         kernel.io_uring_disabled=0; or omit the channel, then /dev/fuse is used",
    )
}

impl FuseMount {
    /// Returns true if requests come to the workers.
    ///
    /// Errors: `Unsupported` if the kernel refuses although `wanted` is io_uring.
    pub(crate) fn start_workers(
        &mut self,
        workers: Vec<Worker>,
        served: &Arc<Served>,
        device: &Device,
        wanted: Channel,
    ) -> Result<bool> {
        let (stores, read_places) = sync_channel(1);
        self.start_storing(read_places, served, device)?;
        let (started, outcomes) = channel();
        for mut worker in workers {
            let (served, requests) = (Arc::clone(served), Arc::clone(&self.requests));
            let (stores, started) = (stores.clone(), started.clone());
            let serve = move || {
                let outcome = worker.start();
                let is_started = outcome.is_ok();
                let _ = started.send(outcome);
                drop(started);
                if is_started { worker.serve(&served, &requests, &stores) } else { Ok(()) }
            };
            let thread = Builder::new().name("packfs-uring".into());
            self.threads.push(thread.spawn(serve).or_io(|| "cannot start a thread")?);
        }
        drop(started);
        let outcome: io::Result<()> = outcomes.into_iter().collect();
        match outcome {
            Err(error) if wanted == Channel::Uring => Err(unavailable(&error.to_string())),
            // The kernel then sends requests to /dev/fuse.
            outcome => Ok(outcome.is_ok()),
        }
    }

    /// The thread has no entry in a ring, so the kernel assigns it no request while it waits for a
    /// page.
    fn start_storing(
        &mut self,
        reads: Receiver<RandomRead>,
        served: &Arc<Served>,
        device: &Device,
    ) -> Result<()> {
        let device = device.another().or_io(|| "cannot open the FUSE device again")?;
        let served = Arc::clone(served);
        let store = move || {
            for read in reads {
                // A panic here only costs the optimization.
                let store = AssertUnwindSafe(|| served.stores.store_around(&device, &read));
                let _ = catch_unwind(store);
            }
            Ok(())
        };
        let thread = Builder::new().name("packfs-store".into());
        self.threads.push(thread.spawn(store).or_io(|| "cannot start a thread")?);
        Ok(())
    }
}
