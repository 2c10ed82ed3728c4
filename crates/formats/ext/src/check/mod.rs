//! Check of every structure: descriptors, directories, inodes and their blocks, link counts, and
//! bitmaps.
//!
//! Invariant: ends for every image, as each inode is visited once.

mod blocks;
mod groups;
mod hash_tree;

use crate::block_use::BlockUse;
use crate::corruption::Corruption;
use crate::dir::RawEntry;
use crate::inode::{ENCRYPTED, EXTENTS, INLINE, RawInode};
use crate::reader::Reader;
use crate::super_block::ROOT;
use crate::volume::ExtVolume;
use blocks::References;
use packfs_core::{Error, FileType, Name, Result, escaped};
use packfs_format::check::{Hierarchy, Report};
use packfs_format::{Check, Finding, InodeId, units::*};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;
use std::ops::ControlFlow;
use zerocopy::little_endian::U32;

/// Directories with this many links store a link count of 1.
const LINKS_MAX: u32 = 65_000;
/// Limit of findings about one directory.
const DAMAGE_MAX: usize = 1000;

struct Named {
    inode: u32,
    name: Vec<u8>,
    file_type: Option<FileType>,
}

struct Walk<'a, 'r> {
    volume: &'a ExtVolume,
    reader: &'a Reader,
    report: &'a mut Report<'r>,
    hierarchy: Hierarchy<u32, u32>,
    used: BlockUse,
    xattr_blocks: BTreeMap<u64, References>,
    /// Directories whose blocks overlap others and may be listed already: without a limit, an image
    /// could have any number of names.
    overlapping: HashSet<u32>,
    met: HashSet<u32>,
    /// Set if a structure could not be read; bitmaps are then not compared.
    is_damaged: bool,
}

impl Check for ExtVolume {
    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        let mut report = Report::new(crate::INFO.name, found);
        let reader = &self.reader;
        let mut walk = Walk {
            volume: self,
            reader,
            report: &mut report,
            hierarchy: Hierarchy::default(),
            used: BlockUse::new(reader),
            xattr_blocks: BTreeMap::new(),
            overlapping: HashSet::new(),
            met: HashSet::new(),
            is_damaged: false,
        };
        walk.super_block();
        walk.groups()?;
        let root = reader.dir(u64::from(ROOT))?;
        walk.hierarchy.meet_root(ROOT, u32::from(root.links()), ROOT);
        walk.met.insert(ROOT);
        walk.contents(&root, &"/")?;
        for index in 0.. {
            let Some(dir) = walk.hierarchy.dir(index).filter(|_| !walk.report.is_full()) else { break };
            walk.directory(index, dir)?;
        }
        if walk.report.is_full() {
            return Ok(());
        }
        walk.hierarchy.check_links(walk.report);
        walk.tables()
    }
}

impl Walk<'_, '_> {
    /// Turns an error of the reader into a finding.
    fn refused<T>(&mut self, place: impl Display, result: Result<T>) -> Result<Option<T>> {
        let found = self.report.refused(place, result)?;
        self.is_damaged |= found.is_none();
        Ok(found)
    }

    fn directory(&mut self, index: usize, dir: u32) -> Result<()> {
        let path = self.hierarchy.path(index);
        let Some(raw) = self.refused(&path, self.reader.dir(u64::from(dir)))? else { return Ok(()) };
        let parent = self.hierarchy.parent(index).unwrap_or(dir);
        if raw.has(ENCRYPTED) {
            self.report.note(&path, "encrypted: names and contents need a key, and were not checked");
            self.is_damaged = true;
            return Ok(());
        }
        if self.overlapping.contains(&dir) {
            self.is_damaged = true;
            return Ok(());
        }
        let mut subdirs = 0_u32;
        let mut names: HashSet<Vec<u8>> = HashSet::new();
        let mut dots = Vec::new();
        let mut entries = Vec::new();
        for error in self.entries(&raw, &mut dots, &mut entries) {
            self.refused(&path, Err::<(), _>(error))?;
        }
        self.dots(index, &raw, parent, &dots);
        self.hash_tree(&raw, &path);
        for entry in entries {
            if self.report.is_full() {
                return Ok(());
            }
            if let Err(fault) = Name::new(&entry.name) {
                self.report.error(self.hierarchy.entry_path(index, &entry.name), fault);
                continue;
            }
            subdirs = subdirs.plus(u32::from(self.entry(index, &entry)?));
            if !names.insert(entry.name) {
                self.report.error(&path, "two entries of one name");
            }
        }
        let (links, wanted) = (u32::from(raw.links()), subdirs.plus(2));
        let is_uncounted = links == 1 && wanted > LINKS_MAX;
        if links != wanted && !is_uncounted && !self.is_damaged && self.reader.patches.dirs.is_empty() {
            let fault = format_args!("link count {links}, but it has {wanted} names");
            self.report.error(&path, fault);
        }
        Ok(())
    }

    /// Collects the entries of a directory, with `.` and `..` separate. Returns its damage.
    fn entries(&self, raw: &RawInode, dots: &mut Vec<(u64, Named)>, found: &mut Vec<Named>) -> Vec<Error> {
        let mut damage = Vec::new();
        let patch = self.reader.patches.dir(raw.number);
        if !patch.is_some_and(|patch| patch.is_new) {
            let visit = &mut |entry: RawEntry<'_>| {
                let is_removed = patch.is_some_and(|patch| patch.removed.contains(entry.name));
                if entry.inode == 0 || is_removed {
                    return ControlFlow::Continue(());
                }
                let (inode, file_type) = (entry.inode, entry.file_type);
                let named = Named { inode, name: entry.name.to_vec(), file_type };
                match entry.name {
                    b"." | b".." => dots.push((entry.at, named)),
                    _ => found.push(named),
                }
                ControlFlow::Continue(())
            };
            let _ = self.reader.entries_and_damage(raw, 0, visit, &mut |error| {
                if damage.len() < DAMAGE_MAX {
                    damage.push(error);
                }
            });
        }
        for (name, inode) in patch.into_iter().flat_map(|patch| &patch.added) {
            found.push(Named { inode: *inode, name: name.clone(), file_type: None });
        }
        damage
    }

    /// Checks `.` and `..`.
    fn dots(&mut self, index: usize, raw: &RawInode, parent: u32, dots: &[(u64, Named)]) {
        let path = self.hierarchy.path(index);
        if self.reader.patches.dir(raw.number).is_some_and(|patch| patch.is_new) {
            return;
        }
        if raw.has(INLINE) {
            let [found, ..] = raw.fields.i_block.map(U32::get);
            if found != parent {
                self.report.error(&path, format_args!("its parent is inode {found}, {parent} wanted"));
            }
            return;
        }
        for (name, wanted) in [(&b"."[..], raw.number), (b"..", parent)] {
            let mut found = dots.iter().filter(|(_, named)| named.name == name);
            let shown = escaped(name);
            match (found.next(), found.next()) {
                (None, _) => self.report.error(&path, format_args!("no entry {shown}")),
                (_, Some(_)) => self.report.error(&path, format_args!("two entries {shown}")),
                (Some((_, named)), None) if named.inode != wanted => {
                    let fault = format_args!("{shown} leads to inode {}, {wanted} wanted", named.inode);
                    self.report.error(&path, fault);
                }
                (Some((at, _)), None) if name == b"." && *at != 0 => {
                    self.report.error(&path, "an entry . that is not the first");
                }
                _ => {}
            }
        }
    }

    /// Checks an entry, and its inode when it is met first. Returns true for a directory.
    fn entry(&mut self, index: usize, entry: &Named) -> Result<bool> {
        let path = self.hierarchy.entry_path(index, &entry.name);
        let found = self.reader.named_inode(u64::from(entry.inode));
        let Some(raw) = self.refused(&path, found)? else { return Ok(false) };
        let (file_type, number) = (raw.file_type(), raw.number);
        if entry.file_type.is_some() && entry.file_type != file_type {
            let word = |file_type: Option<FileType>| file_type.map_or("none", FileType::word);
            let (claimed, own) = (word(entry.file_type), word(file_type));
            self.report.error(&path, format_args!("the entry says {claimed}, the inode {own}"));
        }
        if self.hierarchy.meet_again(number, index, &entry.name, self.report).is_some() {
            return Ok(raw.is_dir());
        }
        let links = u32::from(raw.links());
        self.hierarchy.meet(number, links, raw.is_dir().then_some(number), index, &entry.name);
        self.met.insert(number);
        self.contents(&raw, &path)?;
        Ok(raw.is_dir())
    }

    /// Checks blocks, attributes, and link target.
    fn contents(&mut self, raw: &RawInode, path: &dyn Display) -> Result<()> {
        if raw.has_odd_time() {
            self.report.warn(path, "a time with more nanoseconds than a second has");
        }
        self.blocks(raw, path)?;
        if raw.has(ENCRYPTED) {
            return Ok(());
        }
        self.refused(path, self.reader.all_xattrs(raw))?;
        if self.reader.has_long_value(raw) {
            self.report.warn(path, "an extended attribute of more than 64 KiB, which Linux does not read");
        }
        if raw.file_type() == Some(FileType::Symlink) {
            if raw.has(EXTENTS) && raw.has_target(&self.reader.super_block) {
                self.report.warn(path, "a target in the inode, and the flag of extents, which e2fsck clears");
            }
            self.refused(path, self.volume.target(raw))?;
        }
        if raw.file_type() == Some(FileType::File) && raw.has(INLINE) {
            let read = packfs_format::Volume::extents(
                self.volume,
                InodeId(u64::from(raw.number)),
                0..u64::MAX,
                &mut |_| ControlFlow::Continue(()),
            );
            self.refused(path, read)?;
        }
        Ok(())
    }

    fn super_block(&mut self) {
        let super_block = &self.reader.super_block;
        if let Some(sum) = self.reader.sums.super_block(&super_block.raw) {
            self.report.error("superblock", Corruption::SuperSum { found: sum.found, wanted: sum.wanted });
        }
        let len = self.reader.image.len();
        let wanted = super_block.offset(super_block.block_count);
        if len < wanted {
            self.report.error("superblock", format_args!("{wanted} bytes, but the image has {len}"));
            self.is_damaged = true;
        }
        if super_block.raw.s_state.get() & crate::super_block::STATE_ERRORS != 0 {
            self.report.warn("superblock", "Linux found errors in the filesystem");
        }
    }
}
