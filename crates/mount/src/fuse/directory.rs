//! Directory listings, with all attributes of each entry, so that the kernel need not request them.

use super::abi::{Dirent, EntryOut, ReadIn};
use super::served::{Served, errno};
use packfs_core::{FileType, Result as PackResult};
use packfs_format::{DirCursor, DirEntry, InodeId};
use rustix::io::Errno;
use std::ops::ControlFlow;
use zerocopy::{FromBytes, IntoBytes};

/// Positions 0 and 1 are `.` and `..`; the volume's cursors follow.
const DOTS: u64 = 2;
/// Alignment of entries.
const ALIGNMENT: usize = 8;

struct Listing<'a> {
    body: &'a mut Vec<u8>,
    len_max: usize,
    plus: bool,
}

impl Listing<'_> {
    /// Breaks if the reply is full.
    fn push(&mut self, entry: &EntryOut, dirent: Dirent, name: &[u8]) -> ControlFlow<()> {
        let entry = if self.plus { entry.as_bytes() } else { &[] };
        let len = entry.len() + size_of::<Dirent>() + name.len();
        if self.body.len() + len.next_multiple_of(ALIGNMENT) > self.len_max {
            return ControlFlow::Break(());
        }
        for part in [entry, dirent.as_bytes(), name] {
            self.body.extend_from_slice(part);
        }
        self.body.resize(self.body.len().next_multiple_of(ALIGNMENT), 0);
        ControlFlow::Continue(())
    }
}

impl Served {
    pub(crate) fn read_directory(
        &self,
        dir: InodeId,
        asked: &[u8],
        plus: bool,
        body: &mut Vec<u8>,
    ) -> Result<(), Errno> {
        let (asked, _) = ReadIn::read_from_prefix(asked).map_err(|_| Errno::INVAL)?;
        let mut listing = Listing { body, len_max: asked.size as usize, plus };
        for position in asked.offset..DOTS {
            if self.push_dot(dir, position, &mut listing)?.is_break() {
                return Ok(());
            }
        }
        let from = DirCursor(asked.offset.saturating_sub(DOTS));
        let (mut outcome, mut is_over) = (Ok(()), false);
        let walked = self.volume().read_dir(dir, from, &mut |entry, next| {
            let flow = self.push_entry(dir, &entry, next, &mut listing).unwrap_or_else(|error| {
                outcome = Err(error);
                ControlFlow::Break(())
            });
            is_over = flow.is_break();
            flow
        });
        let walked = if is_over { walked } else { self.end_of(dir, from, walked, listing.body.is_empty()) };
        match walked.map_err(errno).and(outcome) {
            // Entries beside the damage are returned; the request for the end gets the error.
            Err(fault) if !listing.body.is_empty() => {
                self.damage.note(dir, fault);
                Ok(())
            }
            Ok(()) if listing.body.is_empty() => self.damage.of(dir).map_or(Ok(()), Err),
            outcome => outcome,
        }
    }

    /// Reports damage in any part of a listing at its end.
    fn end_of(&self, dir: InodeId, from: DirCursor, part: PackResult<()>, is_empty: bool) -> PackResult<()> {
        let start = DirCursor::default();
        if from == start {
            return self.ends.of(dir, || part);
        }
        part?;
        if !is_empty {
            return Ok(());
        }
        let rest = &mut |_, _| ControlFlow::Continue(());
        self.ends.of(dir, || self.volume().read_dir(dir, start, rest))
    }

    fn push_dot(
        &self,
        dir: InodeId,
        position: u64,
        listing: &mut Listing<'_>,
    ) -> Result<ControlFlow<()>, Errno> {
        let name: &[u8] = if position == 0 { b"." } else { b".." };
        let parent = self.parents.known(dir).unwrap_or(dir);
        let id = if position == 0 { dir } else { parent };
        let inode = self.volume().inode(id).map_err(errno)?;
        let attr = self.attr(self.node(id)?, id, &inode)?;
        let dirent = dirent(attr.ino, position + 1, FileType::Directory, name);
        // Node 0: the kernel knows these two already.
        Ok(listing.push(&EntryOut { attr, ..EntryOut::default() }, dirent, name))
    }

    fn push_entry(
        &self,
        dir: InodeId,
        entry: &DirEntry,
        next: DirCursor,
        listing: &mut Listing<'_>,
    ) -> Result<ControlFlow<()>, Errno> {
        if let Some(trace) = &self.trace {
            trace.found(dir, &entry.name, entry.id);
        }
        // Positions are signed in the kernel.
        let next = next.0.checked_add(DOTS).filter(|&next| next <= i64::MAX as u64).ok_or(Errno::IO)?;
        // An entry with a damaged inode is listed; accessing it gives the error.
        let known = if listing.plus { self.entry(dir, entry.id).ok() } else { None };
        let ino = known.map_or_else(|| self.node(entry.id).unwrap_or(u64::MAX), |known| known.attr.ino);
        let file_type =
            known.and_then(|known| FileType::from_mode_bits(known.attr.mode)).unwrap_or(entry.file_type);
        let dirent = dirent(ino, next, file_type, &entry.name);
        Ok(listing.push(&known.unwrap_or_default(), dirent, &entry.name))
    }
}

fn dirent(ino: u64, off: u64, file_type: FileType, name: &[u8]) -> Dirent {
    // File types of entries are those of modes, without the permissions.
    Dirent { ino, off, namelen: name.len() as u32, kind: file_type.mode_bits() >> 12 }
}
