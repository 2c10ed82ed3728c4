//! Conversion of the superblock to a checked [`Geometry`].
//!
//! Owns every rule of the image as a whole, for all five versions.

use crate::legacy::codec;
use crate::legacy::corruption::Corruption;
use crate::legacy::disk::*;
use crate::{Endian, HeaderForm, Layout, MetadataFault, Table, TableKind, inodes_and_directories};
use packfs_core::{Error, Image, Result};
use packfs_format::{InodeId, units::*};

/// Validated locations of an image's structures.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    pub(crate) super_block: SuperBlock,
    pub(crate) image_len: u64,
    pub(crate) bytes_used: u64,
    /// Locations common to all versions.
    pub(crate) layout: Layout,
    pub(crate) uids: IdTable,
    pub(crate) gids: IdTable,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct IdTable {
    pub(crate) start: u64,
    pub(crate) count: u32,
}

impl IdTable {
    pub(crate) fn end(&self) -> u64 {
        self.start.plus(u64::from(self.count) * 4)
    }

    fn new(name: &'static str, start: u64, count: u32, min: u64, limit: u64) -> Result<IdTable> {
        let list_len = u64::from(count) * 4;
        if start < min || start.checked_add(list_len).is_none_or(|end| end > limit) {
            return Err(MetadataFault::TableEnd { table: name, start, list_len, limit }.into());
        }
        Ok(IdTable { start, count })
    }

    /// Reads all rows, at most 256.
    pub(crate) fn read(&self, image: &dyn Image, endian: Endian) -> Result<Vec<u32>> {
        let mut words = vec![[0; 4]; self.count as usize];
        image.read_exact_at(self.start, words.as_flattened_mut())?;
        Ok(words.into_iter().map(|word| endian.u32(word)).collect())
    }
}

impl Geometry {
    pub(crate) fn flag(&self, bit: u8) -> bool {
        self.super_block.flags & (1 << bit) != 0
    }

    pub(crate) fn version(&self) -> Version {
        self.super_block.version
    }

    pub(crate) fn endian(&self) -> Endian {
        self.super_block.magic.endian
    }

    pub(crate) fn header_form(&self) -> HeaderForm {
        header_form(&self.super_block)
    }

    pub(crate) fn read(image: &dyn Image) -> Result<Geometry> {
        let super_block = read_super_block(image)?;
        let image_len = image.len();
        let block_len = block_len(&super_block)?;
        let bytes_used = bytes_used(&super_block, image_len)?;
        let super_block_len = super_block.version.super_block_len() as u64;
        // 256 wraps to 0, and each inode has a user.
        let uid_count = if super_block.no_uids == 0 { 256 } else { u32::from(super_block.no_uids) };
        let uids = IdTable::new("uid table", super_block.uid_start, uid_count, super_block_len, bytes_used)?;
        let gids = match u32::from(super_block.no_gids) {
            0 => IdTable { start: uids.end(), count: 0 },
            count => IdTable::new("gid table", super_block.gid_start, count, super_block_len, bytes_used)?,
        };
        let (fragments, export, directories_end) = tables(image, &super_block)?;
        let directories = super_block.directory_table_start..directories_end;
        // A tree without names has no listing.
        let (inodes, directories) =
            inodes_and_directories(super_block.inode_table_start, directories, super_block_len)?;
        let form = header_form(&super_block);
        let algorithm = codec::recognise(image, form, super_block.magic.writer, [inodes, directories])?;
        let layout = Layout {
            algorithm,
            block_len,
            data: super_block_len..inodes.start,
            inodes,
            directories,
            fragments,
            export,
            root: InodeId(super_block.root_inode),
            inode_count: super_block.inodes,
        };
        Ok(Geometry { super_block, image_len, bytes_used, layout, uids, gids })
    }
}

fn header_form(super_block: &SuperBlock) -> HeaderForm {
    let marked = super_block.flags & (1 << SQUASHFS_CHECK) != 0;
    HeaderForm { endian: super_block.magic.endian, marked }
}

/// Returns the magic of an image and its version numbers; `None` without a magic of these versions.
pub(crate) fn identify(image: &dyn Image) -> Result<Option<(Magic, (u16, u16))>> {
    let mut bytes = [0; 32];
    let len = image.read_at(0, &mut bytes)?;
    let Some(magic) = MAGICS.into_iter().find(|magic| bytes.starts_with(&magic.bytes)) else {
        return Ok(None);
    };
    Ok(version_numbers(bytes.within(..len), magic.endian).map(|numbers| (magic, numbers)))
}

fn read_super_block(image: &dyn Image) -> Result<SuperBlock> {
    let mut bytes = [0; SUPER_BLOCK_LEN_MAX];
    let short = Version::V1_0.super_block_len();
    let len = image.len();
    if len < short as u64 {
        return Err(Corruption::Short { len, wanted: short }.into());
    }
    let Some((magic, (major, minor))) = identify(image)? else {
        let mut found = [0; 4];
        image.read_exact_at(0, &mut found)?;
        return Err(Corruption::Magic { found: u32::from_be_bytes(found) }.into());
    };
    let Some(version) = Version::of(major, minor) else {
        let what = format!("version {major}.{minor}, 1.0, 2.0, 2.1, 3.0 and 3.1 are supported");
        return Err(Error::unsupported("squashfs image", what));
    };
    let wanted = version.super_block_len();
    if len < wanted as u64 {
        return Err(Corruption::Short { len, wanted }.into());
    }
    image.read_exact_at(0, bytes.within_mut(..wanted))?;
    Ok(SuperBlock::parse(bytes, magic, version))
}

fn block_len(super_block: &SuperBlock) -> Result<u32> {
    let (min, max) =
        if super_block.version.major() == 1 { (512, 32 << 10) } else { (4096, SQUASHFS_FILE_MAX_SIZE) };
    let found = super_block.block_size;
    if !found.is_power_of_two() || !(min..=max).contains(&found) {
        return Err(Corruption::BlockSize { found, min, max }.into());
    }
    Ok(found)
}

fn bytes_used(super_block: &SuperBlock, len: u64) -> Result<u64> {
    let found = super_block.bytes_used;
    let min = super_block.version.super_block_len() as u64;
    if found < min {
        return Err(Corruption::BytesUsed { found, min }.into());
    }
    if found > len {
        return Err(Corruption::Truncated { bytes_used: found, len }.into());
    }
    Ok(found)
}

/// Reads the lists of the lookup tables, from the end of the image towards its start; each must end
/// before the one read before it. Also returns the start of the first.
fn tables(image: &dyn Image, super_block: &SuperBlock) -> Result<(Option<Table>, Option<Table>, u64)> {
    let version = super_block.version;
    let kind = |name, block_name, row_len| TableKind {
        name,
        block_name,
        row_len,
        position_len: version.position_len(),
        endian: super_block.magic.endian,
    };
    let min = version.super_block_len() as u64;
    let mut limit = super_block.uid_start;
    let mut export = None;
    if super_block.lookup_table_start != SQUASHFS_INVALID_BLK && super_block.inodes > 0 {
        let kind = kind("export table", "export table block", 8);
        let count = super_block.inodes;
        let table = Table::open(image, kind, count, super_block.lookup_table_start, min, limit)?;
        limit = table.start();
        export = Some(table);
    }
    let mut fragments = None;
    if super_block.fragments > 0 {
        let kind = kind("fragment table", "fragment table block", version.fragment_len());
        let count = super_block.fragments;
        let list_start = super_block.fragment_table_start;
        let table = Table::open(image, kind, count, list_start, min, limit)?;
        limit = table.start();
        fragments = Some(table);
    }
    Ok((fragments, export, limit))
}
