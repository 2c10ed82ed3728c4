//! Faults of an image and their messages: offset, value found, values allowed.

use crate::key::Key;
use packfs_format::{TRUNCATED, faults};
use std::fmt;

/// Key of an item, in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ItemPlace {
    pub(crate) tree: u64,
    pub(crate) key: Key,
}

impl fmt::Display for ItemPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "item {} of tree {}", self.key, self.tree as i64)
    }
}

pub(crate) const READ_WITHOUT: &str = "--ignore-log (or --no-journal) reads the last commit, without the log";

faults! {
    pub(crate) enum Corruption in "btrfs image" {}

    Short { len: u64, min: u64 } = "{len} bytes, at least {min} needed" => hint TRUNCATED;
    Magic { at: u64 } = "superblock at {at:#x}: other magic bytes than _BHRfS_M";
    SuperSum { at: u64, kind: &'static str } = "superblock at {at:#x}: wrong checksum ({kind})";
    SuperFigure { at: u64, figure: &'static str, found: u64, allowed: &'static str } =
        "superblock at {at:#x}: {figure} {found}, {allowed} allowed";
    SuperCopy { at: u64 } =
        "superblock at 0x10000: damaged; its copy at {at:#x} has no log, so that changes synced after the last \
         commit may be missing";
    Log { at: u64 } = "log of changes at {at:#x}";
    SystemArray { at: usize } = "superblock: system chunks: no chunk at byte {at}";
    Chunk { at: u64, figure: &'static str, found: u64, allowed: &'static str } =
        "chunk at {at:#x}: {figure} {found}, {allowed} allowed";
    ChunkOverlap { at: u64, before: u64 } = "chunk at {at:#x}: overlaps the chunk at {before:#x}";
    Unmapped { at: u64 } = "logical address {at:#x}: in no chunk";
    Beyond { at: u64, device: u64, end: u64 } =
        "logical address {at:#x}: device {device} ends at {end:#x}" => hint TRUNCATED;
    NoDevice { at: u64, device: u64 } =
        "logical address {at:#x}: on device {device}, which the filesystem does not list";
    NodeSum { at: u64 } = "tree block at {at:#x}: wrong checksum in every copy";
    NodeFigure { at: u64, figure: &'static str, found: u64, wanted: u64 } =
        "tree block at {at:#x}: {figure} {found}, {wanted} expected";
    NodeOwner { at: u64, figure: &'static str } = "tree block at {at:#x}: {figure}";
    NodeKeys { at: u64, slot: usize } = "tree block at {at:#x}: key {slot} does not rise";
    NodeBounds { at: u64 } = "tree block at {at:#x}: keys outside the range of its parent";
    NodeItem { at: u64, slot: usize, start: u64, len: u64, end: u64 } =
        "tree block at {at:#x}: item {slot}: {len} bytes at {start}, end at {end} expected";
    NodePointer { at: u64, slot: usize, found: u64 } =
        "tree block at {at:#x}: pointer {slot} to {found:#x}, multiples of the sector size allowed";
    NoTree { id: u64 } = "no tree {}", id as i64;
    RootRange { id: u64, level: u8 } = "tree {}: level {level}, 0 to 7 allowed", id as i64;
    Size { place: ItemPlace, found: usize, min: usize } = "{place}: {found} bytes, at least {min} needed";
    Figure { place: ItemPlace, figure: &'static str, found: u64, allowed: &'static str } =
        "{place}: {figure} {found}, {allowed} allowed";
    NoInode { tree: u64, inode: u64 } = "inode {inode} of tree {tree}: no such item";
    Number { tree: u64, inode: u64 } =
        "inode {inode} of tree {tree}: number beyond those that are read (40 bits)";
    Mode { tree: u64, inode: u64, mode: u32 } = "inode {inode} of tree {tree}: mode {mode:#o} of no type";
    Wanted { tree: u64, inode: u64, wanted: &'static str } = "inode {inode} of tree {tree}: not a {wanted}";
    Name { place: ItemPlace, fault: &'static str } = "{place}: {fault}";
    Inside { tree: u64, child: u64 } =
        "subvolume {child}: an entry of tree {tree} leads to it from within itself";
    NoSum { place: ItemPlace, at: u64 } =
        "{place}: data at {at:#x} has no checksum, but the inode does not say so";
    NotDumped { place: ItemPlace } = "{place}: the dump of metadata (btrfs-image) does not hold these data";
    DataSum { at: u64, copies: usize } = "data at {at:#x}: wrong checksum (copies tried: {copies})";
    SumPlace { at: u64 } = "checksums of data at {at:#x}: item overlaps the one before";
    Overlap { place: ItemPlace } = "{place}: extent begins before the end of the one before";
}
