//! The superblock with codec settings after it: written last, when everything is known.

use super::features::Features;
use super::plan::{DEVICES_AT, head_len};
use super::times::Times;
use crate::codec::Codecs;
use crate::disk::{self, SUPER_BLOCK_LEN, SuperBlock};
use crate::kernel;
use crate::options::{Options, Uuid};
use packfs_codec::CodecSettings;
use packfs_core::{Error, Result};
use packfs_format::{Section, crc32c};
use xxhash_rust::xxh3::Xxh3;
use zerocopy::IntoBytes;

/// Index of the first device slot, from the start of the image.
const DEVICES_SLOT: u16 = (DEVICES_AT / size_of::<disk::DeviceSlot>() as u64) as u16;

/// Limit of kernels 6.8 to 6.18 for every block size.
const LZ4_PCLUSTERBLKS_MAX: u32 = disk::Z_EROFS_PCLUSTER_MAX_SIZE / 4096;

/// Positions of the metadata's parts.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub image_blocks: u64,
    pub meta_block: u64,
    pub xattr_block: u64,
    /// In bytes.
    pub prefix_start: u64,
    pub prefix_count: u8,
    pub root_nid: u64,
    pub packed_nid: Option<u64>,
    pub metabox_nid: Option<u64>,
    pub inode_count: u64,
    pub has_xattrs: bool,
    /// True if the first prefix is the name of digests.
    pub has_digests: bool,
    pub devices: Vec<DevicePlace>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct DevicePlace {
    pub len: u64,
    pub start: u64,
    pub hash: u128,
}

pub(super) fn image_unit(options: &Options) -> u64 {
    options.typed.align.unwrap_or(1).next_multiple_of(options.block_len.into())
}

/// Writes everything before the data.
///
/// Errors: `Failed` for values that do not fit into the superblock.
pub(super) fn write(
    options: &Options,
    features: &Features,
    times: &Times,
    places: &Places,
    (metadata_hash, data_hash): (Xxh3, u128),
    put: &mut dyn FnMut(Section) -> Result<()>,
) -> Result<()> {
    let needed =
        kernel::needed(features.incompat(), features.algorithms(), options.block_len.trailing_zeros() as u8);
    if needed > options.kernel {
        let version = |(major, minor): kernel::Version| format!("Linux {major}.{minor}");
        let (needed, allowed) = (version(needed), version(options.kernel));
        let message = format!("the image needs {needed}, but -O kernel allows {allowed} at most");
        return Err(Error::failed(message));
    }
    let mut superblock = describe(options, features, times, places)?;
    let extension_len = if features.metabox { disk::EROFS_SB_EXTSLOT_SIZE } else { 0 };
    let codecs = if features.has_codec_settings() { codec_settings(options, features) } else { Vec::new() };
    superblock.uuid = match options.typed.uuid {
        Uuid::Is(uuid) => uuid,
        Uuid::Content => content_uuid(metadata_hash, data_hash, superblock.as_bytes(), &codecs),
    };
    let devices: Vec<u8> = places.devices.iter().flat_map(device_slot).collect();
    let mut bytes = vec![0; head_len(options) as usize];
    let base = disk::EROFS_SUPER_OFFSET as usize;
    let assemble = |superblock: &SuperBlock, bytes: &mut [u8]| {
        let codecs_at = base + SUPER_BLOCK_LEN + extension_len;
        bytes[base..codecs_at].copy_from_slice(&superblock.as_bytes()[..SUPER_BLOCK_LEN + extension_len]);
        bytes[codecs_at..codecs_at + codecs.len()].copy_from_slice(&codecs);
        bytes[DEVICES_AT as usize..][..devices.len()].copy_from_slice(&devices);
    };
    assemble(&superblock, &mut bytes);
    if options.typed.checksum {
        superblock.checksum = checksum(&bytes, options.block_len as usize).into();
        assemble(&superblock, &mut bytes);
    }
    put(Section { owner: "superblock", offset: 0, bytes })
}

fn describe(options: &Options, features: &Features, times: &Times, places: &Places) -> Result<SuperBlock> {
    let block =
        |block: u64| u32::try_from(block).map_err(|_| Error::too_large("metadata starts beyond 2^32 blocks"));
    let compat = [
        (options.typed.checksum, disk::EROFS_FEATURE_COMPAT_SB_CHKSUM),
        (true, disk::EROFS_FEATURE_COMPAT_MTIME),
        (options.typed.xattr_filter && places.has_xattrs, disk::EROFS_FEATURE_COMPAT_XATTR_FILTER),
        (features.prefixes, disk::EROFS_FEATURE_COMPAT_PLAIN_XATTR_PFX),
        (features.shared_in_metabox, disk::EROFS_FEATURE_COMPAT_SHARED_EA_IN_METABOX),
        // Its field is 0: the first prefix.
        (places.has_digests, disk::EROFS_FEATURE_COMPAT_ISHARE_XATTRS),
    ];
    let wide_root = places.root_nid > u64::from(u16::MAX) || places.image_blocks > u64::from(u32::MAX);
    if wide_root && !features.wide {
        let message = format!("the root has node number {}, at most 65535 allowed", places.root_nid);
        return Err(Error::too_large(message).hint("-O 48bit=on allows more, and needs Linux 6.15"));
    }
    let lz4_distance = if features.algorithms() == 1 { disk::LZ4_DISTANCE_MAX } else { 0 };
    // A creation time that does not fit is replaced by the epoch.
    let after = options.made_at.checked_sub(times.epoch);
    let build_time = after.and_then(|after| u32::try_from(after).ok()).unwrap_or(0);
    Ok(SuperBlock {
        magic: disk::EROFS_SUPER_MAGIC_V1.into(),
        feature_compat: compat.iter().fold(0, |all, &(set, bit)| if set { all | bit } else { all }).into(),
        blkszbits: options.block_len.trailing_zeros() as u8,
        sb_extslots: features.metabox.into(),
        rb: if wide_root { (places.image_blocks >> 32) as u16 } else { places.root_nid as u16 }.into(),
        inos: places.inode_count.into(),
        epoch: (times.epoch as u64).into(),
        fixed_nsec: times.nanos.into(),
        blocks_lo: (places.image_blocks as u32).into(),
        meta_blkaddr: block(places.meta_block)?.into(),
        xattr_blkaddr: block(places.xattr_block)?.into(),
        volume_name: options.typed.label.unwrap_or_default(),
        feature_incompat: features.incompat().into(),
        u1: if features.has_codec_settings() { features.algorithms() } else { lz4_distance }.into(),
        extra_devices: (places.devices.len() as u16).into(),
        devt_slotoff: if places.devices.is_empty() { 0 } else { DEVICES_SLOT }.into(),
        xattr_prefix_count: places.prefix_count,
        xattr_prefix_start: match places.prefix_count {
            0 => 0,
            _ => u32::try_from(places.prefix_start / disk::XATTR_ALIGN).map_err(|_| {
                Error::failed("prefixes of extended attributes are beyond 16 GiB").hint("-O prefixes=off")
            })?,
        }
        .into(),
        packed_nid: places.packed_nid.unwrap_or(0).into(),
        build_time: build_time.into(),
        rootnid_8b: if wide_root { places.root_nid } else { 0 }.into(),
        metabox_nid: places.metabox_nid.unwrap_or(0).into(),
        ..SuperBlock::default()
    })
}

/// Row of the device table; its tag is a hash of the data on it.
fn device_slot(place: &DevicePlace) -> Vec<u8> {
    let mut slot = disk::DeviceSlot {
        tag: [0; 64],
        blocks_lo: (place.len as u32).into(),
        uniaddr_lo: (place.start as u32).into(),
        blocks_hi: ((place.len >> 32) as u16).into(),
        uniaddr_hi: ((place.start >> 32) as u16).into(),
        reserved: [0; 52],
    };
    let name = format!("{:032x}", place.hash);
    slot.tag[..name.len()].copy_from_slice(name.as_bytes());
    slot.as_bytes().to_vec()
}

/// Returns the settings of each codec in use, with their lengths, aligned to 4 bytes.
fn codec_settings(options: &Options, features: &Features) -> Vec<u8> {
    let mut out = Vec::new();
    let used = |number: u8| features.blocks_max[usize::from(number)];
    let mut add = |number: u8, settings: &[u8]| {
        if used(number) > 0 {
            out.resize(out.len().next_multiple_of(4), 0);
            out.extend_from_slice(disk::CfgLength { size: (settings.len() as u16).into() }.as_bytes());
            out.extend_from_slice(settings);
        }
    };
    let lz4 = disk::Lz4Cfgs {
        max_distance: disk::LZ4_DISTANCE_MAX.into(),
        // Kernels allow at most a cluster's number of pages, also with shorter blocks, and
        // interpret the value as pages.
        max_pclusterblks: (used(disk::Z_EROFS_COMPRESSION_LZ4).min(LZ4_PCLUSTERBLKS_MAX) as u16).into(),
        reserved: [0; 10],
    };
    add(disk::Z_EROFS_COMPRESSION_LZ4, lz4.as_bytes());
    let lzma =
        disk::LzmaCfgs { dict_size: lzma_dict_len(options).into(), format: 0.into(), reserved: [0; 8] };
    add(disk::Z_EROFS_COMPRESSION_LZMA, lzma.as_bytes());
    let deflate = disk::DeflateCfgs { windowbits: disk::DEFLATE_WINDOWBITS_MAX, reserved: [0; 5] };
    add(disk::Z_EROFS_COMPRESSION_DEFLATE, deflate.as_bytes());
    let windowlog = zstd_window_log(options) - disk::ZSTD_WINDOWLOG_ABSOLUTEMIN;
    let zstd = disk::ZstdCfgs { format: 0, windowlog, reserved: [0; 4] };
    add(disk::Z_EROFS_COMPRESSION_ZSTD, zstd.as_bytes());
    out
}

pub(crate) fn all_settings(options: &Options) -> impl Iterator<Item = &CodecSettings> {
    let of_files = options.storages().filter_map(|storage| storage.codecs().map(|(codecs, _)| codecs));
    let of_metadata = options.metabox.iter().map(|metabox| &metabox.codec);
    of_files.flat_map(Codecs::both).chain(of_metadata).chain(options.merged.iter().flatten())
}

/// Longest dictionary of any codec.
pub(crate) fn lzma_dict_len(options: &Options) -> u32 {
    let dict_len = |codec: &CodecSettings| match codec {
        CodecSettings::Lzma(lzma) => Some(lzma.dict_len),
        _ => None,
    };
    let longest = all_settings(options).filter_map(dict_len).max();
    longest
        .unwrap_or(disk::Z_EROFS_LZMA_MAX_DICT_SIZE)
        .clamp(disk::LZMA_DICT_SIZE_MIN, disk::Z_EROFS_LZMA_MAX_DICT_SIZE)
}

/// Logarithm of the longest window of any codec.
pub(crate) fn zstd_window_log(options: &Options) -> u8 {
    let (min, max) = (
        disk::ZSTD_WINDOWLOG_ABSOLUTEMIN,
        disk::ZSTD_WINDOWLOG_ABSOLUTEMIN + disk::ZSTD_WINDOWLOG_STORED_MAX,
    );
    let log = |codec: &CodecSettings| match codec {
        CodecSettings::Zstd(zstd) => Some(zstd.window_log_max.unwrap_or(max)),
        _ => None,
    };
    all_settings(options).filter_map(log).max().unwrap_or(max).clamp(min, max)
}

/// Returns a UUID (version 8, RFC 9562) of the image's contents.
fn content_uuid(mut hash: Xxh3, data_hash: u128, superblock: &[u8], codecs: &[u8]) -> [u8; 16] {
    hash.update(&data_hash.to_le_bytes());
    hash.update(superblock);
    hash.update(codecs);
    let mut uuid = hash.digest128().to_be_bytes();
    uuid[6] = uuid[6] & 0x0f | 0x80;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

/// CRC-32C from the superblock to the end of its block, or of a whole block if the superblock is
/// not in the first; not inverted at the end, and with zeros in its field.
fn checksum(head: &[u8], block_len: usize) -> u32 {
    let start = disk::EROFS_SUPER_OFFSET as usize;
    let len = if block_len > start { block_len - start } else { block_len };
    let bytes = &head[start..];
    crc32c(!0, &bytes[..len.min(bytes.len())])
}
