//! Conversion of the superblock to a checked [`Geometry`], with the variant of cramfs and the end
//! of the image.
//!
//! Owns every rule of the image as a whole. Refuses what kernels refuse to mount, except for their
//! own limits of byte order and block size.

use crate::corruption::Corruption;
use crate::disk::*;
use packfs_codec::Algorithm;
use packfs_core::{Error, FileType, Image, Result, usize_of};
use packfs_format::units::*;

/// Storage of blocks whose pointers do not record it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pointers {
    /// Each contains the end of its block.
    Plain,
    /// Two bits of each are flags (since Linux 4.15).
    Extended,
}

/// Validated values of the superblock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    pub(crate) order: ByteOrder,
    pub(crate) super_block: CramfsSuper,
    /// Offset of the superblock: 0 or 512. Other offsets are always from the start of the file.
    pub(crate) super_block_at: u64,
    pub(crate) file_len: u64,
    /// End of the image: the superblock's length in version 2, the end of the file in version 1.
    pub(crate) end: u64,
    /// A power of two, 4 KiB except for OpenRG's.
    pub(crate) block_len: u32,
    /// Codec of blocks; `None`: uncompressed.
    pub(crate) algorithm: Option<Algorithm>,
    pub(crate) pointers: Pointers,
    pub(crate) is_openrg: bool,
}

impl Geometry {
    pub(crate) fn flag(&self, flag: u32) -> bool {
        self.super_block.flags & flag != 0
    }

    /// True if the superblock's length, checksum, and counts are valid.
    pub(crate) fn is_version_2(&self) -> bool {
        self.flag(CRAMFS_FLAG_FSID_VERSION_2)
    }

    /// First possible offset of entries, pointers, and data.
    pub(crate) fn start(&self) -> u64 {
        self.super_block_at.plus(SUPER_LEN)
    }

    pub(crate) fn read(image: &dyn Image) -> Result<Geometry> {
        let file_len = image.len();
        if file_len < SUPER_LEN {
            return Err(Corruption::Short { len: file_len }.into());
        }
        let Some((super_block_at, order)) = find_super_block(image)? else {
            let mut magic = [0; 4];
            image.read_exact_at(0, &mut magic)?;
            return Err(Corruption::Magic { found: u32::from_le_bytes(magic) }.into());
        };
        let mut bytes = [0; usize_of(SUPER_LEN)];
        image.read_exact_at(super_block_at, &mut bytes)?;
        let super_block = CramfsSuper::parse(order, &bytes);
        let flags = super_block.flags;
        if flags & !FLAGS_KNOWN != 0 {
            let what = format!("superblock flags {flags:#x}, none beyond {FLAGS_KNOWN:#x} are supported");
            return Err(Error::unsupported("cramfs image", what));
        }
        let is_openrg = flags & OPENRG_BITS != 0;
        let mut geometry = Geometry {
            order,
            super_block,
            super_block_at,
            file_len,
            end: file_len,
            block_len: PAGE_LEN,
            algorithm: Some(Algorithm::Zlib),
            pointers: Pointers::Plain,
            is_openrg,
        };
        if is_openrg {
            geometry.block_len = PAGE_LEN << (flags >> OPENRG_BLOCK_SHIFT & OPENRG_BLOCK_MASK);
            geometry.algorithm = openrg_algorithm(flags >> OPENRG_METHOD_SHIFT)?;
        } else if geometry.flag(CRAMFS_FLAG_EXT_BLOCK_POINTERS) {
            geometry.pointers = Pointers::Extended;
        }
        if geometry.is_version_2() {
            geometry.end = checked_size(&geometry)?;
        }
        check_root(&geometry)?;
        Ok(geometry)
    }
}

pub(crate) fn find_super_block(image: &dyn Image) -> Result<Option<(u64, ByteOrder)>> {
    for at in SUPER_STARTS {
        let mut magic = [0; 4];
        if image.len() < at.plus(SUPER_LEN) || image.read_at(at, &mut magic)? < magic.len() {
            break;
        }
        if let Some(order) = ByteOrder::of_magic(magic) {
            return Ok(Some((at, order)));
        }
    }
    Ok(None)
}

fn openrg_algorithm(method: u32) -> Result<Option<Algorithm>> {
    match method {
        0 => Ok(None),
        1 => Ok(Some(Algorithm::Zlib)),
        2 => Ok(Some(Algorithm::LzmaPropsLen)),
        other => {
            let what = format!("OpenRG's method {other}, 0 (stored), 1 (zlib) and 2 (LZMA) are supported");
            Err(Error::unsupported("cramfs image", what))
        }
    }
}

fn checked_size(geometry: &Geometry) -> Result<u64> {
    let (found, min) = (u64::from(geometry.super_block.size), geometry.start());
    if found < min {
        return Err(Corruption::Size { found, min }.into());
    }
    if found > geometry.file_len {
        return Err(Corruption::Truncated { size: found, len: geometry.file_len }.into());
    }
    Ok(found)
}

/// Checks the root as kernels do: its entries follow the superblock unless a flag permits a gap.
fn check_root(geometry: &Geometry) -> Result<()> {
    let root = &geometry.super_block.root;
    if FileType::from_mode_bits(root.mode.into()) != Some(FileType::Directory) {
        return Err(Corruption::RootType { found: root.mode }.into());
    }
    let (found, min) = (u64::from(root.offset), geometry.start());
    let is_empty = found == 0 && root.size == 0;
    let is_usual = found.checked_sub(SUPER_LEN).is_some_and(|start| SUPER_STARTS.contains(&start));
    let may_start = found >= min && (is_usual || geometry.flag(CRAMFS_FLAG_SHIFTED_ROOT_OFFSET));
    if is_empty || may_start { Ok(()) } else { Err(Corruption::RootOffset { found, min }.into()) }
}
