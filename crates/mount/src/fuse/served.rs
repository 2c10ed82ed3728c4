//! What each request means: the answers of a read-only file system.
//!
//! Node ids are the image's inode ids, moved out of the way of the root's, so nothing has to be
//! remembered of what the kernel knows: `forget` means nothing, and a file handle of an NFS client
//! stays good after a restart.

use super::abi::{
    AttrOut, EntryOut, FOPEN_CACHE_DIR, FOPEN_KEEP_CACHE, LseekIn, OpenOut, ROOT_ID, ReadIn, opcode,
};
use super::abi::{InHeader, SEEK_DATA, SEEK_HOLE, StatfsOut};
use super::device::Device;
use super::foresight::Foresight;
use super::handshake::Features;
use super::open_files::OpenFiles;
use super::parents::Parents;
use super::stores::{Jump, Stores};
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

/// How long the kernel may keep what it was told, in seconds: longer than any machine runs.
pub(crate) const FOR_GOOD: u64 = u32::MAX as u64;
/// First node id of an inode that is not the root.
const NODE_MIN: u64 = 2;
/// Longest read that is answered; the kernel asks for 1 MiB unless root allows it more.
const READ_LEN_MAX: usize = 16 << 20;

/// Contents begin at a multiple of this in our memory, as they do in the kernel's: it copies page
/// by page, and would have to look up two pages of ours for each of its own.
const PAGE_LEN: usize = 4096;
/// Longest answer whose memory is kept for the next: the longest read, and what aligning it takes.
const KEPT_LEN_MAX: usize = (1 << 20) + PAGE_LEN;

/// What goes back to the kernel.
pub(crate) enum Answer {
    /// Nothing: it does not wait.
    None,
    /// What was put together.
    Body,
    /// This part of the contents.
    Contents(Range<usize>),
}

/// What is worth doing once nobody waits for it.
pub(crate) enum After {
    /// The block that a reader has jumped into is given to the kernel.
    Store(Jump),
    /// The beginning of a file is decoded, which is about to be read.
    Prepare(InodeId),
}

/// Where a thread puts its answers together, used again and again.
#[derive(Default)]
pub(crate) struct Room {
    pub(crate) body: Vec<u8>,
    /// As long as the longest read so far, and a page.
    pub(crate) contents: Vec<u8>,
    /// What is to be done when the answer has gone out.
    pub(crate) after: Option<After>,
}

impl Room {
    /// Gives back what only an unusual answer needed.
    pub(crate) fn tidy(&mut self) {
        for part in [&mut self.body, &mut self.contents] {
            if part.capacity() > KEPT_LEN_MAX {
                *part = Vec::new();
            }
        }
    }
}

/// An image as a file system. Shared by all threads that serve it.
pub(crate) struct Served {
    pub(crate) engine: Arc<ReadEngine>,
    root: InodeId,
    owners: Option<OwnerMap>,
    features: Features,
    files: OpenFiles,
    pub(crate) parents: Parents,
    pub(crate) stores: Stores,
    foresight: Foresight,
    /// Threads that are not waiting for a request.
    busy: AtomicUsize,
    pub(crate) trace: Option<TraceWriter>,
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
            stores: Stores::new(options.thread_count()),
            foresight: Foresight::default(),
            busy: AtomicUsize::new(0),
            engine,
            root: options.root,
            owners: options.owners.clone(),
            features,
            trace,
        }
    }

    pub(crate) fn volume(&self) -> &dyn Volume {
        self.engine.volume()
    }

    /// The inode that a node id names.
    fn inode_id(&self, node: u64) -> Result<InodeId, Errno> {
        match node {
            ROOT_ID => Ok(self.root),
            _ => node.checked_sub(NODE_MIN).map(InodeId).ok_or(Errno::STALE),
        }
    }

    /// The node id of an inode.
    pub(crate) fn node(&self, id: InodeId) -> Result<u64, Errno> {
        if id == self.root { Ok(ROOT_ID) } else { id.0.checked_add(NODE_MIN).ok_or(Errno::IO) }
    }

    /// Puts the answer to a request into `room`.
    pub(crate) fn answer(&self, header: &InHeader, asked: &[u8], room: &mut Room) -> Result<Answer, Errno> {
        let id = || self.inode_id(header.nodeid);
        if let (Some(trace), true) = (&self.trace, opcode::USES.contains(&header.opcode)) {
            trace.used(id()?);
        }
        room.body.clear();
        room.after = None;
        let body = &mut room.body;
        match header.opcode {
            opcode::LOOKUP => self.lookup(id()?, name(asked)?, room)?,
            opcode::GETATTR => self.attributes(id()?, body)?,
            opcode::READLINK => body.extend(self.volume().read_link(id()?).map_err(errno)?),
            opcode::READ => return self.read(header.nodeid, asked, room).map(Answer::Contents),
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
            // The kernel asks no more, and does without: opening, flushing, access, interrupts,
            // locks.
            _ => return Err(Errno::NOSYS),
        }
        Ok(Answer::Body)
    }

    /// Does what is worth doing when an answer has gone out.
    pub(crate) fn afterwards(&self, device: &Device, after: After) {
        match after {
            After::Store(jump) => self.stores.store_around(device, &jump),
            // With others at work, it is soon enough to decode what is really wanted.
            After::Prepare(id) if self.busy.load(Ordering::Relaxed) <= 1 => {
                if let Ok(file) = self.files.get(id) {
                    file.prepare();
                }
            }
            After::Prepare(_) => {}
        }
    }

    /// Says that a thread has something to do, until what this returns is dropped.
    pub(crate) fn busy(&self) -> Busy<'_> {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy(&self.busy)
    }

    fn lookup(&self, dir: InodeId, name: &[u8], room: &mut Room) -> Result<(), Errno> {
        let found = match name {
            // Asked for by those who export the mount over NFS.
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
            // Node 0: there is nothing of this name, for good.
            None => EntryOut { entry_valid: FOR_GOOD, ..EntryOut::default() },
        };
        let is_file = FileType::from_mode_bits(entry.attr.mode) == Some(FileType::File);
        if let Some(id) = found.filter(|_| is_file && entry.attr.size > 0)
            && self.foresight.looked_up(entry.nodeid)
        {
            room.after = Some(After::Prepare(id));
        }
        room.body.extend_from_slice(entry.as_bytes());
        Ok(())
    }

    /// All that the kernel wants to know of an entry of `dir`.
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

    /// Who owns an inode, as far as anybody here is told.
    pub(crate) fn owner(&self, inode: &Inode) -> packfs_core::Owner {
        self.owners.as_ref().map_or(inode.meta.owner, |owners| owners(inode.meta.owner))
    }

    fn read(&self, node: u64, asked: &[u8], room: &mut Room) -> Result<Range<usize>, Errno> {
        let (asked, _) = ReadIn::read_from_prefix(asked).map_err(|_| Errno::INVAL)?;
        let file = self.files.get(self.inode_id(node)?).map_err(errno)?;
        let contents = &mut room.contents;
        let len = file.len().saturating_sub(asked.offset).min(u64::from(asked.size));
        let len = (len as usize).min(READ_LEN_MAX);
        // What is left from an earlier read is overwritten.
        if contents.len() < len + PAGE_LEN {
            contents.resize(len + PAGE_LEN, 0);
        }
        // Anywhere else is as right, if slower.
        let start =
            Some(contents.as_ptr().align_offset(PAGE_LEN)).filter(|&start| start < PAGE_LEN).unwrap_or(0);
        let part = contents.get_mut(start..start + len).unwrap_or_default();
        let len = file.read_at(asked.offset, part).map_err(errno)?;
        if asked.offset == 0 {
            self.foresight.read(node);
        } else if self.stores.are_for(&file) {
            room.after = Some(After::Store(Jump { file, node, offset: asked.offset }));
        }
        Ok(start..start + len)
    }

    /// Errors: `NXIO` beyond the end, as `lseek(2)` has it.
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
                // Runs are told in parts: a hole is where the next does not follow.
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

/// A thread at work.
pub(crate) struct Busy<'a>(&'a AtomicUsize);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A name as it is sent: with a zero behind it.
pub(crate) fn name(asked: &[u8]) -> Result<&[u8], Errno> {
    asked.split(|&byte| byte == 0).next().filter(|name| !name.is_empty()).ok_or(Errno::INVAL)
}

fn opened(open_flags: u32, body: &mut Vec<u8>) {
    body.extend_from_slice(OpenOut { open_flags, ..OpenOut::default() }.as_bytes());
}

/// What a program is told of an error: damage is an input/output error, as on a disk.
pub(crate) fn errno(error: Error) -> Errno {
    match error.kind() {
        ErrorKind::Io => {
            let code = error.io_source().and_then(std::io::Error::raw_os_error);
            code.map_or(Errno::IO, Errno::from_raw_os_error)
        }
        _ => Errno::IO,
    }
}
