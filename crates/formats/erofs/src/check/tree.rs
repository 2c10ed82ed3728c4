//! Checks of directories and inodes: walks all of them, each inode once.

use crate::corruption::Corruption;
use crate::data::{ClusterMap, RunFrom};
use crate::dir::{RawEntry, entry_type};
use crate::disk::*;
use crate::raw::{Layout, RawInode};
use crate::reader::Reader;
use crate::space_map::Claims;
use packfs_codec::BlockRef;
use packfs_core::{ErrorKind, FileType, Name, Result, escaped};
use packfs_format::check::{EntryPath, Hierarchy, Report, Tally};
use packfs_format::{Budget, units::*};
use std::ops::ControlFlow;

#[derive(Default)]
pub(super) struct Seen {
    pub(super) claims: Claims,
    pub(super) features: u32,
    pub(super) algorithms: u16,
    /// Number of inodes, including special ones.
    pub(super) inode_count: u64,
    /// True if the whole tree was walked, so that the rest is unused.
    pub(super) whole: bool,
}

struct Walk<'a, 'r> {
    reader: &'a Reader,
    report: &'a mut Report<'r>,
    hierarchy: Hierarchy<u64, RawInode>,
    seen: Seen,
    inodes: Budget,
    listings: Budget,
    not_given: Tally,
    long_clusters: Tally,
    rotated: Tally,
    missed: Tally,
    filters: Tally,
}

pub(super) fn check(reader: &Reader, report: &mut Report<'_>) -> Result<Seen> {
    let claims = reader.fixed_claims();
    let mut walk = Walk {
        reader,
        report,
        hierarchy: Hierarchy::default(),
        seen: Seen { claims, whole: true, ..Seen::default() },
        inodes: reader.inode_budget(),
        listings: reader.metadata_budget(),
        not_given: Tally::default(),
        long_clusters: Tally::default(),
        rotated: Tally::default(),
        missed: Tally::default(),
        filters: Tally::default(),
    };
    walk.specials()?;
    walk.root()?;
    for index in 0.. {
        let Some(raw) = walk.hierarchy.dir(index).filter(|_| !walk.report.is_full()) else { break };
        walk.directory(index, raw)?;
    }
    walk.finish();
    Ok(walk.seen)
}

impl Walk<'_, '_> {
    fn specials(&mut self) -> Result<()> {
        let reader = self.reader;
        for (word, raw) in
            [("packed inode", reader.packed.as_ref()), ("metabox", reader.metabox.as_ref().map(|m| &m.inode))]
        {
            if let Some(raw) = raw {
                self.contents(&word, raw)?;
                self.seen.inode_count = self.seen.inode_count.plus(1);
            }
        }
        if reader.metabox.is_some() {
            self.seen.features |= EROFS_FEATURE_INCOMPAT_METABOX;
        }
        Ok(())
    }

    fn root(&mut self) -> Result<()> {
        let read = self.reader.raw_inode(self.reader.geometry.root_nid);
        let Some(raw) = self.refused("/", read)? else { return Ok(()) };
        if raw.file_type != FileType::Directory {
            self.seen.whole = false;
            self.report.error("/", format_args!("the root is a {}", raw.file_type.word()));
            return Ok(());
        }
        self.inode(&self.hierarchy.path(0), &raw)?;
        self.hierarchy.meet_root(raw.nid, raw.nlink, raw);
        Ok(())
    }

    /// Reports an error of the reader, and records that the walk is incomplete.
    fn refused<T>(&mut self, place: impl std::fmt::Display, result: Result<T>) -> Result<Option<T>> {
        let value = self.report.refused(place, result)?;
        self.seen.whole &= value.is_some();
        Ok(value)
    }

    fn directory(&mut self, index: usize, raw: RawInode) -> Result<()> {
        let parent_nid = self.hierarchy.parent(index).map_or(raw.nid, |parent| parent.nid);
        let room = self.listings.spend(raw.size, || Corruption::Overlap { place: raw.place });
        if self.dir_refused(index, room)?.is_none() {
            return Ok(());
        }
        let mut before: Vec<u8> = Vec::new();
        let (mut subdirs, mut dots) = (0_u32, [false; 2]);
        for number in 0..self.reader.dir_block_count(&raw) {
            let read = self.reader.dir_block(&raw, number);
            let Some(block) = self.dir_refused(index, read)? else { continue };
            for slot in 0..block.count() {
                let Some(entry) = self.dir_refused(index, block.entry(slot))? else { break };
                if !before.is_empty() && entry.name <= &*before {
                    self.hierarchy.order_fault(index, &before, entry.name, self.report);
                }
                before.clear();
                before.extend_from_slice(entry.name);
                match entry.name {
                    b"." => self.dot(index, &mut dots[0], &entry, raw.nid),
                    b".." => self.dot(index, &mut dots[1], &entry, parent_nid),
                    _ if self.entry(index, &entry)? => subdirs = subdirs.plus(1),
                    _ => {}
                }
                if self.report.is_full() {
                    return Ok(());
                }
            }
        }
        self.dir_ends(index, &raw, subdirs, dots);
        Ok(())
    }

    fn dir_refused<T>(&mut self, index: usize, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) => {
                let path = self.hierarchy.path(index);
                self.refused(path, Err(error))
            }
        }
    }

    fn dot(&mut self, dir: usize, met: &mut bool, entry: &RawEntry<'_>, wanted: u64) {
        *met = true;
        if !matches!(entry.file_type, EROFS_FT_UNKNOWN | EROFS_FT_DIR) {
            let (path, name) = (self.hierarchy.path(dir), escaped(entry.name));
            self.report.error(path, format_args!("\"{name}\" has a type that is no directory's"));
        }
        if entry.nid != wanted {
            let path = self.hierarchy.path(dir);
            let name = escaped(entry.name);
            let nid = entry.nid;
            self.report.error(path, format_args!("\"{name}\" leads to node {nid}, {wanted} expected"));
        }
    }

    fn dir_ends(&mut self, index: usize, raw: &RawInode, subdirs: u32, dots: [bool; 2]) {
        let path = self.hierarchy.path(index);
        if raw.dot_omitted {
            self.seen.features |= EROFS_FEATURE_INCOMPAT_48BIT;
        }
        if dots[0] == raw.dot_omitted {
            let fault = if raw.dot_omitted {
                "an entry \".\", although a flag says that it has none"
            } else {
                "no entry \".\""
            };
            self.report.error(&path, fault);
        }
        if !dots[1] {
            self.report.error(&path, "no entry \"..\"");
        }
        // A compact inode with more links than fit stores 1.
        let wanted = subdirs.plus(2);
        if self.seen.whole && raw.nlink != wanted && raw.nlink != 1 {
            let nlink = raw.nlink;
            let fault = format_args!("link count {nlink}, but it has {subdirs} subdirectories");
            if nlink == 0 || nlink > wanted {
                // A subdirectory was lost, or the count is wrong.
                self.report.error(path, fault);
            } else {
                self.report.warn(path, fault);
            }
        }
    }

    /// Checks an entry, and its inode when it is met first. Returns true for a directory.
    fn entry(&mut self, dir: usize, entry: &RawEntry<'_>) -> Result<bool> {
        let path = self.hierarchy.entry_path(dir, entry.name);
        if let Err(fault) = Name::new(entry.name) {
            self.report.error(&path, format_args!("entry \"{}\": {fault}", escaped(entry.name)));
            return Ok(false);
        }
        if let Some(is_dir) = self.hierarchy.meet_again(entry.nid, dir, entry.name, self.report) {
            if let Ok(raw) = self.reader.raw_inode(entry.nid) {
                self.claimed_type(&path, entry, raw.file_type);
            }
            return Ok(is_dir);
        }
        let read = self.reader.raw_inode(entry.nid);
        let place = crate::corruption::Place::at("inode area", 0);
        let counted = self.inodes.spend(1, || Corruption::Overlap { place });
        let Some(raw) = self.refused(&path, counted.and(read))? else { return Ok(false) };
        self.claimed_type(&path, entry, raw.file_type);
        self.inode(&path, &raw)?;
        let is_dir = raw.file_type == FileType::Directory;
        self.hierarchy.meet(raw.nid, raw.nlink, is_dir.then_some(raw), dir, entry.name);
        Ok(is_dir)
    }

    /// Every name of an inode must have the right type, not only the first.
    fn claimed_type(&mut self, path: &EntryPath<'_>, entry: &RawEntry<'_>, truth: FileType) {
        let claimed = entry_type(entry.file_type);
        if claimed != Some(truth) {
            let claim =
                claimed.map_or_else(|| format!("type {}", entry.file_type), |claim| claim.word().into());
            let truth = truth.word();
            self.report.error(path, format_args!("its entry says {claim}, its inode {truth}"));
        }
    }

    fn inode(&mut self, path: &EntryPath<'_>, raw: &RawInode) -> Result<()> {
        self.seen.inode_count = self.seen.inode_count.plus(1);
        if !raw.extended
            && raw.nlink == 1
            && raw.file_type != FileType::Directory
            && raw.start_block.is_some()
        {
            self.seen.features |=
                if raw.start_block > Some(u64::from(u32::MAX)) { EROFS_FEATURE_INCOMPAT_48BIT } else { 0 };
        }
        self.xattrs(path, raw)?;
        if raw.file_type == FileType::Symlink {
            let target = self.reader.link_target(packfs_format::InodeId(raw.nid));
            self.refused(path, target)?;
            if raw.size > 4095 {
                let len = raw.size;
                self.report.warn(path, format_args!("link target of {len} bytes, Linux has 4095 at most"));
            }
        }
        if matches!(raw.file_type, FileType::File | FileType::Directory | FileType::Symlink) {
            return self.contents(path, raw);
        }
        let claimed = self.reader.claim_inode(raw, &mut self.seen.claims);
        self.refused(path, claimed)?;
        Ok(())
    }

    fn xattrs(&mut self, path: &EntryPath<'_>, raw: &RawInode) -> Result<()> {
        let read = self.reader.xattrs_of(raw);
        let Some((_, figures)) = self.refused(path, read)? else { return Ok(()) };
        if figures.unknown > 0 {
            let count = figures.unknown;
            self.report.error(path, format_args!("{count} xattrs with an unknown prefix"));
        }
        let geometry = &self.reader.geometry;
        let filters = geometry.has_compat(EROFS_FEATURE_COMPAT_XATTR_FILTER);
        if filters && raw.xattr_len > 0 && figures.filter & figures.filter_needed != 0 {
            // Kernels report at once that such an attribute does not exist.
            self.filters.add(|| format!("\"{path}\""));
        }
        Ok(())
    }

    fn contents(&mut self, place: &impl std::fmt::Display, raw: &RawInode) -> Result<()> {
        let claimed = self.reader.claim_inode(raw, &mut self.seen.claims);
        if self.refused(place, claimed)?.is_none() {
            return Ok(());
        }
        self.layout_features(place, raw)?;
        let (mut algorithms, mut longest) = (0, None);
        let mut stored = StoredBlocks { bits: self.reader.geometry.block_bits, ..StoredBlocks::default() };
        let mut blocks = |block: &BlockRef| {
            algorithms |= 1_u16 << algorithm_number(block);
            if block.decoded_len > Z_EROFS_PCLUSTER_MAX_DSIZE {
                longest = longest.max(Some(block.decoded_len));
            }
        };
        let walked = self.reader.runs(raw, 0..raw.size, &mut |run| {
            match run.from {
                RunFrom::Block(block, _) => {
                    stored.add(block.offset, block.stored_len.into());
                    blocks(&block);
                }
                RunFrom::Stored(at) => stored.add(at, run.len),
                RunFrom::Hole | RunFrom::Packed(_) => {}
            }
            ControlFlow::Continue(())
        });
        // The packed part must be readable, too.
        let walked = walked.and_then(|()| {
            if raw.is_compressed() {
                self.reader.content(raw, 0..raw.size, &mut |_| ControlFlow::Continue(()))
            } else {
                Ok(())
            }
        });
        self.seen.algorithms |= algorithms;
        if longest.is_some() {
            self.long_clusters.add(|| format!("\"{place}\""));
        }
        // Contents shared with other files may be omitted.
        if raw.is_compressed() && walked.is_ok() && u64::from(raw.i_u) > stored.count {
            let (claimed, found) = (raw.i_u, stored.count);
            self.report.note(place, format_args!("claims {claimed} stored blocks, has {found}"));
        }
        match walked {
            Err(error) if error.kind() == ErrorKind::Failed => self.not_given.add(|| format!("\"{place}\"")),
            walked => {
                self.refused(place, walked)?;
            }
        }
        Ok(())
    }

    fn layout_features(&mut self, place: &impl std::fmt::Display, raw: &RawInode) -> Result<()> {
        let features = &mut self.seen.features;
        if raw.layout == Layout::ChunkBased {
            *features |= EROFS_FEATURE_INCOMPAT_CHUNKED_FILE;
        }
        if !raw.is_compressed() || raw.size == 0 {
            return Ok(());
        }
        let map = self.reader.cluster_map(raw);
        let Some(map) = self.refused(place, map)? else { return Ok(()) };
        let features = &mut self.seen.features;
        match map {
            ClusterMap::Packed(_) => *features |= EROFS_FEATURE_INCOMPAT_FRAGMENTS,
            ClusterMap::Index(index) => {
                for (used, feature) in [
                    (index.big != [false; 2], EROFS_FEATURE_INCOMPAT_BIG_PCLUSTER),
                    (index.inline_len.is_some(), EROFS_FEATURE_INCOMPAT_ZTAILPACKING),
                    (index.packed_at.is_some(), EROFS_FEATURE_INCOMPAT_FRAGMENTS),
                ] {
                    *features |= if used { feature } else { 0 };
                }
                let is_rotated = index.interlaced && index.inline_len.is_some();
                let entries = self.reader.entry_facts(raw, &index)?;
                *features |= if entries.second { EROFS_FEATURE_INCOMPAT_DEVICE_TABLE } else { 0 };
                if let Some(missed) = entries.missed {
                    self.missed.add(|| format!("\"{place}\", logical cluster {missed}"));
                }
                if is_rotated && self.reader.has_plain_inline_cluster(raw, &index)? {
                    self.rotated.add(|| format!("\"{place}\""));
                }
            }
            ClusterMap::Encoded(head) => {
                *features |= EROFS_FEATURE_INCOMPAT_48BIT;
                *features |= if head.packed { EROFS_FEATURE_INCOMPAT_FRAGMENTS } else { 0 };
            }
        }
        Ok(())
    }

    fn finish(&mut self) {
        self.seen.whole &= !self.report.is_full();
        if self.seen.whole {
            self.hierarchy.check_links(self.report);
        }
        self.not_given.note(self.report, "devices", "data is on devices that are not given");
        let mut error = |tally: &Tally, fault| tally.error(self.report, "clusters", fault);
        error(&self.long_clusters, "clusters of more than 12 MiB, which kernels since 6.15 refuse");
        error(&self.rotated, "a plain cluster after the inode of an interlaced file, which kernels misread");
        error(&self.missed, "clusters that a distance in the index leads past, kernels may miss them");
        self.filters.error(self.report, "xattrs", "xattrs that the name filter hides from kernels");
    }
}

/// Counts the blocks of an inode's data from extents in file order.
#[derive(Default)]
struct StoredBlocks {
    bits: u32,
    last: Option<u64>,
    count: u64,
}

impl StoredBlocks {
    fn add(&mut self, offset: u64, len: u64) {
        if self.last.replace(offset) != Some(offset) {
            let end = end_of(offset, len).div_ceil(1 << self.bits);
            self.count = self.count.plus(end.minus(offset >> self.bits));
        }
    }
}

fn algorithm_number(block: &BlockRef) -> u8 {
    use packfs_codec::Algorithm;
    match block.algorithm {
        Some(Algorithm::MicroLzma) => Z_EROFS_COMPRESSION_LZMA,
        Some(Algorithm::Deflate) => Z_EROFS_COMPRESSION_DEFLATE,
        Some(Algorithm::Zstd) => Z_EROFS_COMPRESSION_ZSTD,
        _ => Z_EROFS_COMPRESSION_LZ4,
    }
}
