//! Stored metadata blocks: a word with length and form, a marker in some old images, and the bytes.

use crate::endian::Endian;
use crate::fault::MetadataFault;
use crate::place::Place;
use packfs_core::{Error, ErrorKind, Image, Result, usize_of};
use packfs_format::units::*;

/// Maximum decoded length of a metadata block; all but the last block of a table have exactly this
/// length.
pub(crate) const SQUASHFS_METADATA_SIZE: usize = 8192;
/// Bit of a metadata block's header: stored uncompressed. The other 15 bits are its stored length.
pub(crate) const SQUASHFS_COMPRESSED_BIT: u16 = 1 << 15;
/// Follows the word before each metadata block of an image with the flag `check`.
const SQUASHFS_MARKER_BYTE: u8 = 0xff;
const HEADER_LEN_MAX: usize = 3;
pub(crate) const STORED_LEN_MAX: usize = HEADER_LEN_MAX + SQUASHFS_METADATA_SIZE;
/// Blocks that are searched for a compressed one; images with raw inodes have none.
const BLOCKS_LOOKED_AT_MAX: u32 = 32;

/// Range of the image with the contiguous metadata blocks of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) block_name: &'static str,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Region {
    /// Upper bound of the decoded length of all blocks; a stored block takes at least 3 bytes.
    pub(crate) fn decoded_len_max(&self) -> u64 {
        let len = left(self.end, self.start);
        (len / 3).plus(1).times(SQUASHFS_METADATA_SIZE as u64)
    }

    /// Upper bound of rows of at least `len_min` bytes in all blocks.
    pub(crate) fn rows_max(&self, len_min: u64) -> u64 {
        self.decoded_len_max().quotient(len_min)
    }

    pub(crate) fn outside(&self, at: u64) -> Error {
        let place = Place::at(self.block_name, at);
        MetadataFault::MetadataPosition { place, start: self.start, end: self.end }.into()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeaderForm {
    pub(crate) endian: Endian,
    /// True if a marker follows the word, as in images before 4.0 with the flag `check`.
    pub(crate) marked: bool,
}

impl HeaderForm {
    pub(crate) const fn header_len(self) -> usize {
        if self.marked { HEADER_LEN_MAX } else { HEADER_LEN_MAX - 1 }
    }

    /// Encodes the word before a block.
    pub(crate) fn word(self, stored_len: u16, compressed: bool) -> [u8; 2] {
        let mut bytes = [0; 2];
        let word = if compressed { stored_len } else { stored_len | SQUASHFS_COMPRESSED_BIT };
        self.endian.put(&mut bytes, 0, 16, word.into());
        bytes
    }

    /// Decodes the word before a block: stored length, and true if compressed.
    pub(crate) fn word_parts(self, bytes: [u8; 2]) -> (u16, bool) {
        let word = self.endian.u16(bytes);
        (word & !SQUASHFS_COMPRESSED_BIT, word & SQUASHFS_COMPRESSED_BIT == 0)
    }
}

/// A metadata block before decoding.
pub(crate) struct StoredBlock<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) compressed: bool,
    pub(crate) next: u64,
}

impl<'a> StoredBlock<'a> {
    /// Reads the block of `region` that starts at `at` into `room`.
    pub(crate) fn read(
        image: &dyn Image,
        form: HeaderForm,
        region: &Region,
        at: u64,
        room: &'a mut [u8; STORED_LEN_MAX],
    ) -> Result<Self> {
        let place = Place::at(region.block_name, at);
        let header_len = form.header_len();
        let left = usize_of(left(region.end, at));
        if at < region.start || left < header_len {
            return Err(region.outside(at));
        }
        let readable = left.min(header_len.plus(SQUASHFS_METADATA_SIZE));
        image.read_exact_at(at, room.within_mut(..readable))?;
        let (stored_len, compressed) = form.word_parts([room[0], room[1]]);
        // Zero means 32,768, which exceeds metadata blocks.
        if stored_len == 0 || usize::from(stored_len) > SQUASHFS_METADATA_SIZE {
            return Err(MetadataFault::MetadataLength { place, found: stored_len }.into());
        }
        if form.marked && room[2] != SQUASHFS_MARKER_BYTE {
            return Err(MetadataFault::Marker { place, found: room[2] }.into());
        }
        let end = header_len.plus(stored_len.into());
        let next = at.plus(end as u64);
        if end > readable {
            return Err(MetadataFault::MetadataOverrun { place, end: next, limit: region.end }.into());
        }
        Ok(StoredBlock { bytes: room.within(header_len..end), compressed, next })
    }
}

/// Returns the stored bytes of the first compressed block of a table within reach: they identify
/// the codec of an image whose superblock does not record it.
///
/// Errors: `Io`.
pub(crate) fn first_compressed(
    image: &dyn Image,
    form: HeaderForm,
    table: &Region,
) -> Result<Option<Vec<u8>>> {
    let mut room = [0; STORED_LEN_MAX];
    let mut at = table.start;
    for _ in 0..BLOCKS_LOOKED_AT_MAX {
        match StoredBlock::read(image, form, table, at, &mut room) {
            Ok(block) if block.compressed => return Ok(Some(block.bytes.to_vec())),
            Ok(block) => at = block.next,
            Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_testkit::BytesImage;

    const LITTLE: HeaderForm = HeaderForm { endian: Endian::Little, marked: false };
    const MARKED: HeaderForm = HeaderForm { endian: Endian::Big, marked: true };

    #[test]
    fn the_stored_bit_of_metadata_is_set_for_uncompressed_blocks() {
        assert_eq!(LITTLE.word(8192, false), [0x00, 0xa0]);
        assert_eq!(LITTLE.word(100, true), [100, 0]);
        assert_eq!(MARKED.word(8192, false), [0xa0, 0x00]);
        for form in [LITTLE, MARKED] {
            assert_eq!(form.word_parts(form.word(8192, false)), (8192, false));
            assert_eq!(form.word_parts(form.word(100, true)), (100, true));
        }
    }

    #[test]
    fn the_first_compressed_block_is_found_behind_stored_ones() {
        let bytes = [0x80, 2, 0xff, 7, 7, 0x80, 1, 0xff, 8, 0, 3, 0xff, 1, 2, 3, 0];
        let table = Region { block_name: "inode table block", start: 0, end: 15 };
        let found = first_compressed(&BytesImage(bytes.to_vec()), MARKED, &table).unwrap();
        assert_eq!(found, Some(vec![1, 2, 3]));
        let shorter = Region { end: 9, ..table };
        assert_eq!(first_compressed(&BytesImage(bytes.to_vec()), MARKED, &shorter).unwrap(), None);
        let mut unmarked = bytes.to_vec();
        unmarked[7] = 0;
        assert_eq!(first_compressed(&BytesImage(unmarked), MARKED, &table).unwrap(), None);
    }
}
