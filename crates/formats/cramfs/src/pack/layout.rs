//! Layout of everything except data: superblock, listings, targets, and the block pointers before
//! each file's blocks.

use super::PADDING;
use super::bounds::{CAPABILITIES, too_large};
use super::dirs::Listings;
use super::in_place::InPlace;
use super::targets::{Targets, pointers};
use crate::disk::*;
use crate::options::Options;
use packfs_core::{DeviceNumber, NodeId, NodeKind, Result, Tree};
use packfs_format::{BlockForm, Blocks, FilePlace, Placed, Plan, Section, units::*};
use std::collections::{HashMap, HashSet};

/// Start of file data, after listings and targets.
pub(super) fn data_start(options: &Options, tree: &Tree) -> Result<u64> {
    let listings = Listings::place(tree, options.super_block_at + SUPER_LEN)?;
    let targets = Targets::new(options, tree, listings.end)?;
    Ok(InPlace::new(options, tree, listings.end + targets.bytes.len() as u64)?.end())
}

/// Creates all sections; see the module.
pub(super) fn sections(
    options: &Options,
    tree: &Tree,
    plan: &Plan<Blocks>,
    placed: &Placed<Blocks>,
) -> Result<Vec<Section>> {
    let start = options.super_block_at + SUPER_LEN;
    let listings = Listings::place(tree, start)?;
    let targets = Targets::new(options, tree, listings.end)?;
    let in_place_at = listings.end + targets.bytes.len() as u64;
    let in_place = InPlace::new(options, tree, in_place_at)?;
    debug_assert_eq!(plan.data_start, in_place.end());
    let (in_place_of, in_place_bytes) = in_place.written(options.order, placed)?;
    let writer = InodeWriter { tree, placed, listings: &listings, targets: &targets, in_place: &in_place_of };

    let mut sections = Vec::new();
    let pages = u32::try_from(in_place.page_count()).map_err(|_| too_large())?;
    let mut counts = Counts {
        blocks: targets.block_count.plus(pages),
        has_stored: targets.has_stored || pages > 0,
        has_holes: false,
    };
    let mut seen = HashSet::new();
    for place in placed.files.iter().filter(|place| place.count > 0) {
        if seen.insert(place.start) {
            let blocks = placed.blocks_of(place);
            let bytes = pointers(options.order, place.start, blocks)?;
            sections.push(Section { owner: "block pointers", offset: place.start, bytes });
            counts.add(placed, place);
        }
    }
    let bytes = listings.write(options.order, tree, |id| writer.inode(id))?;
    sections.push(Section { owner: "directories", offset: start, bytes });
    sections.push(Section { owner: "link targets", offset: listings.end, bytes: targets.bytes.clone() });
    sections.push(Section { owner: "block pointers", offset: in_place_at, bytes: in_place_bytes });
    let bytes =
        super_block(options, tree, placed, &counts, writer.inode(NodeId::ROOT)?)?.to_bytes(options.order);
    sections.push(Section { owner: "superblock", offset: options.super_block_at, bytes });
    let boot_room = vec![0; options.super_block_at as usize];
    sections.push(Section { owner: "boot room", offset: 0, bytes: boot_room });
    sections.retain(|section| !section.bytes.is_empty());
    Ok(sections)
}

/// Block counts of the superblock.
struct Counts {
    blocks: u32,
    has_stored: bool,
    has_holes: bool,
}

impl Counts {
    fn add(&mut self, placed: &Placed<Blocks>, place: &FilePlace<Blocks>) {
        self.blocks = self.blocks.plus(place.count);
        for block in placed.blocks_of(place) {
            self.has_holes |= block.stored_len == 0;
            self.has_stored |= block.stored_len > 0 && !block.compressed;
        }
    }
}

/// Returns the superblock without its checksum.
fn super_block(
    options: &Options,
    tree: &Tree,
    placed: &Placed<Blocks>,
    counts: &Counts,
    root: CramfsInode,
) -> Result<CramfsSuper> {
    let size = placed.data_end.next_multiple_of(PADDING);
    let mut flags = CRAMFS_FLAG_FSID_VERSION_2 | CRAMFS_FLAG_SORTED_DIRS;
    if counts.has_holes {
        flags |= CRAMFS_FLAG_HOLES;
    }
    if counts.has_stored {
        flags |= CRAMFS_FLAG_EXT_BLOCK_POINTERS;
    }
    Ok(CramfsSuper {
        size: u32::try_from(size).map_err(|_| too_large())?,
        flags,
        future: 0,
        signature: *CRAMFS_SIGNATURE,
        crc: 0,
        edition: options.edition,
        blocks: counts.blocks,
        files: u32::try_from(tree.entry_count() + 1).map_err(|_| too_large())?,
        name: options.name,
        root,
    })
}

struct InodeWriter<'a> {
    tree: &'a Tree,
    placed: &'a Placed<Blocks>,
    listings: &'a Listings,
    targets: &'a Targets,
    /// Pointers to files for execution in place, by the start of their data.
    in_place: &'a HashMap<u64, u64>,
}

impl InodeWriter<'_> {
    /// Returns the inode of a node, without a name.
    fn inode(&self, id: NodeId) -> Result<CramfsInode> {
        let node = self.tree.node(id);
        let (offset, size) = match &node.kind {
            NodeKind::Directory => self.listings.of(id),
            NodeKind::File { len, .. } => match &self.placed.files[id.index()] {
                place if place.form == BlockForm::Flat => {
                    (self.in_place.get(&place.start).copied().unwrap_or(OFFSET_END), *len as u32)
                }
                place if place.count > 0 => (place.start, *len as u32),
                _ => (0, 0),
            },
            NodeKind::Symlink(target) => {
                (self.targets.places.get(&id).copied().unwrap_or(0), target.len() as u32)
            }
            NodeKind::BlockDevice(number) | NodeKind::CharDevice(number) => (0, device(*number)),
            NodeKind::Fifo | NodeKind::Socket => (0, 0),
        };
        if offset >= OFFSET_END {
            return Err(too_large().hint(format!("{:?} would lie beyond", self.tree.path(id))));
        }
        let owner = CAPABILITIES.held_owner(node.meta.owner);
        Ok(CramfsInode {
            mode: node.kind.file_type().mode_bits() as u16 | node.meta.mode & 0o7777,
            uid: owner.uid as u16,
            size,
            gid: owner.gid as u8,
            name_len: 0,
            offset: offset as u32,
        })
    }
}

/// Encodes a device number as kernels decode it.
fn device(number: DeviceNumber) -> u32 {
    let held = CAPABILITIES.held_device(number);
    held.major << 8 | held.minor
}
