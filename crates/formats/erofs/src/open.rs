//! Conversion of the superblock to a checked [`Geometry`].
//!
//! Owns every rule of the superblock, the codec settings after it, and the device table. Refuses
//! what current kernels refuse to mount, except for their own limits: page sizes, and codecs that
//! they were built with.

use crate::corruption::{Allowed, Corruption, Place};
use crate::disk::*;
use crate::figures::low_bits;
use packfs_core::{Error, Image, Result, usize_of};
use packfs_format::{filled, structure, units::*};
use std::mem::{offset_of, size_of};

const SUPER_BLOCK_END: u64 = EROFS_SUPER_OFFSET + SUPER_BLOCK_LEN as u64;
const SLOT_LEN: u64 = EROFS_SB_EXTSLOT_SIZE as u64;

/// Assumed length of an inode with its xattrs and map, for a hint.
const INODE_LEN_HINT: u64 = 64;

#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) tag: [u8; 64],
    pub(crate) blocks: u64,
    /// Block in the whole address space where the device starts; 0 if the device has a separate
    /// address space.
    pub(crate) uniaddr: u64,
}

impl Device {
    /// End in the whole address space, in blocks.
    pub(crate) fn end(&self) -> u64 {
        end_of(self.uniaddr, self.blocks)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct CodecSettingsFound {
    /// Text such as `lzma dict=65536`.
    pub(crate) words: Vec<String>,
    pub(crate) end: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    pub(crate) super_block: SuperBlock,
    pub(crate) super_block_len: u64,
    pub(crate) image_len: u64,
    /// Base-2 logarithm of the block length, 9 to 16.
    pub(crate) block_bits: u32,
    pub(crate) blocks: u64,
    pub(crate) compat: u32,
    pub(crate) incompat: u32,
    /// Bit mask of the permitted algorithms.
    pub(crate) algorithms: u16,
    pub(crate) root_nid: u64,
    /// Base of node ids outside the metabox, in bytes.
    pub(crate) meta_at: u64,
    /// Base of shared xattrs, in bytes.
    pub(crate) xattrs_at: u64,
    pub(crate) packed_nid: Option<u64>,
    pub(crate) metabox_nid: Option<u64>,
    pub(crate) epoch: i64,
    pub(crate) fixed_nsec: u32,
    pub(crate) settings: CodecSettingsFound,
    pub(crate) devices: Vec<Device>,
    pub(crate) devices_at: u64,
}

impl Geometry {
    pub(crate) fn has(&self, feature: u32) -> bool {
        self.incompat & feature != 0
    }

    pub(crate) fn has_compat(&self, feature: u32) -> bool {
        self.compat & feature != 0
    }

    pub(crate) fn block_len(&self) -> u64 {
        1 << self.block_bits
    }

    pub(crate) fn in_block(&self, offset: u64) -> u64 {
        offset & low_bits(self.block_bits)
    }

    /// Returns the length of blocks in bytes; `None` on overflow.
    pub(crate) fn bytes_of(&self, blocks: u64) -> Option<u64> {
        blocks.checked_mul(self.block_len())
    }

    pub(crate) fn read(image: &dyn Image) -> Result<Geometry> {
        let image_len = image.len();
        let super_block = read_super_block(image)?;
        let place = Place::at("superblock", EROFS_SUPER_OFFSET);
        let block_bits = block_bits(&super_block, place)?;
        let incompat = super_block.feature_incompat.get();
        let compat = super_block.feature_compat.get();
        refuse_unknown_features(incompat)?;
        let found = u64::from(super_block.sb_extslots);
        let super_block_len = nth_at(SUPER_BLOCK_LEN as u64, found, SLOT_LEN);
        let end = image_len.min((1 << block_bits).max(4096));
        if EROFS_SUPER_OFFSET.plus(super_block_len) > end {
            let allowed = left(end, SUPER_BLOCK_END) / SLOT_LEN;
            return Err(place.figure("extension slots", found, Allowed::AtMost(allowed)));
        }
        if super_block.dirblkbits != 0 {
            return Err(place.figure("directory block bits", super_block.dirblkbits, Allowed::Only(0)));
        }
        let is_48bit = incompat & EROFS_FEATURE_INCOMPAT_48BIT != 0 && super_block.rootnid_8b.get() != 0;
        let (root_nid, blocks_hi) = if is_48bit {
            (super_block.rootnid_8b.get(), u64::from(super_block.rb.get()))
        } else {
            (u64::from(super_block.rb.get()), 0)
        };
        let mut geometry = Geometry {
            super_block,
            super_block_len,
            image_len,
            block_bits,
            blocks: u64::from(super_block.blocks_lo.get()) | blocks_hi << 32,
            compat,
            incompat,
            algorithms: 0,
            root_nid,
            meta_at: u64::from(super_block.meta_blkaddr.get()) << block_bits,
            xattrs_at: u64::from(super_block.xattr_blkaddr.get()) << block_bits,
            packed_nid: None,
            metabox_nid: None,
            epoch: super_block.epoch.get() as i64,
            fixed_nsec: super_block.fixed_nsec.get(),
            settings: CodecSettingsFound::default(),
            devices: Vec::new(),
            devices_at: 0,
        };
        // Most writers store inodes there in sequence.
        let inodes = geometry.meta_at..nth_at(geometry.meta_at, super_block.inos.get(), INODE_LEN_HINT);
        image.will_read(std::slice::from_ref(&inodes));
        geometry.read_special_nids(place)?;
        geometry.read_codecs(image, place)?;
        geometry.read_devices(image, place)?;
        Ok(geometry)
    }

    fn read_special_nids(&mut self, place: Place) -> Result<()> {
        let packed_nid = self.super_block.packed_nid.get();
        if packed_nid >> EROFS_DIRENT_NID_METABOX_BIT != 0 {
            return Err(place.fault("the packed inode is in the metabox"));
        }
        // mkfs.erofs writes a nid of 0 if none exists.
        self.packed_nid = Some(packed_nid).filter(|&nid| nid != 0);
        if self.has(EROFS_FEATURE_INCOMPAT_METABOX) {
            if self.super_block_len <= offset_of!(SuperBlock, metabox_nid) as u64 {
                return Err(place.figure("extension slots", 0_u64, Allowed::AtLeast(1)));
            }
            let nid = self.super_block.metabox_nid.get();
            if nid >> EROFS_DIRENT_NID_METABOX_BIT != 0 {
                return Err(place.fault("the metabox is in the metabox"));
            }
            self.metabox_nid = Some(nid);
        }
        Ok(())
    }

    /// Reads the settings of codecs, which follow the superblock in the order of their numbers.
    fn read_codecs(&mut self, image: &dyn Image, place: Place) -> Result<()> {
        let mut at = EROFS_SUPER_OFFSET.plus(self.super_block_len);
        self.settings.end = at;
        let u1 = self.super_block.u1.get();
        if !self.has(EROFS_FEATURE_INCOMPAT_COMPR_CFGS) {
            // Images without settings can only use LZ4.
            self.algorithms = 1 << Z_EROFS_COMPRESSION_LZ4;
            if u1 != 0 {
                self.settings.words.push(format!("lz4 max_distance={u1}"));
            }
            return Ok(());
        }
        if u1 & !Z_EROFS_ALL_COMPR_ALGS != 0 {
            let what = format!("codecs {:#x}, {Z_EROFS_ALL_COMPR_ALGS:#x} are known", u1);
            return Err(Error::unsupported("erofs image", what));
        }
        self.algorithms = u1;
        for algorithm in (0..Z_EROFS_COMPRESSION_MAX).filter(|&number| u1 >> number & 1 != 0) {
            at = at.next_multiple_of(4);
            let place = Place { what: "codec settings", at, ..place };
            let head: CfgLength = filled(|bytes| read(image, place, at, bytes))?;
            let mut body = vec![0; usize::from(head.size.get())];
            at = at.plus(size_of::<CfgLength>() as u64);
            read(image, place, at, &mut body)?;
            at = at.plus(body.len() as u64);
            self.settings.words.push(settings_words(algorithm, &body, place)?);
        }
        self.settings.end = at;
        Ok(())
    }

    fn read_devices(&mut self, image: &dyn Image, place: Place) -> Result<()> {
        let count = self.super_block.extra_devices.get();
        if !self.has(EROFS_FEATURE_INCOMPAT_DEVICE_TABLE) || count == 0 {
            return Ok(());
        }
        let slot_len = size_of::<DeviceSlot>() as u64;
        self.devices_at = nth_at(0, self.super_block.devt_slotoff.get().into(), slot_len);
        for index in 0..count {
            let at = nth_at(self.devices_at, index.into(), slot_len);
            let slot: DeviceSlot = filled(|bytes| read(image, place.of("device table"), at, bytes))?;
            let upper =
                |bits: u16| if self.has(EROFS_FEATURE_INCOMPAT_48BIT) { u64::from(bits) << 32 } else { 0 };
            self.devices.push(Device {
                tag: slot.tag,
                blocks: u64::from(slot.blocks_lo.get()) | upper(slot.blocks_hi.get()),
                uniaddr: u64::from(slot.uniaddr_lo.get()) | upper(slot.uniaddr_hi.get()),
            });
        }
        Ok(())
    }
}

fn read(image: &dyn Image, place: Place, at: u64, out: &mut [u8]) -> Result<()> {
    let (len, end) = (out.len() as u64, image.len());
    if end_of(at, len) > end {
        return Err(place.outside("the image", at, len, end));
    }
    image.read_exact_at(at, out)
}

fn read_super_block(image: &dyn Image) -> Result<SuperBlock> {
    let len = image.len();
    if len < SUPER_BLOCK_END {
        return Err(Corruption::Short { len }.into());
    }
    let there = usize_of(len.minus(EROFS_SUPER_OFFSET)).min(size_of::<SuperBlock>());
    let super_block: SuperBlock =
        filled(|bytes| image.read_exact_at(EROFS_SUPER_OFFSET, bytes.within_mut(..there)))?;
    match super_block.magic.get() {
        EROFS_SUPER_MAGIC_V1 => Ok(super_block),
        found => Err(Corruption::Magic { found }.into()),
    }
}

fn block_bits(super_block: &SuperBlock, place: Place) -> Result<u32> {
    let found = super_block.blkszbits;
    if !(BLKSZBITS_MIN..=BLKSZBITS_MAX).contains(&found) {
        let allowed = Allowed::Between(u64::from(BLKSZBITS_MIN), u64::from(BLKSZBITS_MAX));
        return Err(place.figure("block size bits", found, allowed));
    }
    Ok(u32::from(found))
}

fn refuse_unknown_features(incompat: u32) -> Result<()> {
    match incompat & !EROFS_ALL_FEATURE_INCOMPAT {
        0 => Ok(()),
        unknown => Err(Error::unsupported(
            "erofs image",
            format!("incompatible features {unknown:#x}, {EROFS_ALL_FEATURE_INCOMPAT:#x} are known"),
        )),
    }
}

/// Checks the settings of a codec, as kernels do, and returns their text.
fn settings_words(algorithm: u8, body: &[u8], place: Place) -> Result<String> {
    let short = || place.fault("settings that are too short");
    Ok(match algorithm {
        Z_EROFS_COMPRESSION_LZ4 => {
            let found: Lz4Cfgs = structure(body, 0).ok_or_else(short)?;
            let distance = found.max_distance.get();
            let blocks = found.max_pclusterblks.get();
            format!("lz4 max_distance={distance},max_pclusterblks={blocks}")
        }
        Z_EROFS_COMPRESSION_LZMA => {
            let found: LzmaCfgs = structure(body, 0).ok_or_else(short)?;
            let (dict, format) = (found.dict_size.get(), found.format.get());
            if format != 0 {
                return Err(place.figure("lzma format", format, Allowed::Only(0)));
            }
            if !(LZMA_DICT_SIZE_MIN..=Z_EROFS_LZMA_MAX_DICT_SIZE).contains(&dict) {
                let min = u64::from(LZMA_DICT_SIZE_MIN);
                let max = u64::from(Z_EROFS_LZMA_MAX_DICT_SIZE);
                return Err(place.figure("lzma dictionary", dict, Allowed::Between(min, max)));
            }
            format!("lzma dict_size={dict}")
        }
        Z_EROFS_COMPRESSION_DEFLATE => {
            let found: DeflateCfgs = structure(body, 0).ok_or_else(short)?;
            if found.windowbits > DEFLATE_WINDOWBITS_MAX {
                let allowed = Allowed::AtMost(u64::from(DEFLATE_WINDOWBITS_MAX));
                return Err(place.figure("deflate window bits", found.windowbits, allowed));
            }
            format!("deflate windowbits={}", found.windowbits)
        }
        _ => {
            let found: ZstdCfgs = structure(body, 0).ok_or_else(short)?;
            if found.format != 0 {
                return Err(place.figure("zstd format", found.format, Allowed::Only(0)));
            }
            if found.windowlog > ZSTD_WINDOWLOG_STORED_MAX {
                let allowed = Allowed::AtMost(u64::from(ZSTD_WINDOWLOG_STORED_MAX));
                return Err(place.figure("zstd window bits above 10", found.windowlog, allowed));
            }
            format!("zstd windowlog={}", found.windowlog.plus(ZSTD_WINDOWLOG_ABSOLUTEMIN))
        }
    })
}
