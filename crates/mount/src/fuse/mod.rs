//! Mounts of an image through FUSE, served by threads of this process.
//!
//! The protocol is implemented directly. A read-only filesystem needs a dozen requests, and its
//! speed comes from features beyond general libraries: no requests for opening or closing,
//! attributes and names that the kernel may cache forever, node ids that are inode ids and need no
//! table, and contents that go from decoded blocks into the kernel.

mod abi;
mod attach;
mod attributes;
mod channel;
mod damaged_dirs;
mod detached;
mod device;
mod directory;
mod dry_run;
mod handshake;
mod idle;
mod listing_ends;
mod marks;
mod open_files;
mod parents;
mod read_predictor;
mod readahead;
#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64",
    target_arch = "loongarch64",
    target_arch = "powerpc64"
))]
mod ring;
#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64",
    target_arch = "loongarch64",
    target_arch = "powerpc64"
)))]
#[path = "no_ring.rs"]
mod ring;
mod room;
mod serve;
mod served;
mod single_file;
mod stores;
mod trace;
mod uring;
mod xattr;

pub use dry_run::DryRun;
pub use single_file::{FileContents, SingleFile};
pub use uring::try_uring;

use crate::unmount::Unmounter;
use crate::{Channel, MountFlags, record, table};
use device::Device;
use packfs_core::{Error, ImagePath, Owner, Result, ResultExt};
use packfs_format::{InodeId, InodeKind};
use packfs_read::ReadEngine;
use served::Served;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use trace::TraceWriter;

/// Maps the owner stored in the image to the owner shown in the mount.
pub type OwnerMap = Arc<dyn Fn(Owner) -> Owner + Send + Sync>;

const THREADS_MAX: usize = 256;

/// Options of a FUSE mount.
#[derive(Clone)]
pub struct FuseOptions {
    /// Directory of the image that becomes the root.
    pub root: InodeId,
    /// Source shown in the mount table: the image.
    pub source: PathBuf,
    /// Type in the mount table, after `fuse.`.
    pub subtype: OsString,
    /// Restrictions.
    pub flags: MountFlags,
    /// Set to let other users access the mount.
    pub allow_other: bool,
    /// Set to enforce the permissions in the image; otherwise everyone with access may read
    /// everything.
    pub default_permissions: bool,
    /// Mapping of owners.
    pub owners: Option<OwnerMap>,
    /// Idle time after which the mount is removed, unless it is in use.
    pub idle_timeout: Option<Duration>,
    /// Serving threads; 0 means a number that suits the machine.
    pub threads: usize,
    /// File that records the paths used, in order of first use.
    pub trace: Option<TraceFile>,
    /// Channel for requests.
    pub channel: Channel,
}

/// Destination of a trace: paths of files read, symbolic links followed and directories listed, one
/// per line, each once, in order of first use.
#[derive(Clone, Debug)]
pub struct TraceFile {
    /// The file; an existing one is replaced.
    pub file: PathBuf,
    /// Path in the image of the directory that is mounted.
    pub above: ImagePath,
}

impl TraceFile {
    fn writer(&self, root: InodeId) -> Result<TraceWriter> {
        let file = std::fs::File::create(&self.file).or_io(|| format!("cannot write {:?}", self.file))?;
        Ok(TraceWriter::new(file, root, self.above.clone()))
    }
}

impl FuseOptions {
    /// Creates options for serving `root` to this user alone, who may read everything. Set-id bits
    /// and devices have no effect.
    pub fn new(root: InodeId, source: impl Into<PathBuf>) -> Self {
        FuseOptions {
            root,
            source: source.into(),
            subtype: record::SUBTYPE.into(),
            flags: MountFlags { nosuid: true, nodev: true, ..MountFlags::default() },
            allow_other: false,
            default_permissions: false,
            owners: None,
            idle_timeout: None,
            threads: 0,
            trace: None,
            channel: Channel::Auto,
        }
    }

    fn thread_count(&self) -> usize {
        match self.threads {
            // Some threads wait for blocks that others decode, so there are more than processors.
            0 => (2 * packfs_core::processor_count()).clamp(4, 64),
            threads => threads.min(THREADS_MAX),
        }
    }

    fn ring_count(&self) -> usize {
        match self.threads {
            // A thread that waits for the disk leaves its queue to the others of its processor.
            0 => (4 * packfs_core::processor_count()).clamp(4, 64),
            _ => self.thread_count(),
        }
    }
}

/// Mounted image and its server. Dropping it unmounts lazily.
pub struct FuseMount {
    at: PathBuf,
    unmounter: Unmounter,
    threads: Vec<JoinHandle<Result<()>>>,
    requests: Arc<AtomicU64>,
    served: Option<Arc<Served>>,
    channel: Channel,
}

/// Counters of a mount. Values only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FuseCounters {
    /// Requests of the kernel.
    pub requests: u64,
    /// Stores of more of a block than requested in the page cache.
    pub stores: u64,
    /// Stores that were skipped: another thread was storing, or the block has no other bytes of the
    /// file.
    pub stores_left_out: u64,
}

impl FuseMount {
    /// Mounts the image of `engine` on a directory, by system call if permitted, else through
    /// `fusermount3`, and serves it from threads of this process. The mount is ready when this
    /// returns.
    ///
    /// Errors: `Io` if neither way works, `Failed` if `fusermount3` refuses, `Unsupported` for a
    /// kernel older than 5.4.
    pub fn new(engine: Arc<ReadEngine>, at: &Path, options: &FuseOptions) -> Result<Self> {
        let at = at.canonicalize().or_io(|| format!("cannot find {at:?}"))?;
        let root = engine.volume().inode(options.root)?;
        if root.kind != InodeKind::Directory {
            let word = root.kind.file_type().word();
            return Err(Error::failed(format!("cannot mount a {word}: not a directory")));
        }
        let trace = options.trace.as_ref().map(|trace| trace.writer(options.root)).transpose()?;
        let fd = attach::attach(&at, &root, options)?;
        let mount = Unmounter::of(&at).map(|unmounter| FuseMount {
            at,
            unmounter,
            threads: Vec::new(),
            requests: Arc::default(),
            served: None,
            channel: Channel::Classic,
        });
        mount.and_then(|mount| mount.start(Device::new(fd), engine, options, trace))
    }

    fn start(
        mut self,
        mut device: Device,
        engine: Arc<ReadEngine>,
        options: &FuseOptions,
        trace: Option<TraceWriter>,
    ) -> Result<Self> {
        let (features, workers) = channel::agree(&mut device, options)?;
        readahead::widen(self.unmounter.device());
        let served = Arc::new(Served::new(engine, options, features, trace));
        self.served = Some(Arc::clone(&served));
        if !workers.is_empty() && self.start_workers(workers, &served, &device, options.channel)? {
            self.channel = Channel::Uring;
        }
        // A single thread takes the few requests that do not come through io_uring.
        let device_count = if self.channel == Channel::Uring { 1 } else { options.thread_count() };
        let mut devices = vec![device];
        while devices.len() < device_count {
            let another = devices[0].another().or_io(|| format!("cannot open {:?} again", device::PATH))?;
            devices.push(another);
        }
        for device in devices {
            let (served, requests) = (Arc::clone(&served), Arc::clone(&self.requests));
            let thread = std::thread::Builder::new().name("packfs-fuse".into());
            let unmounter = self.unmounter.clone();
            let serve = move || {
                let outcome = serve::serve(device, &served, &requests);
                if outcome.is_ok() {
                    unmounter.set_over();
                }
                outcome
            };
            self.threads.push(thread.spawn(serve).or_io(|| "cannot start a thread")?);
        }
        if let Some(timeout) = options.idle_timeout {
            idle::watch(timeout, Arc::clone(&self.requests), self.unmounter.clone())
                .or_io(|| "cannot start a thread")?;
        }
        // The kernel has accepted the handshake, so the mount works. It is not accessed here to
        // verify that: a concurrent unmount would find it in use.
        Ok(self)
    }

    /// Returns the mount point.
    pub fn at(&self) -> &Path {
        &self.at
    }

    /// Returns the channel in use: classic or io_uring.
    pub fn channel(&self) -> Channel {
        self.channel
    }

    /// Returns the counters so far.
    pub fn counters(&self) -> FuseCounters {
        let (stores, stores_left_out) = self.served.as_ref().map_or((0, 0), |served| served.stores.counts());
        FuseCounters { requests: self.requests.load(Ordering::Relaxed), stores, stores_left_out }
    }

    /// Returns the handle for unmounting from any thread.
    pub fn unmounter(&self) -> Unmounter {
        self.unmounter.clone()
    }

    /// Serves until the mount is unmounted and no longer in use.
    ///
    /// Errors: `Io` if the connection to the kernel fails.
    pub fn wait(mut self) -> Result<()> {
        let mut outcome = Ok(());
        for thread in std::mem::take(&mut self.threads) {
            let ended = thread.join().unwrap_or_else(|_| Err(Error::failed("a serving thread has panicked")));
            outcome = outcome.and(ended);
        }
        outcome
    }
}

impl Drop for FuseMount {
    fn drop(&mut self) {
        // Processes that still use the mount get errors instead of waiting forever.
        let _ = self.unmounter.unmount(true);
    }
}

/// Finds the directory of an image that becomes the root.
///
/// Errors: `Failed` if the path is not a directory. Symbolic links are not followed.
pub fn find_subdir(engine: &ReadEngine, path: &ImagePath) -> Result<InodeId> {
    let volume = engine.volume();
    let mut at = volume.root();
    for name in path.names() {
        let missing = || Error::failed(format!("{path:?}: no such directory in the image"));
        at = volume.lookup(at, name.as_bytes())?.ok_or_else(missing)?;
    }
    match volume.inode(at)?.kind {
        InodeKind::Directory => Ok(at),
        other => Err(Error::failed(format!("{path:?} is a {}, not a directory", other.file_type().word()))),
    }
}

/// Returns true if `path` is a mount of packfs whose server has ended.
pub fn is_stale(path: &Path) -> bool {
    let at = table::place(path).ok();
    let mounted = at.and_then(|at| table::topmost(&at).ok()?);
    mounted.is_some_and(|mounted| record::is_served(&mounted) && record::is_disconnected(&mounted.at))
}
