//! Answers to requests of a read-only filesystem.
//!
//! Node ids are the image's inode ids, shifted past the root's, so no table is needed: `forget`
//! does nothing, and file handles of NFS clients survive a restart.

use super::abi::{
    AttrOut, EntryOut, FOPEN_CACHE_DIR, FOPEN_KEEP_CACHE, LseekIn, OpenOut, ROOT_ID, ReadIn, opcode,
};
use super::abi::{InHeader, SEEK_DATA, SEEK_HOLE, StatfsOut};
use super::damaged_dirs::DamagedDirs;
use super::device::Device;
use super::handshake::Features;
use super::listing_ends::ListingEnds;
use super::open_files::OpenFiles;
use super::parents::Parents;
use super::read_predictor::ReadPredictor;
use super::room::{PAGE_LEN, Room};
use super::stores::{RandomRead, Stores};
use super::trace::TraceWriter;
use super::{FuseOptions, OwnerMap};
use packfs_core::{Error, ErrorKind, FileType};
use packfs_format::{Inode, InodeId, Volume};
use packfs_read::ReadEngine;
use rustix::io::Errno;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use zerocopy::{FromBytes, IntoBytes};

/// Time that the kernel may cache answers, in seconds: longer than any machine runs.
pub(crate) const FOR_GOOD: u64 = u32::MAX as u64;
/// First node id of an inode other than the root.
const NODE_MIN: u64 = 2;
/// Longest read that is answered; the kernel requests at most 1 MiB unless root raises the limit.
const READ_LEN_MAX: usize = 16 << 20;

/// Longest answer whose buffer is kept: the longest read, and its alignment.
const KEPT_LEN_MAX: usize = (1 << 20) + PAGE_LEN;

pub(crate) enum Answer {
    /// No answer: the kernel does not wait.
    None,
    Body,
    Contents(Range<usize>),
}

pub(crate) enum FollowUp {
    Store(RandomRead),
    Prepare(InodeId),
}

#[derive(Default)]
pub(crate) struct AnswerBuffers {
    pub(crate) body: Vec<u8>,
    pub(crate) after: Option<FollowUp>,
}

impl AnswerBuffers {
    pub(crate) fn tidy(&mut self) {
        tidy(&mut self.body);
    }
}

pub(crate) fn tidy(buffer: &mut Vec<u8>) {
    if buffer.capacity() > KEPT_LEN_MAX {
        *buffer = Vec::new();
    }
}

/// Shared by all serving threads.
pub(crate) struct Served {
    pub(crate) engine: Arc<ReadEngine>,
    root: InodeId,
    owners: Option<OwnerMap>,
    features: Features,
    files: OpenFiles,
    pub(crate) parents: Parents,
    pub(crate) ends: ListingEnds,
    pub(crate) stores: Stores,
    read_predictor: ReadPredictor,
    /// Threads that are not waiting for a request.
    busy: AtomicUsize,
    pub(crate) trace: Option<TraceWriter>,
    pub(crate) damage: DamagedDirs,
}

impl Served {
    pub(crate) fn new(
        engine: Arc<ReadEngine>,
        options: &FuseOptions,
        features: Features,
        trace: Option<TraceWriter>,
    ) -> Self {
        Served {
            files: OpenFiles::new(Arc::clone(&engine)),
            parents: Parents::new(options.root),
            ends: ListingEnds::new(),
            stores: Stores::new(options.thread_count()),
            read_predictor: ReadPredictor::default(),
            busy: AtomicUsize::new(0),
            engine,
            root: options.root,
            owners: options.owners.clone(),
            features,
            trace,
            damage: DamagedDirs::default(),
        }
    }

    pub(crate) fn volume(&self) -> &dyn Volume {
        self.engine.volume()
    }

    fn inode_id(&self, node: u64) -> Result<InodeId, Errno> {
        match node {
            ROOT_ID => Ok(self.root),
            _ => node.checked_sub(NODE_MIN).map(InodeId).ok_or(Errno::STALE),
        }
    }

    pub(crate) fn node(&self, id: InodeId) -> Result<u64, Errno> {
        if id == self.root { Ok(ROOT_ID) } else { id.0.checked_add(NODE_MIN).ok_or(Errno::IO) }
    }

    pub(crate) fn answer(
        &self,
        header: &InHeader,
        asked: &[u8],
        buffers: &mut AnswerBuffers,
        room: &mut Room<'_>,
    ) -> Result<Answer, Errno> {
        let id = || self.inode_id(header.nodeid);
        if let (Some(trace), true) = (&self.trace, opcode::USES.contains(&header.opcode)) {
            trace.used(id()?);
        }
        buffers.body.clear();
        buffers.after = None;
        let body = &mut buffers.body;
        match header.opcode {
            opcode::LOOKUP => self.lookup(id()?, name(asked)?, buffers)?,
            opcode::GETATTR => self.attributes(id()?, body)?,
            opcode::READLINK => body.extend(self.volume().read_link(id()?).map_err(errno)?),
            opcode::READ => return self.read(header.nodeid, asked, room, buffers).map(Answer::Contents),
            opcode::READDIR => self.read_directory(id()?, asked, false, body)?,
            opcode::READDIRPLUS => self.read_directory(id()?, asked, true, body)?,
            opcode::GETXATTR => self.xattr(id()?, asked, body)?,
            opcode::LISTXATTR => self.xattr_names(id()?, asked, body)?,
            opcode::LSEEK => self.seek(id()?, asked, body)?,
            opcode::STATFS => self.statistics(body),
            opcode::OPEN if !self.features.no_open => opened(FOPEN_KEEP_CACHE, body),
            opcode::OPENDIR if !self.features.no_opendir => {
                opened(FOPEN_KEEP_CACHE | FOPEN_CACHE_DIR, body);
            }
            opcode::RELEASE | opcode::RELEASEDIR | opcode::DESTROY => {}
            opcode::FORGET | opcode::BATCH_FORGET => return Ok(Answer::None),
            other if opcode::CHANGES.contains(&other) => return Err(Errno::ROFS),
            // The kernel stops sending these: opening, flushing, access, interrupts, locks.
            _ => return Err(Errno::NOSYS),
        }
        Ok(Answer::Body)
    }

    pub(crate) fn afterwards(&self, device: &Device, after: FollowUp) {
        match after {
            FollowUp::Store(jump) => self.stores.store_around(device, &jump),
            FollowUp::Prepare(id) => self.prepare(id),
        }
    }

    pub(crate) fn prepare(&self, id: InodeId) {
        // While other threads are busy, only requested blocks are decoded.
        if self.busy.load(Ordering::Relaxed) <= 1
            && let Ok(file) = self.files.get(id)
        {
            file.prepare();
        }
    }

    /// Busy until the guard is dropped.
    pub(crate) fn busy(&self) -> Busy<'_> {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy(&self.busy)
    }

    fn lookup(&self, dir: InodeId, name: &[u8], buffers: &mut AnswerBuffers) -> Result<(), Errno> {
        let found = match name {
            // Requested by NFS exports of the mount.
            b"." => Some(dir),
            b".." => Some(self.parents.of(dir, self.volume()).map_err(errno)?.ok_or(Errno::STALE)?),
            _ => {
                let found = self.volume().lookup(dir, name).map_err(errno)?;
                if let (Some(trace), Some(id)) = (&self.trace, found) {
                    trace.found(dir, name, id);
                }
                found
            }
        };
        let entry = match found {
            Some(id) => self.entry(dir, id)?,
            // Node 0: no such name, cached forever.
            None => EntryOut { entry_valid: FOR_GOOD, ..EntryOut::default() },
        };
        let is_file = FileType::from_mode_bits(entry.attr.mode) == Some(FileType::File);
        if let Some(id) = found.filter(|_| is_file && entry.attr.size > 0)
            && self.read_predictor.looked_up(entry.nodeid)
        {
            buffers.after = Some(FollowUp::Prepare(id));
        }
        buffers.body.extend_from_slice(entry.as_bytes());
        Ok(())
    }

    pub(crate) fn entry(&self, dir: InodeId, id: InodeId) -> Result<EntryOut, Errno> {
        let node = self.node(id)?;
        let inode = self.volume().inode(id).map_err(errno)?;
        self.parents.learn(dir, id, &inode);
        Ok(EntryOut {
            nodeid: node,
            entry_valid: FOR_GOOD,
            attr_valid: FOR_GOOD,
            attr: self.attr(node, id, &inode)?,
            ..EntryOut::default()
        })
    }

    fn attributes(&self, id: InodeId, body: &mut Vec<u8>) -> Result<(), Errno> {
        let inode = self.volume().inode(id).map_err(errno)?;
        let attr = self.attr(self.node(id)?, id, &inode)?;
        body.extend_from_slice(AttrOut { attr_valid: FOR_GOOD, attr, ..AttrOut::default() }.as_bytes());
        Ok(())
    }

    pub(crate) fn owner(&self, inode: &Inode) -> packfs_core::Owner {
        self.owners.as_ref().map_or(inode.meta.owner, |owners| owners(inode.meta.owner))
    }

    fn read(
        &self,
        node: u64,
        asked: &[u8],
        room: &mut Room<'_>,
        buffers: &mut AnswerBuffers,
    ) -> Result<Range<usize>, Errno> {
        let (asked, _) = ReadIn::read_from_prefix(asked).map_err(|_| Errno::INVAL)?;
        let file = self.files.get(self.inode_id(node)?).map_err(errno)?;
        let len = file.len().saturating_sub(asked.offset).min(u64::from(asked.size));
        let (range, part) = room.take((len as usize).min(READ_LEN_MAX));
        let len = file.read_at(asked.offset, part).map_err(errno)?;
        if asked.offset == 0 {
            self.read_predictor.read(node);
        } else if self.stores.are_for(&file) {
            buffers.after = Some(FollowUp::Store(RandomRead { file, node, offset: asked.offset }));
        }
        Ok(range.start..range.start + len)
    }

    /// Errors: `NXIO` beyond the end, as for `lseek(2)`.
    fn seek(&self, id: InodeId, asked: &[u8], body: &mut Vec<u8>) -> Result<(), Errno> {
        let (asked, _) = LseekIn::read_from_prefix(asked).map_err(|_| Errno::INVAL)?;
        let file = self.files.get(id).map_err(errno)?;
        let len = file.len();
        if asked.offset >= len {
            return Err(Errno::NXIO);
        }
        let mut at = asked.offset;
        loop {
            let run = file.next_data(at).map_err(errno)?;
            at = match (asked.whence, run) {
                (SEEK_DATA, Some(run)) => run.start.max(asked.offset),
                (SEEK_DATA, None) => return Err(Errno::NXIO),
                // Runs are reported in parts: a hole starts only where the next one does not
                // follow.
                (SEEK_HOLE, Some(run)) if run.start <= at && run.end > at && run.end < len => {
                    at = run.end;
                    continue;
                }
                (SEEK_HOLE, Some(run)) if run.start <= at => len,
                (SEEK_HOLE, _) => at,
                _ => return Err(Errno::INVAL),
            };
            body.extend_from_slice(at.as_bytes());
            return Ok(());
        }
    }

    fn statistics(&self, body: &mut Vec<u8>) {
        const BLOCK_LEN: u32 = 4096;
        let blocks = self.engine.image().len().div_ceil(u64::from(BLOCK_LEN));
        let statistics = StatfsOut {
            blocks,
            files: self.volume().inode_count_hint(),
            bsize: BLOCK_LEN,
            frsize: BLOCK_LEN,
            namelen: 255,
            ..StatfsOut::default()
        };
        body.extend_from_slice(statistics.as_bytes());
    }
}

pub(crate) struct Busy<'a>(&'a AtomicUsize);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) fn name(asked: &[u8]) -> Result<&[u8], Errno> {
    asked.split(|&byte| byte == 0).next().filter(|name| !name.is_empty()).ok_or(Errno::INVAL)
}

fn opened(open_flags: u32, body: &mut Vec<u8>) {
    body.extend_from_slice(OpenOut { open_flags, ..OpenOut::default() }.as_bytes());
}

/// Converts an error: damage becomes an input/output error, as for a disk.
pub(crate) fn errno(error: Error) -> Errno {
    match error.kind() {
        ErrorKind::Io => {
            let code = error.io_source().and_then(std::io::Error::raw_os_error);
            code.map_or(Errno::IO, Errno::from_raw_os_error)
        }
        _ => Errno::IO,
    }
}
