//! Choice of the channel between the kernel and the server.

use super::device::Device;
use super::handshake::{Features, InitOptions, READ_PAGES_MAX, shake_hands};
use super::served::Served;
use super::stores::RandomRead;
use super::uring::Worker;
use super::{FuseMount, FuseOptions};
use packfs_core::{Error, Result, ResultExt};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::thread::Builder;

/// Longest answer: the longest read, in pages of 4 KiB. A kernel with longer pages refuses the
/// entries.
const PAYLOAD_LEN: usize = READ_PAGES_MAX as usize * 4096;

/// Channel for requests of the kernel and their answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Channel {
    /// io_uring if it is available, otherwise `/dev/fuse`.
    #[default]
    Auto,
    /// Reads and writes of `/dev/fuse`, which all kernels have.
    Classic,
    /// io_uring, since Linux 6.14, if root has enabled it. It is faster.
    Uring,
}

impl Channel {
    /// Returns the word for it on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Channel::Auto => "auto",
            Channel::Classic => "classic",
            Channel::Uring => "uring",
        }
    }
}

impl std::str::FromStr for Channel {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        let all = [Channel::Auto, Channel::Classic, Channel::Uring];
        let found = all.into_iter().find(|channel| channel.word() == word);
        let known = "auto, classic, or uring";
        found.ok_or_else(|| Error::usage(format!("unknown channel {word:?}; {known} is allowed")))
    }
}

/// Answers the handshake; returns the granted features, and workers if requests are to come through
/// io_uring.
///
/// Errors: as [`shake_hands`], and `Unsupported` if io_uring is demanded and unavailable.
pub(crate) fn agree(device: &mut Device, options: &FuseOptions) -> Result<(Features, Vec<Worker>)> {
    let wanted = options.channel;
    let another = device.duplicate().or_io(|| "cannot duplicate a descriptor")?;
    let mut made = None;
    // Without rings, a handshake that agrees on them would block all requests for good.
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

/// Returns the error for a channel that was insisted on.
fn unavailable(why: &str) -> Error {
    let error = Error::unsupported("FUSE over io_uring", why.to_owned());
    error.hint(
        "needed: Linux 6.14, `echo Y > /sys/module/fuse/parameters/enable_uring` by root, and \
         kernel.io_uring_disabled=0; or omit the channel, then /dev/fuse is used",
    )
}

impl FuseMount {
    /// Starts the workers; returns true if requests come to them.
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

    /// Starts the thread that stores parts of files in the page cache. It has no entry in a ring,
    /// so the kernel assigns it no request while it waits for a page.
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
