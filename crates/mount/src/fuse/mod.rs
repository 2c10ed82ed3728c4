//! An image served through FUSE: mounted, and answered for by threads of this process.
//!
//! The protocol is spoken directly. A read-only file system needs a dozen requests, and what it
//! saves beyond what a general library offers is what makes it fast: no request to open or close
//! anything, attributes and names that the kernel may keep for good, node ids that are the image's
//! own inode ids and need no table, and contents that go from decoded blocks into the kernel.

mod abi;
mod attach;
mod attributes;
mod detached;
mod device;
mod directory;
mod foresight;
mod handshake;
mod idle;
mod marks;
mod open_files;
mod parents;
mod readahead;
mod rehearsal;
mod serve;
mod served;
mod single_file;
mod stores;
mod trace;
mod xattr;

pub use rehearsal::Rehearsal;
pub use single_file::{FileContents, SingleFile};

use crate::unmount::Unmounter;
use crate::{MountFlags, table};
use device::Device;
use handshake::Wishes;
use packfs_core::{Error, ImagePath, Owner, Result, ResultExt};
use packfs_format::{InodeId, InodeKind};
use packfs_read::ReadEngine;
use served::Served;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use trace::TraceWriter;

/// Who owns what is seen, made of who owns it in the image.
pub type OwnerMap = Arc<dyn Fn(Owner) -> Owner + Send + Sync>;

/// Most threads that serve one mount.
const THREADS_MAX: usize = 256;

/// How an image is served.
#[derive(Clone)]
pub struct FuseOptions {
    /// The directory of the image that is seen as the root.
    pub root: InodeId,
    /// What the table of mounts shows as the source: the image.
    pub source: PathBuf,
    /// Restrictions.
    pub flags: MountFlags,
    /// Other users may enter too, as far as the permissions in the image allow.
    pub allow_other: bool,
    /// The permissions in the image hold; without it whoever may enter may read everything.
    pub default_permissions: bool,
    /// Who owns what.
    pub owners: Option<OwnerMap>,
    /// After so long without a request the mount is taken away, unless it is in use.
    pub idle_timeout: Option<Duration>,
    /// Threads that serve; 0: as many as the machine is good for.
    pub threads: usize,
    /// Where the paths are written that are used, in the order of their first use.
    pub trace: Option<TraceFile>,
}

/// Where the paths are written of files that are read, symbolic links that are followed and
/// directories that are listed: one a line, each once, in the order of their first use.
#[derive(Clone, Debug)]
pub struct TraceFile {
    /// The file. What was there before is replaced.
    pub file: PathBuf,
    /// Path in the image of the directory that is seen as the root.
    pub above: ImagePath,
}

impl TraceFile {
    fn writer(&self, root: InodeId) -> Result<TraceWriter> {
        let file = std::fs::File::create(&self.file).or_io(|| format!("cannot write {:?}", self.file))?;
        Ok(TraceWriter::new(file, root, self.above.clone()))
    }
}

impl FuseOptions {
    /// Serves `root` to whoever mounts it, with everything permitted to them.
    pub fn new(root: InodeId, source: impl Into<PathBuf>) -> Self {
        FuseOptions {
            root,
            source: source.into(),
            flags: MountFlags { nosuid: true, nodev: true, ..MountFlags::default() },
            allow_other: false,
            default_permissions: false,
            owners: None,
            idle_timeout: None,
            threads: 0,
            trace: None,
        }
    }

    fn thread_count(&self) -> usize {
        match self.threads {
            // Some wait for blocks that others decode, so there are more than processors.
            0 => (2 * packfs_core::processor_count()).clamp(4, 64),
            threads => threads.min(THREADS_MAX),
        }
    }
}

/// An image that is mounted and served. Dropping it takes the mount away, lazily.
pub struct FuseMount {
    at: PathBuf,
    unmounter: Unmounter,
    threads: Vec<JoinHandle<Result<()>>>,
    requests: Arc<AtomicU64>,
    served: Option<Arc<Served>>,
}

/// What serving a mount took. Counts only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FuseCounters {
    /// Requests of the kernel.
    pub requests: u64,
    /// Times that it was given more of a block than it had asked for.
    pub stores: u64,
    /// Times that it was not, after all: another thread was at that, or the block holds no more of
    /// the file.
    pub stores_left_out: u64,
}

impl FuseMount {
    /// Mounts what `engine` reads on a directory: by system call where that is allowed, else
    /// through `fusermount3`; serves it from threads of this process. The mount answers when this
    /// returns.
    ///
    /// Errors: `Io` if neither way works, `Failed` if `fusermount3` refuses, `Unsupported` for a
    /// kernel older than 5.4.
    pub fn new(engine: Arc<ReadEngine>, at: &Path, options: &FuseOptions) -> Result<Self> {
        let at = at.canonicalize().or_io(|| format!("cannot find {at:?}"))?;
        let root = engine.volume().inode(options.root)?;
        if root.kind != InodeKind::Directory {
            let word = root.kind.file_type().word();
            return Err(Error::failed(format!("what is to be mounted is a {word}, not a directory")));
        }
        let trace = options.trace.as_ref().map(|trace| trace.writer(options.root)).transpose()?;
        let fd = attach::attach(&at, &root, options)?;
        let mount = Unmounter::of(&at).map(|unmounter| FuseMount {
            at,
            unmounter,
            threads: Vec::new(),
            requests: Arc::default(),
            served: None,
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
        let features = handshake::shake_hands(&mut device, &Wishes::of_image(options))?;
        readahead::widen(self.unmounter.device());
        let served = Arc::new(Served::new(engine, options, features, trace));
        self.served = Some(Arc::clone(&served));
        let mut devices = vec![device];
        while devices.len() < options.thread_count() {
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
        // The kernel has taken our side of the handshake, so the mount answers. Nothing here looks
        // into it to find out: whoever unmounts it at that moment would find it in use.
        Ok(self)
    }

    /// Where it is mounted.
    pub fn at(&self) -> &Path {
        &self.at
    }

    /// What serving it took so far.
    pub fn counters(&self) -> FuseCounters {
        let (stores, stores_left_out) = self.served.as_ref().map_or((0, 0), |served| served.stores.counts());
        FuseCounters { requests: self.requests.load(Ordering::Relaxed), stores, stores_left_out }
    }

    /// What takes it away, from any thread.
    pub fn unmounter(&self) -> Unmounter {
        self.unmounter.clone()
    }

    /// Serves until the mount is taken away by anybody, and nobody is in it any more.
    ///
    /// Errors: `Io` if the kernel stops talking to us.
    pub fn wait(mut self) -> Result<()> {
        let mut outcome = Ok(());
        for thread in std::mem::take(&mut self.threads) {
            let ended = thread.join().unwrap_or_else(|_| Err(Error::failed("a thread that serves has died")));
            outcome = outcome.and(ended);
        }
        outcome
    }
}

impl Drop for FuseMount {
    fn drop(&mut self) {
        // Whoever is in it still gets an error instead of waiting for ever.
        let _ = self.unmounter.unmount(true);
    }
}

/// Finds the directory of an image that is to be seen as the root.
///
/// Errors: `Failed` if there is none at that path. Symbolic links are not followed.
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

/// Whether something that packfs serves is mounted there, and its server is gone.
pub fn is_stale(path: &Path) -> bool {
    let at = table::place(path).ok();
    let mounted = at.and_then(|at| table::topmost(&at).ok()?);
    mounted.is_some_and(|mounted| {
        crate::record::is_served(&mounted)
            && matches!(rustix::fs::statfs(&mounted.at), Err(rustix::io::Errno::NOTCONN))
    })
}
