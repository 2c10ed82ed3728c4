//! Raw structures, little-endian, as `include/uapi/linux/btrfs_tree.h` of Linux has them.

use crate::bytes::Fields;
use crate::checksum::{Checksum, SUM_ROOM};
use crate::corruption::Corruption;
use crate::key::Uuid;
use packfs_core::{Error, Image, Result};

/// Magic bytes of a superblock.
pub(crate) const MAGIC: [u8; 8] = *b"_BHRfS_M";
/// Their offset in an image.
pub(crate) const MAGIC_AT: u64 = SUPER_AT + 0x40;
/// Offset of the superblock.
pub(crate) const SUPER_AT: u64 = 64 << 10;
/// Bytes of a superblock.
pub(crate) const SUPER_LEN: usize = 4096;
/// Offsets of its copies.
pub(crate) const COPIES_AT: [u64; 2] = [64 << 20, 256 << 30];
/// Room for system chunks in a superblock, in bytes.
pub(crate) const SYSTEM_ARRAY_MAX: usize = 2048;
/// Levels of a tree, at most.
pub(crate) const LEVELS_MAX: u8 = 8;
/// Units of striped profiles, in bytes.
pub(crate) const STRIPE_LEN: u64 = 64 << 10;

/// Superblock flags: restored metadata without file data (`btrfs-image`), with one chunk for all
/// addresses in the first version.
const METADUMP: u64 = 1 << 33;
const METADUMP_V2: u64 = 1 << 34;
/// Superblock flag: a seed device.
const SEEDING: u64 = 1 << 32;
/// Superblock flags: a change of the checksum, the block groups, or the fsid was interrupted.
const CHANGING: u64 = 0x3f << 35;

/// Incompatible features by bit, by their names in `/sys/fs/btrfs/features`.
pub(crate) const INCOMPAT: [&str; 18] = [
    "mixed_backref",
    "default_subvol",
    "mixed_groups",
    "compress_lzo",
    "compress_zstd",
    "big_metadata",
    "extended_iref",
    "raid56",
    "skinny_metadata",
    "no_holes",
    "metadata_uuid",
    "raid1c34",
    "zoned",
    "extent_tree_v2",
    "raid_stripe_tree",
    "",
    "simple_quota",
    "remap_tree",
];
/// Features of `compat_ro` by bit. None matters to a reader.
pub(crate) const COMPAT_RO: [&str; 4] =
    ["free_space_tree", "free_space_tree_valid", "verity", "block_group_tree"];
/// Feature: zones that are written in order.
const ZONED: u64 = 1 << 12;
/// Offset of the magic bytes of the first superblock in the log of a zoned device.
const ZONED_MAGIC_AT: u64 = 0x40;
/// Feature: blocks carry `metadata_uuid`.
const METADATA_UUID: u64 = 1 << 10;
/// Features that are read: all but `extent_tree_v2`, `raid_stripe_tree`, `remap_tree`, and
/// those without a name.
const INCOMPAT_READ: u64 = 0x1_1fff;

/// Types of items.
pub(crate) mod kind {
    pub(crate) const INODE_ITEM: u8 = 1;
    pub(crate) const INODE_REF: u8 = 12;
    pub(crate) const INODE_EXTREF: u8 = 13;
    pub(crate) const XATTR_ITEM: u8 = 24;
    pub(crate) const DIR_LOG_INDEX: u8 = 72;
    pub(crate) const DIR_ITEM: u8 = 84;
    pub(crate) const DIR_INDEX: u8 = 96;
    pub(crate) const EXTENT_DATA: u8 = 108;
    pub(crate) const EXTENT_CSUM: u8 = 128;
    pub(crate) const ROOT_ITEM: u8 = 132;
    pub(crate) const ROOT_BACKREF: u8 = 144;
    pub(crate) const ROOT_REF: u8 = 156;
    pub(crate) const EXTENT_ITEM: u8 = 168;
    pub(crate) const METADATA_ITEM: u8 = 169;
    pub(crate) const DEV_ITEM: u8 = 216;
    pub(crate) const CHUNK_ITEM: u8 = 228;
}

/// Numbers of trees and objects.
pub(crate) mod tree {
    pub(crate) const ROOT: u64 = 1;
    pub(crate) const EXTENT: u64 = 2;
    pub(crate) const CHUNK: u64 = 3;
    pub(crate) const TOP: u64 = 5;
    /// Directory of the root tree that names the default subvolume.
    pub(crate) const ROOT_DIR: u64 = 6;
    pub(crate) const CHECKSUMS: u64 = 7;
    /// First number of subvolumes, inodes, and chunks.
    pub(crate) const FIRST_FREE: u64 = 256;
    /// Bits of the number of a subvolume; those above are the level of a quota group.
    const SUBVOLUME_BITS: u32 = 48;
    /// Last number of objects of users.
    pub(crate) const LAST_FREE: u64 = -256_i64 as u64;
    /// Object of the items in the tree of checksums.
    pub(crate) const CHECKSUM_OBJECT: u64 = -10_i64 as u64;
    /// Logs, and the tree of them.
    pub(crate) const LOG: u64 = -6_i64 as u64;
    pub(crate) const RELOC: u64 = -8_i64 as u64;

    /// True for trees of files.
    pub(crate) fn is_subvolume(id: u64) -> bool {
        id == TOP || id >= FIRST_FREE && id >> SUBVOLUME_BITS == 0
    }

    /// True if a block of `owner` may belong to tree `id`: those of subvolumes are shared, and logs
    /// and relocated trees are numbered elsewhere (`btrfs_check_eb_owner` of Linux).
    pub(crate) fn may_own(owner: u64, id: u64) -> bool {
        owner == id || matches!(id, LOG | RELOC) || is_subvolume(id) && is_subvolume(owner)
    }
}

/// Place of a tree: its root block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RootPlace {
    pub(crate) at: u64,
    pub(crate) level: u8,
    pub(crate) generation: u64,
}

/// Superblock.
#[derive(Clone, Debug)]
pub(crate) struct SuperBlock {
    /// Offset that it was read from.
    pub(crate) at: u64,
    pub(crate) checksum: Checksum,
    pub(crate) fsid: Uuid,
    /// UUID in tree blocks.
    pub(crate) metadata_uuid: Uuid,
    pub(crate) flags: u64,
    pub(crate) generation: u64,
    pub(crate) root: RootPlace,
    pub(crate) chunks: RootPlace,
    /// The log of changes after the last commit, if there is one.
    pub(crate) log: Option<RootPlace>,
    pub(crate) total_bytes: u64,
    pub(crate) bytes_used: u64,
    pub(crate) device_count: u64,
    pub(crate) sector_len: u32,
    pub(crate) node_len: u32,
    pub(crate) compat_ro: u64,
    pub(crate) incompat: u64,
    pub(crate) device: DeviceItem,
    pub(crate) label: Vec<u8>,
    pub(crate) system_array: Vec<u8>,
}

/// Description of a device, in the superblock and in the tree of chunks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceItem {
    pub(crate) id: u64,
    pub(crate) len: u64,
    pub(crate) uuid: Uuid,
}

impl DeviceItem {
    /// Bytes of it.
    pub(crate) const LEN: usize = 98;

    pub(crate) fn read(fields: Fields<'_>) -> DeviceItem {
        DeviceItem { id: fields.u64(0), len: fields.u64(8), uuid: Uuid(fields.array(0x42)) }
    }
}

impl SuperBlock {
    /// Reads the superblock of a device. If it is damaged, the intact copy of the highest
    /// generation takes its place.
    pub(crate) fn read(image: &dyn Image) -> Result<SuperBlock> {
        let first = SuperBlock::read_at(image, SUPER_AT);
        let Err(error) = &first else { return first };
        if error.kind() != packfs_core::ErrorKind::Corrupt {
            return first;
        }
        let copies = COPIES_AT.iter().filter_map(|&at| SuperBlock::read_at(image, at).ok());
        copies.max_by_key(|copy| copy.generation).map_or(first, Ok)
    }

    /// Reads and checks the superblock or copy at an offset.
    pub(crate) fn read_at(image: &dyn Image, at: u64) -> Result<SuperBlock> {
        let mut bytes = vec![0; SUPER_LEN];
        let end = at.saturating_add(SUPER_LEN as u64);
        if image.len() < end {
            return Err(Corruption::Short { len: image.len(), min: end }.into());
        }
        image.read_exact_at(at, &mut bytes)?;
        let fields = Fields(&bytes);
        if fields.array(0x40) != MAGIC && at == SUPER_AT && has_magic(image, ZONED_MAGIC_AT)? {
            return Err(zoned());
        }
        if fields.array(0x40) != MAGIC {
            return Err(Corruption::Magic { at }.into());
        }
        let number = fields.u16(0xc4);
        let checksum = Checksum::of(number).ok_or_else(|| {
            Error::unsupported("btrfs image", format_args!("checksum type {number}, 0 to 3 known"))
        })?;
        if !checksum.agrees(&bytes, fields.from(SUM_ROOM).0) {
            return Err(Corruption::SuperSum { at, kind: checksum.name() }.into());
        }
        let block = SuperBlock::parse(fields, at, checksum);
        block.check(fields)?;
        block.refuse_log_of_superblocks(image)?;
        Ok(block)
    }

    fn parse(fields: Fields<'_>, at: u64, checksum: Checksum) -> SuperBlock {
        let fsid = Uuid(fields.array(0x20));
        let incompat = fields.u64(0xbc);
        let generation = fields.u64(0x48);
        let has_own_uuid = incompat & METADATA_UUID != 0;
        let log = RootPlace { at: fields.u64(0x60), level: fields.u8(0xc8), generation: 0 };
        let label = fields.from(0x12b).0.get(..256).unwrap_or_default();
        let label = label.split(|&byte| byte == 0).next().unwrap_or_default();
        SuperBlock {
            at,
            checksum,
            fsid,
            metadata_uuid: if has_own_uuid { Uuid(fields.array(0x23b)) } else { fsid },
            flags: fields.u64(0x38),
            generation,
            root: RootPlace { at: fields.u64(0x50), level: fields.u8(0xc6), generation },
            chunks: RootPlace { at: fields.u64(0x58), level: fields.u8(0xc7), generation: fields.u64(0xa4) },
            log: (log.at != 0).then_some(RootPlace { generation: generation.saturating_add(1), ..log }),
            total_bytes: fields.u64(0x70),
            bytes_used: fields.u64(0x78),
            device_count: fields.u64(0x88),
            sector_len: fields.u32(0x90),
            node_len: fields.u32(0x94),
            compat_ro: fields.u64(0xb4),
            incompat,
            device: DeviceItem::read(fields.from(0xc9)),
            label: label.to_vec(),
            system_array: fields.from(0x32b).0.iter().take(fields.u32(0xa0) as usize).copied().collect(),
        }
    }

    /// Refuses devices whose superblock is a log in their first zones: what lies in the usual place
    /// may be an outdated one.
    fn refuse_log_of_superblocks(&self, image: &dyn Image) -> Result<()> {
        if self.incompat & ZONED != 0 && has_magic(image, ZONED_MAGIC_AT)? {
            return Err(zoned());
        }
        Ok(())
    }

    fn check(&self, fields: Fields<'_>) -> Result<()> {
        let figure = |figure, found, allowed| {
            Err(Error::from(Corruption::SuperFigure { at: self.at, figure, found, allowed }))
        };
        let unread = self.incompat & !INCOMPAT_READ;
        if unread != 0 {
            let names = feature_names(unread, &INCOMPAT, "incompat").join(", ");
            let what = format_args!("incompatible features {names}");
            return Err(Error::unsupported("btrfs image", what));
        }
        if fields.u64(0x30) != self.at {
            return figure("own offset", fields.u64(0x30), "the offset that it is at");
        }
        let system_len = u64::from(fields.u32(0xa0));
        for (name, found, is_sound, allowed) in [
            (
                "sector size",
                self.sector_len.into(),
                is_size(self.sector_len, 2),
                "powers of 2 from 2048 to 65536",
            ),
            ("node size", self.node_len.into(), is_size(self.node_len, 4), "powers of 2 from 4096 to 65536"),
            ("level of the root tree", self.root.level.into(), self.root.level < LEVELS_MAX, "0 to 7"),
            ("level of the chunk tree", self.chunks.level.into(), self.chunks.level < LEVELS_MAX, "0 to 7"),
            ("level of the log", fields.u8(0xc8).into(), fields.u8(0xc8) < LEVELS_MAX, "0 to 7"),
            ("length of system chunks", system_len, system_len <= SYSTEM_ARRAY_MAX as u64, "0 to 2048"),
            ("number of devices", self.device_count, self.device_count > 0, "1 and more"),
        ] {
            if !is_sound {
                return figure(name, found, allowed);
            }
        }
        if self.node_len < self.sector_len {
            return figure("node size", self.node_len.into(), "the sector size and more");
        }
        Ok(())
    }

    /// True for a restored dump of metadata.
    pub(crate) fn is_dump(&self) -> bool {
        self.flags & (METADUMP | METADUMP_V2) != 0
    }

    /// True if logical addresses are those of the device.
    pub(crate) fn is_one_chunk(&self) -> bool {
        self.flags & METADUMP != 0
    }

    pub(crate) fn is_seed(&self) -> bool {
        self.flags & SEEDING != 0
    }

    /// True if a change of the whole filesystem was interrupted.
    pub(crate) fn is_changing(&self) -> bool {
        self.flags & CHANGING != 0
    }
}

/// True if an image has the magic bytes at an offset.
pub(crate) fn has_magic(image: &dyn Image, at: u64) -> Result<bool> {
    let mut magic = [0; MAGIC.len()];
    Ok(image.read_at(at, &mut magic)? == magic.len() && magic == MAGIC)
}

/// True if an image has the superblock of a filesystem, or that of one on a zoned device.
pub(crate) fn looks_like_btrfs(image: &dyn Image) -> Result<bool> {
    Ok(has_magic(image, MAGIC_AT)? || has_magic(image, ZONED_MAGIC_AT)?)
}

fn zoned() -> Error {
    Error::unsupported("btrfs image", "of a zoned device, with a log of superblocks in its first zones")
}

fn is_size(len: u32, kib_min: u32) -> bool {
    len.is_power_of_two() && (kib_min << 10..=64 << 10).contains(&len)
}

/// Returns the names of features, `WORD bit N` for those without one.
pub(crate) fn feature_names(bits: u64, names: &[&str], word: &str) -> Vec<String> {
    (0..64_usize)
        .filter(|bit| bits >> bit & 1 != 0)
        .map(|bit| match names.get(bit) {
            Some(name) if !name.is_empty() => (*name).to_owned(),
            _ => format!("{word} bit {bit}"),
        })
        .collect()
}
