//! Raw structures, big-endian, as in `include/uapi/linux/romfs_fs.h`.

use crate::corruption::Corruption;
use packfs_core::{DeviceNumber, FileType, Image, Result, usize_of};
use packfs_format::{OnDisk, disk, structure, units::*};
use std::ops::Range;
use zerocopy::big_endian::U32;
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

disk! {
    /// Superblock; the name of the volume follows (`struct romfs_super_block`).
    struct RomfsSuperBlock (16) { words: [u8; 8], size: U32, checksum: U32 }

    /// Header of a file; its name follows (`struct romfs_inode`).
    struct RomfsInode (16) { next: U32, spec: U32, size: U32, checksum: U32 }
}

pub(crate) const MAGIC: [u8; 8] = *b"-rom1fs-";
/// Length of a superblock, and of a file header, before its name.
pub(crate) const HEADER_LEN: u64 = size_of::<RomfsInode>() as u64;
/// Shortest image: a superblock and the header of the root.
const IMAGE_LEN_MIN: u64 = 2 * HEADER_LEN;
/// `ROMFS_MAXFN`.
const NAME_LEN_MAX: usize = 128;
/// Length of the start of an image whose sum is 0, or the length of a shorter image.
const SUM_LEN: u64 = 512;
/// Bit of a header's first word: executable. The lower bits are the type.
const EXECUTABLE: u32 = 8;

#[derive(Clone, Debug)]
pub(crate) struct SuperBlock {
    /// Length of the image, without padding.
    pub(crate) len: u64,
    pub(crate) checksum: u32,
    pub(crate) name: Vec<u8>,
    pub(crate) root_at: u64,
}

impl SuperBlock {
    /// Errors: wrong magic, or a length that exceeds the image.
    pub(crate) fn read(image: &dyn Image) -> Result<SuperBlock> {
        if image.len() < IMAGE_LEN_MIN {
            return Err(Corruption::Short { len: image.len(), min: IMAGE_LEN_MIN }.into());
        }
        let (raw, _, text) = read_head_and_text::<RomfsSuperBlock>(image, 0, image.len())?;
        if raw.words != MAGIC {
            return Err(Corruption::Magic.into());
        }
        let len = u64::from(raw.size.get());
        if !(IMAGE_LEN_MIN..=image.len()).contains(&len) {
            return Err(Corruption::Length { found: len, min: IMAGE_LEN_MIN, max: image.len() }.into());
        }
        let (name, root_at) = name_in(&text, 0, len)?;
        Ok(SuperBlock { len, checksum: raw.checksum.get(), name, root_at })
    }

    /// Returns the sum of the first words, which must be 0.
    pub(crate) fn sum(&self, image: &dyn Image) -> Result<u32> {
        let mut bytes = vec![0; usize_of(self.len.min(SUM_LEN)) & !3];
        image.read_exact_at(0, &mut bytes)?;
        Ok(sum(&bytes))
    }
}

/// Type of a file, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    HardLink,
    Other(FileType),
}

/// File header with its name.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    /// Offset of the header, which identifies the inode.
    pub(crate) at: u64,
    /// Offset of the next header of the directory; 0 for the last.
    pub(crate) next: u64,
    pub(crate) kind: Kind,
    pub(crate) is_executable: bool,
    /// Offset of the first header of a directory, or of the target of a hard link; device number.
    pub(crate) spec: u32,
    pub(crate) len: u64,
    pub(crate) name: Vec<u8>,
    pub(crate) data_at: u64,
    /// Sum of the words of header and name, which must be 0.
    pub(crate) sum: u32,
}

impl Header {
    pub(crate) fn data(&self) -> Range<u64> {
        self.data_at..self.data_at.plus(self.len)
    }

    /// Reads the header at `at` of an image of `image_len` bytes.
    pub(crate) fn read(image: &dyn Image, image_len: u64, at: u64) -> Result<Header> {
        if !at.is_multiple_of(HEADER_LEN) || at < HEADER_LEN || end_of(at, HEADER_LEN) > image_len {
            return Err(Corruption::HeaderPlace { at, end: image_len }.into());
        }
        let (raw, head_sum, text) = read_head_and_text::<RomfsInode>(image, at, image_len)?;
        let next = raw.next.get();
        let kind = match next & 7 {
            0 => Kind::HardLink,
            1 => Kind::Other(FileType::Directory),
            2 => Kind::Other(FileType::File),
            3 => Kind::Other(FileType::Symlink),
            4 => Kind::Other(FileType::BlockDevice),
            5 => Kind::Other(FileType::CharDevice),
            6 => Kind::Other(FileType::Socket),
            _ => Kind::Other(FileType::Fifo),
        };
        let (name, data_at) = name_in(&text, at, image_len)?;
        let padded = usize_of(data_at.minus(at).minus(HEADER_LEN));
        let sum = head_sum.wrapping_add(sum(text.get(..padded).unwrap_or(&text)));
        let header = Header {
            at,
            next: u64::from(next) & !(HEADER_LEN - 1),
            kind,
            is_executable: next & EXECUTABLE != 0,
            spec: raw.spec.get(),
            len: raw.size.get().into(),
            name,
            data_at,
            sum,
        };
        let has_data = matches!(kind, Kind::Other(FileType::File | FileType::Symlink));
        if has_data && data_at.plus(header.len) > image_len {
            return Err(Corruption::DataRange { at, start: data_at, len: header.len, end: image_len }.into());
        }
        Ok(header)
    }

    /// Returns the fault of a wrong checksum.
    pub(crate) fn sum_fault(&self) -> Option<Corruption> {
        (self.sum != 0).then_some(Corruption::HeaderSum { at: self.at, found: self.sum })
    }

    /// Offset in the `spec` of a directory or a hard link.
    pub(crate) fn target(&self) -> u64 {
        u64::from(self.spec) & !(HEADER_LEN - 1)
    }

    pub(crate) fn device(&self) -> DeviceNumber {
        DeviceNumber { major: self.spec >> 16, minor: self.spec & 0xffff }
    }
}

const HEADER_AND_NAME_LEN_MAX: u64 = HEADER_LEN + (NAME_LEN_MAX as u64 + 1).next_multiple_of(HEADER_LEN);

/// Reads the header at `at`, the sum of its words, and in the same read up to `end` the bytes that
/// may be its name.
fn read_head_and_text<T: OnDisk + FromBytes + KnownLayout + Immutable + Unaligned>(
    image: &dyn Image,
    at: u64,
    end: u64,
) -> Result<(T, u32, Vec<u8>)> {
    let len = left(end, at).min(HEADER_AND_NAME_LEN_MAX);
    let mut bytes = vec![0; usize_of(len)];
    image.read_exact_at(at, &mut bytes)?;
    let text = bytes.split_off(bytes.len().min(usize_of(HEADER_LEN)));
    let head = structure(&bytes, 0).ok_or(Corruption::HeaderPlace { at, end })?;
    Ok((head, sum(&bytes), text))
}

/// Returns the name at the start of `text`, up to a NUL byte, and the offset after its padding.
fn name_in(text: &[u8], at: u64, image_len: u64) -> Result<(Vec<u8>, u64)> {
    let start = at.plus(HEADER_LEN);
    let bytes = text.iter().take(NAME_LEN_MAX.plus(1));
    let name: Vec<u8> = bytes.copied().take_while(|&byte| byte != 0).collect();
    let end = start.plus(name.len() as u64).plus(1);
    if name.len() > NAME_LEN_MAX || end > image_len {
        return Err(Corruption::NameEnd { at, max: NAME_LEN_MAX }.into());
    }
    Ok((name, end.checked_next_multiple_of(HEADER_LEN).unwrap_or(u64::MAX)))
}

fn sum(bytes: &[u8]) -> u32 {
    let (words, _) = bytes.as_chunks();
    words.iter().copied().map(u32::from_be_bytes).fold(0, u32::wrapping_add)
}
