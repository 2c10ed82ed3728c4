//! Faults of an image and their messages: offset, value found, values allowed.

use crate::disk::Checksum;
use packfs_format::{FaultPlace, OnDisk, TRUNCATED, faults, structure};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

pub(crate) const READ_WITHOUT: &str =
    "--ignore-log (or --no-journal) reads the image as it is, without the changes in the log";
const REST: &str =
    "--ignore-checksum replays the records before it, as Linux does; --ignore-log replays none";

faults! {
    pub(crate) enum Corruption in "xfs image" {}

    Short { len: u64, min: u64 } = "{len} bytes, at least {min} needed" => hint TRUNCATED;
    Magic = "superblock: begins with other bytes than XFSB";
    InProgress = "superblock: marked as in progress: mkfs.xfs or a copy of it did not finish";
    Figure { what: &'static str, found: u64, min: u64, max: u64 } =
        "superblock: {what} {found}, {min} to {max} allowed";
    SuperChecksum { sum: Checksum } =
        "superblock: checksum {:#010x}, computed {:#010x}", sum.found, sum.computed;
    Checksum { place: FaultPlace, sum: Checksum } =
        "{place}: checksum {:#010x}, computed {:#010x}", sum.found, sum.computed;
    BlockMagic { place: FaultPlace, found: u32, wanted: &'static str } =
        "{place}: begins with {found:#x}, {wanted} allowed";
    BlockPlace { place: FaultPlace, found: u64, wanted: u64 } =
        "{place}: was written for sector {found:#x}, {wanted:#x} allowed";
    BlockUuid { place: FaultPlace } = "{place}: belongs to a filesystem with another UUID";
    BlockOwner { place: FaultPlace, found: u64, wanted: u64 } =
        "{place}: belongs to inode {found}, {wanted} allowed";
    Cut { place: FaultPlace, at: u64 } = "{place}: ends within the structure at byte {at} of it";
    Records { place: FaultPlace, found: u64, max: u64 } = "{place}: {found} records, 1 to {max} allowed";
    FreeList { place: FaultPlace, first: u64, found: u64, max: u64 } =
        "{place}: {found} blocks of the free list from {first} on, the list has room for {max}";
    Level { place: FaultPlace, found: u64, wanted: u64 } = "{place}: level {found}, {wanted} allowed";
    TreeBlock { place: FaultPlace } = "{place}: outside of its group, or a part of the tree twice";
    GroupNumber { place: FaultPlace, found: u64, wanted: u64 } = "{place}: group {found}, {wanted} allowed";
    InodeBehind { ino: u64, at: u64, len: u64 } =
        "inode {ino}: at {at:#x}, the image ends at {len:#x}" => hint TRUNCATED;
    InodePlace { ino: u64 } = "inode {ino}: outside of the filesystem";
    InodeMagic { ino: u64, found: u16 } = "inode {ino}: begins with {found:#06x}, 0x494e allowed";
    InodeVersion { ino: u64, found: u8, wanted: &'static str } =
        "inode {ino}: version {found}, {wanted} allowed";
    InodeChecksum { ino: u64, sum: Checksum } =
        "inode {ino}: checksum {:#010x}, computed {:#010x}", sum.found, sum.computed;
    InodeNumber { ino: u64, found: u64 } = "inode {ino}: claims to be inode {found}";
    InodeUuid { ino: u64 } = "inode {ino}: belongs to a filesystem with another UUID";
    InodeFree { ino: u64 } = "inode {ino}: not in use";
    InodeMode { ino: u64, found: u16 } = "inode {ino}: mode {found:#o} has no type";
    InodeSize { ino: u64, found: u64, max: u64 } = "inode {ino}: size {found}, up to {max} allowed";
    InodeBlocks { ino: u64, found: u64, max: u64 } = "inode {ino}: {found} blocks, up to {max} allowed";
    ForkFormat { ino: u64, fork: &'static str, found: u8 } =
        "inode {ino}: format {found} of the {fork} fork is not one of its type";
    ForkOffset { ino: u64, found: u64, max: u64 } =
        "inode {ino}: attribute fork at {found}, less than {max} allowed";
    ForkExtents { ino: u64, fork: &'static str, found: u64, max: u64 } =
        "inode {ino}: {found} extents in the {fork} fork, up to {max} allowed";
    ForkRoot { ino: u64, fork: &'static str, level: u16, records: u16 } =
        "inode {ino}: tree of the {fork} fork has {level} levels and {records} records in its root";
    ExtentPlace { ino: u64, offset: u64, start: u64, count: u64 } =
        "inode {ino}: extent at block {offset}: {count} blocks from {start:#x} are not in one group";
    ExtentOrder { ino: u64, offset: u64, before: u64 } =
        "inode {ino}: extent at block {offset}, {before} or later allowed";
    ExtentCount { ino: u64, found: u64, wanted: u64 } =
        "inode {ino}: {found} extents, its inode claims {wanted}";
    ExtentBehind { ino: u64, offset: u64, at: u64, len: u64 } =
        "inode {ino}: data of byte {offset} at {at:#x}, the image ends at {len:#x}" => hint TRUNCATED;
    Kind { ino: u64, wanted: &'static str } = "inode {ino}: not a {wanted}";
    ShortForm { ino: u64, what: &'static str, at: u64 } =
        "inode {ino}: {what} in the inode: byte {at}: the next one is outside of the fork";
    DirHashes { ino: u64, names: u64, entries: u64 } =
        "inode {ino}: its {names} names are not those of the {entries} entries of its hash table";
    HashOrder { place: FaultPlace, found: u32, before: u32 } =
        "{place}: hash {found:#x} after {before:#x}";
    DirMapped { ino: u64, max: u64 } = "inode {ino}: maps over {max} directory blocks, which is all it has";
    DirHole { ino: u64, offset: u64 } =
        "inode {ino}: directory block at {offset:#x} has a hole in it";
    DirBlocks { ino: u64, max: u64 } =
        "inode {ino}: over {max} damaged directory blocks; the rest is left out";
    DirTail { place: FaultPlace, found: u64, max: u64 } =
        "{place}: {found} entries of its hash table, up to {max} allowed";
    DirFree { place: FaultPlace, at: u64, found: u16 } =
        "{place}: free space at byte {at}: {found} bytes, multiples of 8 within the block allowed";
    DirEntry { place: FaultPlace, at: u64 } = "{place}: entry at byte {at} is longer than the block";
    DirTag { place: FaultPlace, at: u64, found: u16 } =
        "{place}: entry at byte {at} has the tag {found}";
    DirName { ino: u64, at: u64, fault: &'static str } =
        "inode {ino}: directory entry at {at:#x}: {fault}";
    DirTarget { ino: u64, at: u64, target: u64 } =
        "inode {ino}: directory entry at {at:#x}: inode {target} is outside of the filesystem";
    SymlinkLength { ino: u64, found: u64 } = "inode {ino}: link target of {found} bytes, 1 to 1024 allowed";
    SymlinkShort { ino: u64, found: u64, wanted: u64 } =
        "inode {ino}: link target: {found} of {wanted} bytes are stored";
    SymlinkNul { ino: u64 } = "inode {ino}: link target with a NUL byte";
    AttrEntry { place: FaultPlace, index: u64 } = "{place}: attribute {index}: outside of the block";
    AttrFlags { place: FaultPlace, index: u64, found: u8 } =
        "{place}: attribute {index}: flags {found:#04x} name several namespaces";
    ShortFlags { ino: u64, found: u8 } =
        "inode {ino}: an attribute with the flags {found:#04x}, which name several namespaces";
    AttrName { ino: u64 } = "inode {ino}: attribute with an empty name or a NUL byte in it";
    AttrLeaf { ino: u64, block: u64 } = "inode {ino}: attribute block {block} is not mapped or was met before";
    AttrDepth { ino: u64, max: u64 } = "inode {ino}: attribute tree of over {max} levels";
    AttrValue { ino: u64, found: u64, max: u64 } =
        "inode {ino}: attribute value of {found} bytes, up to {max} allowed";
    AttrPart { place: FaultPlace, offset: u64, len: u64 } =
        "{place}: holds {len} bytes of the value from byte {offset}";
    AttrTotal { ino: u64, max: u64 } = "inode {ino}: attributes of over {max} bytes";
    Acl { ino: u64, len: u64, count: u64 } = "inode {ino}: ACL of {len} bytes with {count} entries";
    Log { fault: &'static str } = "log: {fault}" => hint READ_WITHOUT;
    LogRecord { sector: u64, fault: &'static str } = "log record at sector {sector}: {fault}" => hint READ_WITHOUT;
    LogRest { sector: u64, fault: &'static str } =
        "log record at sector {sector}: {fault}; changes in it and after it are missing" => hint REST;
    LogElsewhere = "log: on another device, and may hold changes of the filesystem; --device FILE gives it"
        => hint READ_WITHOUT;
    LogBehind { end: u64, len: u64 } =
        "log: ends at {end:#x}, the image at {len:#x}, so changes may be missing" => hint READ_WITHOUT;
    LogItem { what: &'static str, number: u64, fault: &'static str } =
        "log: change of {what} {number}: {fault}" => hint READ_WITHOUT;
    LogItemType { found: u16 } = "log: change of the unknown type {found:#x}" => hint READ_WITHOUT;
}

impl Corruption {
    pub(crate) const fn log_record(sector: u64, fault: &'static str) -> Self {
        Corruption::LogRecord { sector, fault }
    }

    pub(crate) const fn log_item(what: &'static str, number: u64, fault: &'static str) -> Self {
        Corruption::LogItem { what, number, fault }
    }
}

/// Errors: a structure that ends after `bytes`.
pub(crate) fn read<T: OnDisk + FromBytes + KnownLayout + Immutable + Unaligned>(
    bytes: &[u8],
    at: usize,
    place: FaultPlace,
) -> Result<T, Corruption> {
    structure(bytes, at).ok_or(Corruption::Cut { place, at: at as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::BmdrBlock;

    #[test]
    fn structures_behind_the_end_are_faults() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        let place = FaultPlace::at("inode", 0x200);
        let read = |at| read::<BmdrBlock>(&bytes, at, place).map(|root| root.bb_numrecs.get());
        assert_eq!((read(4), read(5)), (Ok(0x708), Err(Corruption::Cut { place, at: 5 })));
    }
}
