//! Conversion of a file's header or footer to a checked [`Geometry`], with version and positions of
//! index and blocks.
//!
//! Owns every rule of the file as a whole. Invariant: the index is within the file, so the number
//! of blocks is bounded by the file's length.

use crate::corruption::Corruption;
use crate::disk::*;
use packfs_core::{Error, Image, Result, range_at};
use packfs_format::{read_structure, units::*};
use std::mem::size_of;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// 0.68 and before: offsets of 32 bits, and no version in the preamble.
    V0_68,
    /// 1.0: offsets of 64 bits, little-endian.
    V1_0,
    /// Accelerated Knoppix, labelled 1.0: blocks are stored in the order of use.
    Accelerated,
    /// 2.0: offsets of 64 bits, big-endian.
    V2_0,
    /// 3.0 of SliTaz: sizes of 32 bits at the end.
    V3_0,
    /// The unreleased version 3: everything at the end, a codec for each block.
    Alpha3,
    /// 4.0 with a header: a codec for each block, in its offset.
    V4Header,
    /// 4.0 with a footer.
    V4Footer,
}

impl Version {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Version::V0_68 => "0.68",
            Version::V1_0 => "1.0",
            Version::Accelerated => "1.0 (accelerated)",
            Version::V2_0 => "2.0",
            Version::V3_0 => "3.0 (SliTaz)",
            Version::Alpha3 => "3 alpha",
            Version::V4Header => "4.0 (header)",
            Version::V4Footer => "4.0 (footer)",
        }
    }

    pub(crate) fn row_len(self) -> u64 {
        match self {
            Version::V0_68 | Version::V3_0 => 4,
            Version::Accelerated => size_of::<BlockInfo>() as u64,
            Version::V1_0 | Version::V2_0 | Version::Alpha3 | Version::V4Header | Version::V4Footer => 8,
        }
    }

    /// Returns the number of index rows for `blocks`; rows of offsets have one more for the end of
    /// the last block.
    fn row_count(self, blocks: u64) -> u64 {
        match self {
            Version::Accelerated | Version::V3_0 => blocks,
            _ => blocks.plus(1),
        }
    }
}

/// Validated locations of a file's structures.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    pub(crate) version: Version,
    pub(crate) image_len: u64,
    pub(crate) head: Range<u64>,
    /// Structures at the end; may be empty.
    pub(crate) tail: Range<u64>,
    pub(crate) index: Range<u64>,
    /// The flags of blocks, in the unreleased version 3.
    pub(crate) flags: Range<u64>,
    /// Permitted range of blocks.
    pub(crate) data: Range<u64>,
    pub(crate) block_len: u32,
    pub(crate) block_count: u64,
    /// Length of the disk: all blocks, unless the file states it.
    pub(crate) disk_len: u64,
}

const BLOCK_LEN_UNIT: u32 = 512;
const BLOCK_LEN_MAX: u32 = 16 << 20;

impl Geometry {
    pub(crate) fn read(image: &dyn Image) -> Result<Geometry> {
        if let Some(tail) = alpha_tail(image)? {
            return alpha(image, &tail);
        }
        let len = image.len();
        let Some(head) = read_head(image, 0)? else { return Err(Corruption::Short { len }.into()) };
        refuse_forks(&head)?;
        let blocks = head.num_blocks.get();
        let version = version_of(&head);
        let version = match version.as_ref() {
            Some(b"V1.0") => version_1(image)?,
            Some(b"V2.0") => Version::V2_0,
            Some(b"V3.0") => Version::V3_0,
            Some(b"V4.0") => Version::V4Header,
            Some(other) => {
                let found = other.escape_ascii();
                let what = format!("version \"{found}\", V1.0 to V4.0 are supported");
                return Err(Error::unsupported("cloop image", what));
            }
            None if starts_as_0_68(image, &head)? => Version::V0_68,
            None => match read_footer(image)? {
                Some(footer) => return footer_last(len, &footer),
                None => return Err(Corruption::Signature.into()),
            },
        };
        let block_len = block_len(head.block_size.get())?;
        if version == Version::V3_0 {
            if blocks != BLOCKS_IN_TAIL {
                let what = format!("version 3.0 with {blocks} blocks in its head instead of its tail");
                return Err(Error::unsupported("cloop image", what));
            }
            return sizes_last(image, block_len);
        }
        let blocks = u64::from(blocks);
        let at = HEAD_LEN;
        let index = index_at(at, version, blocks, len)?;
        Ok(Geometry {
            version,
            image_len: len,
            head: 0..at,
            tail: 0..0,
            data: index.end..len,
            index,
            flags: 0..0,
            block_len,
            block_count: blocks,
            disk_len: blocks.times(block_len.into()),
        })
    }

    /// Limit of a stored block. Codecs expand noise: lzo most, by a sixteenth and some bytes.
    pub(crate) fn stored_max(&self) -> u64 {
        let len = u64::from(self.block_len);
        len.plus(len / 16).plus(128)
    }

    pub(crate) fn block_start(&self, block: u64) -> u64 {
        block.times(self.block_len.into())
    }

    pub(crate) fn block_holds(&self, block: u64) -> u64 {
        self.disk_len.minus(self.block_start(block)).min(self.block_len.into())
    }
}

fn index_at(at: u64, version: Version, blocks: u64, limit: u64) -> Result<Range<u64>> {
    let (rows, row_len) = (version.row_count(blocks), version.row_len());
    let end = rows.checked_mul(row_len).and_then(|len| at.checked_add(len)).filter(|end| *end <= limit);
    let end = end.ok_or(Corruption::IndexEnd { at, rows, row_len, limit })?;
    Ok(at..end)
}

fn index_before(end: u64, version: Version, blocks: u64, min: u64) -> Result<Range<u64>> {
    let (rows, row_len) = (version.row_count(blocks), version.row_len());
    let start = rows.checked_mul(row_len).and_then(|len| end.checked_sub(len)).filter(|start| *start >= min);
    let start = start.ok_or(Corruption::IndexEnd { at: min, rows, row_len, limit: end })?;
    Ok(start..end)
}

fn block_len(found: u32) -> Result<u32> {
    let allowed = (BLOCK_LEN_UNIT..=BLOCK_LEN_MAX).contains(&found) && found.is_multiple_of(BLOCK_LEN_UNIT);
    if allowed { Ok(found) } else { Err(Corruption::BlockSize { found }.into()) }
}

/// `None` if the file ends before the header does.
fn read_head(image: &dyn Image, at: u64) -> Result<Option<Head>> {
    if image.len().checked_sub(at).is_none_or(|rest| rest < HEAD_LEN) {
        return Ok(None);
    }
    let head: Head = read_structure(image, at)?;
    Ok(Some(head))
}

/// Returns the version in a preamble, `V2.0` for `#V2.0 Format`.
fn version_of(head: &Head) -> Option<[u8; 4]> {
    let line = head.preamble.get(VERSION_AT..VERSION_AT + VERSION_LEN)?;
    let is_named =
        head.preamble.starts_with(INTERPRETER) && line.starts_with(b"#V") && line.ends_with(b" Format");
    let version: [u8; 4] = line.get(1..5)?.try_into().ok()?;
    is_named.then_some(version)
}

/// Returns the name of an incompatible fork with this preamble.
fn fork_of(head: &Head) -> Option<&'static str> {
    let holds = |word: &[u8]| head.preamble.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    let is_script = head.preamble.starts_with(INTERPRETER);
    ["bzloop", "gcloop"].into_iter().find(|fork| is_script && holds(fork.as_bytes()))
}

fn refuse_forks(head: &Head) -> Result<()> {
    match fork_of(head) {
        None => Ok(()),
        Some(fork) => {
            Err(Error::unsupported("cloop image", format!("{fork}, a fork with files of another kind"))
                .hint(format!("unpack it by the tools of {fork}, and pack the disk again")))
        }
    }
}

/// True if a header without a version is one of 0.68: its index starts with the index's end.
fn starts_as_0_68(image: &dyn Image, head: &Head) -> Result<bool> {
    if !head.preamble.starts_with(INTERPRETER) || block_len(head.block_size.get()).is_err() {
        return Ok(false);
    }
    let index = index_at(HEAD_LEN, Version::V0_68, head.num_blocks.get().into(), u64::MAX)?;
    Ok(index.end == u64::from(first_words(image)?[0]))
}

/// Reads the first words after a header; zeros after the end of the file.
fn first_words(image: &dyn Image) -> Result<[u32; 3]> {
    let mut words = [[0; 4]; 3];
    image.read_at(HEAD_LEN, words.as_flattened_mut())?;
    Ok(words.map(u32::from_be_bytes))
}

/// Distinguishes two kinds of files labelled 1.0. Little-endian offsets never start with four
/// zeros, and those of blocks with sizes always do.
fn version_1(image: &dyn Image) -> Result<Version> {
    let [first, _, third] = first_words(image)?;
    Ok(if first == 0 && third != 0 { Version::Accelerated } else { Version::V1_0 })
}

fn read_footer(image: &dyn Image) -> Result<Option<Head>> {
    let Some(at) = image.len().checked_sub(HEAD_LEN).filter(|at| *at > 0) else { return Ok(None) };
    Ok(read_head(image, at)?.filter(|head| version_of(head) == Some(*b"V4.0")))
}

/// Opens a file of 4.0 that was written as a stream: blocks, index, footer.
fn footer_last(len: u64, head: &Head) -> Result<Geometry> {
    let block_len = block_len(head.block_size.get())?;
    let blocks = u64::from(head.num_blocks.get());
    let at = len.minus(HEAD_LEN);
    let version = Version::V4Footer;
    let index = index_before(at, version, blocks, 0)?;
    Ok(Geometry {
        version,
        image_len: len,
        head: at..len,
        tail: 0..0,
        flags: 0..0,
        data: 0..index.start,
        index,
        block_len,
        block_count: blocks,
        disk_len: blocks.times(block_len.into()),
    })
}

/// Opens a file of 3.0: header, blocks, their sizes, tail.
fn sizes_last(image: &dyn Image, block_len: u32) -> Result<Geometry> {
    let len = image.len();
    let tail_len = size_of::<Tail>() as u64;
    let at = len.checked_sub(tail_len).filter(|at| *at >= HEAD_LEN).ok_or(Corruption::Short { len })?;
    let tail: Tail = read_structure(image, at)?;
    let version = Version::V3_0;
    if u64::from(tail.index_size.get()) != version.row_len() {
        let what = format!("version 3.0 with the index kind {:#x}, 4 is supported", tail.index_size.get());
        return Err(Error::unsupported("cloop image", what));
    }
    let blocks = u64::from(tail.num_blocks.get());
    let index = index_before(at, version, blocks, HEAD_LEN)?;
    Ok(Geometry {
        version,
        image_len: len,
        head: 0..HEAD_LEN,
        tail: at..len,
        flags: 0..0,
        data: HEAD_LEN..index.start,
        index,
        block_len,
        block_count: blocks,
        disk_len: blocks.times(block_len.into()),
    })
}

fn alpha_tail(image: &dyn Image) -> Result<Option<AlphaTail>> {
    let Some(at) = image.len().checked_sub(size_of::<AlphaTail>() as u64) else { return Ok(None) };
    let tail: AlphaTail = read_structure(image, at)?;
    Ok((tail.signature == ALPHA_SIGNATURE).then_some(tail))
}

/// Opens a file of the unreleased version 3: blocks, table, offsets, flags, tail.
fn alpha(image: &dyn Image, tail: &AlphaTail) -> Result<Geometry> {
    if tail.version.get() != ALPHA_VERSION {
        let what = format!("CLOOP3 version {}, 3 is supported", tail.version.get());
        return Err(Error::unsupported("cloop image", what));
    }
    let len = image.len();
    let tail_at = len.minus(size_of::<AlphaTail>() as u64);
    let (found, limit) = (tail.table_offset.get(), tail_at);
    let index_start = found.checked_add(size_of::<AlphaTable>() as u64).filter(|end| *end <= limit);
    let index_start = index_start.ok_or(Corruption::TableStart { found, limit })?;
    let table: AlphaTable = read_structure(image, found)?;
    let block_len = block_len(table.block_size.get())?;
    let blocks = u64::from(table.num_blocks.get());
    let version = Version::Alpha3;
    let index = index_at(index_start, version, blocks, limit)?;
    let flags = range_at(index.end, blocks.times(4));
    if flags.end > limit {
        return Err(Corruption::IndexEnd { at: index.end, rows: blocks, row_len: 4, limit }.into());
    }
    let disk_len = table.original_size.get();
    let unfilled = blocks.times(block_len.into()).checked_sub(disk_len);
    if unfilled.is_none_or(|len| len >= block_len.into()) {
        return Err(Corruption::DiskLength { found: disk_len, blocks, block_len }.into());
    }
    Ok(Geometry {
        version,
        image_len: len,
        head: found..index_start,
        tail: tail_at..len,
        flags,
        index,
        data: 0..found,
        block_len,
        block_count: blocks,
        disk_len,
    })
}

/// See [`packfs_format::Format::probe`].
pub(crate) fn looks_like_cloop(image: &dyn Image) -> Result<bool> {
    let Some(head) = read_head(image, 0)? else { return Ok(false) };
    // The index of a 0.68 file replaces the version in its preamble, so that shell scripts are not
    // accepted.
    Ok(version_of(&head).is_some()
        || fork_of(&head).is_some_and(|_| head.preamble.contains(&0))
        || alpha_tail(image)?.is_some()
        || starts_as_0_68(image, &head)?
        || read_footer(image)?.is_some())
}
