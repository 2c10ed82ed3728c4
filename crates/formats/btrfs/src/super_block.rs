//! The checked superblock, with its records of devices and trees.

use crate::checksum::{Checksum, SUM_ROOM};
use crate::corruption::Corruption;
use crate::disk::*;
use crate::key::Uuid;
use packfs_core::{Error, Image, Result};
use packfs_format::units::*;
use zerocopy::IntoBytes;

/// Superblock flags of restored metadata without file data (`btrfs-image`); the first version has
/// one chunk for all addresses.
const METADUMP: u64 = 1 << 33;
const METADUMP_V2: u64 = 1 << 34;
const SEEDING: u64 = 1 << 32;
/// Superblock flags of an interrupted change of checksum, block groups, or fsid.
const CHANGING: u64 = 0x3f << 35;

/// Incompatible features by bit, named as in `/sys/fs/btrfs/features`.
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
/// Features of `compat_ro` by bit; a reader may ignore them.
pub(crate) const COMPAT_RO: [&str; 4] =
    ["free_space_tree", "free_space_tree_valid", "verity", "block_group_tree"];
/// Zones are written sequentially.
const ZONED: u64 = 1 << 12;
/// Blocks carry `metadata_uuid`.
const METADATA_UUID: u64 = 1 << 10;
/// Supported features: all but `extent_tree_v2`, `raid_stripe_tree`, `remap_tree`, and unnamed
/// bits.
const INCOMPAT_READ: u64 = 0x1_1fff;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RootPlace {
    pub(crate) at: u64,
    pub(crate) level: u8,
    pub(crate) generation: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct SuperBlock {
    pub(crate) at: u64,
    pub(crate) checksum: Checksum,
    pub(crate) fsid: Uuid,
    pub(crate) metadata_uuid: Uuid,
    pub(crate) flags: u64,
    pub(crate) generation: u64,
    pub(crate) root: RootPlace,
    pub(crate) chunks: RootPlace,
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

/// Device item, in the superblock and in the tree of chunks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceItem {
    pub(crate) id: u64,
    pub(crate) len: u64,
    pub(crate) uuid: Uuid,
}

impl DeviceItem {
    pub(crate) fn of(raw: &DevItem) -> DeviceItem {
        DeviceItem { id: raw.devid.get(), len: raw.total_bytes.get(), uuid: Uuid(raw.uuid) }
    }
}

impl SuperBlock {
    /// Reads the superblock of a device, or the intact copy with the highest generation if it is
    /// damaged.
    pub(crate) fn read(image: &dyn Image) -> Result<SuperBlock> {
        let first = SuperBlock::read_at(image, SUPER_AT);
        let Err(error) = &first else { return first };
        if error.kind() != packfs_core::ErrorKind::Corrupt {
            return first;
        }
        let copies = COPIES_AT.iter().filter_map(|&at| SuperBlock::read_at(image, at).ok());
        copies.max_by_key(|copy| copy.generation).map_or(first, Ok)
    }

    pub(crate) fn read_at(image: &dyn Image, at: u64) -> Result<SuperBlock> {
        let end = at.plus(SUPER_LEN as u64);
        if image.len() < end {
            return Err(Corruption::Short { len: image.len(), min: end }.into());
        }
        let raw: Box<RawSuperBlock> = Box::new(packfs_format::read_structure(image, at)?);
        if raw.magic != MAGIC && at == SUPER_AT && has_magic(image, ZONED_MAGIC_AT)? {
            return Err(zoned());
        }
        if raw.magic != MAGIC {
            return Err(Corruption::Magic { at }.into());
        }
        let number = raw.csum_type.get();
        let checksum = Checksum::of(number).ok_or_else(|| {
            Error::unsupported("btrfs image", format_args!("checksum type {number}, 0 to 3 known"))
        })?;
        let summed = raw.as_bytes().within(SUM_ROOM..);
        if !checksum.agrees(raw.as_bytes(), summed) {
            return Err(Corruption::SuperSum { at, kind: checksum.name() }.into());
        }
        let block = SuperBlock::parse(&raw, at, checksum);
        block.check(&raw)?;
        block.refuse_log_of_superblocks(image)?;
        Ok(block)
    }

    fn parse(raw: &RawSuperBlock, at: u64, checksum: Checksum) -> SuperBlock {
        let fsid = Uuid(raw.fsid);
        let incompat = raw.incompat_flags.get();
        let generation = raw.generation.get();
        let has_own_uuid = incompat & METADATA_UUID != 0;
        let log = RootPlace { at: raw.log_root.get(), level: raw.log_root_level, generation: 0 };
        SuperBlock {
            at,
            checksum,
            fsid,
            metadata_uuid: if has_own_uuid { Uuid(raw.metadata_uuid) } else { fsid },
            flags: raw.flags.get(),
            generation,
            root: RootPlace { at: raw.root.get(), level: raw.root_level, generation },
            chunks: RootPlace {
                at: raw.chunk_root.get(),
                level: raw.chunk_root_level,
                generation: raw.chunk_root_generation.get(),
            },
            log: (log.at != 0).then_some(RootPlace { generation: generation.wrapping_add(1), ..log }),
            total_bytes: raw.total_bytes.get(),
            bytes_used: raw.bytes_used.get(),
            device_count: raw.num_devices.get(),
            sector_len: raw.sectorsize.get(),
            node_len: raw.nodesize.get(),
            compat_ro: raw.compat_ro_flags.get(),
            incompat,
            device: DeviceItem::of(&raw.dev_item),
            label: until_nul(&raw.label).to_vec(),
            system_array: {
                let len = raw.sys_chunk_array_size.get() as usize;
                raw.sys_chunk_array.iter().take(len).copied().collect()
            },
        }
    }

    /// Refuses devices whose superblocks are a log in their first zones, because the superblock at
    /// the usual offset may be outdated.
    fn refuse_log_of_superblocks(&self, image: &dyn Image) -> Result<()> {
        if self.incompat & ZONED != 0 && has_magic(image, ZONED_MAGIC_AT)? {
            return Err(zoned());
        }
        Ok(())
    }

    fn check(&self, raw: &RawSuperBlock) -> Result<()> {
        let figure = |figure, found, allowed| {
            Err(Error::from(Corruption::SuperFigure { at: self.at, figure, found, allowed }))
        };
        let unread = self.incompat & !INCOMPAT_READ;
        if unread != 0 {
            let names = feature_names(unread, &INCOMPAT, "incompat").join(", ");
            let what = format_args!("incompatible features {names}");
            return Err(Error::unsupported("btrfs image", what));
        }
        if raw.bytenr.get() != self.at {
            return figure("own offset", raw.bytenr.get(), "the offset that it is at");
        }
        let system_len = u64::from(raw.sys_chunk_array_size.get());
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
            ("level of the log", raw.log_root_level.into(), raw.log_root_level < LEVELS_MAX, "0 to 7"),
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

    /// True for restored metadata.
    pub(crate) fn is_dump(&self) -> bool {
        self.flags & (METADUMP | METADUMP_V2) != 0
    }

    pub(crate) fn is_one_chunk(&self) -> bool {
        self.flags & METADUMP != 0
    }

    pub(crate) fn is_seed(&self) -> bool {
        self.flags & SEEDING != 0
    }

    pub(crate) fn is_changing(&self) -> bool {
        self.flags & CHANGING != 0
    }
}

pub(crate) fn has_magic(image: &dyn Image, at: u64) -> Result<bool> {
    packfs_format::Magic { bytes: &MAGIC, at }.is_in(image)
}

/// True if an image has the superblock of a regular or of a zoned device.
pub(crate) fn looks_like_btrfs(image: &dyn Image) -> Result<bool> {
    Ok(has_magic(image, MAGIC_AT)? || has_magic(image, ZONED_MAGIC_AT)?)
}

fn zoned() -> Error {
    Error::unsupported("btrfs image", "of a zoned device, with a log of superblocks in its first zones")
}

fn is_size(len: u32, kib_min: u32) -> bool {
    len.is_power_of_two() && (kib_min << 10..=64 << 10).contains(&len)
}

pub(crate) fn feature_names(bits: u64, names: &[&str], word: &str) -> Vec<String> {
    (0..64_usize)
        .filter(|bit| bits >> bit & 1 != 0)
        .map(|bit| match names.get(bit) {
            Some(name) if !name.is_empty() => (*name).to_owned(),
            _ => format!("{word} bit {bit}"),
        })
        .collect()
}
